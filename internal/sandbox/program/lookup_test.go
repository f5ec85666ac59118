//go:build unix

package program

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// tree makes files under a new folder: a path that ends in "*" is executable,
// a value that begins with "-> " is a link's target.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	grow(t, dir, files)
	return dir
}

// grow makes more files in the folder of a tree.
func grow(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name, exec := strings.CutSuffix(name, "*")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if exec {
			mode = 0o755
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

const hello = "#!/bin/sh\necho hello\n"

func TestLookup(t *testing.T) {
	dir := tree(t, map[string]string{
		"a/tool*":          hello,
		"a/plain":          "text",
		"a/python3.12*":    elf,
		"a/py*":            "#!/usr/bin/env -S python3.12 -u\n",
		"a/viaenv*":        "#!/usr/bin/env -S LANG=C python3.12\n",
		"a/tabs*":          "#! \t/bin/sh\t-e\n",
		"b/tool*":          "other",
		"b/plain*":         "second",
		"b/link":           "-> ../a/tool",
		"b/into":           "-> ../pack/run",
		"pack/run*":        hello,
		"pack/bin/tool*":   "from the pack",
		"pack/sub/deep*":   "deep",
		"pack/inlink":      "-> sub/deep",
		"pack/dirlink":     "-> sub",
		"pack/out":         "-> ../a/tool",
		"pack/outdir":      "-> ../a",
		"pack/noexec":      hello,
		"pack/te..st*":     "legal",
		"pack/%2e%2e*":     "legal",
		"pack/noshell*":    "#!/no/such/shell\n",
		"pack/crlf*":       "#!/bin/sh\r\necho\r\n",
		"pack/relative*":   "#!bin/sh\n",
		"pack/empty*":      "#!\n",
		"pack/needs*":      "#!/usr/bin/env no-such-interpreter-x\n",
		"pack/barelocal*":  "#!/usr/bin/env python3.12\n",
		"pack/-dash*":      "dash",
		"pack/with space*": "space",
	})
	if err := unix.Mkfifo(filepath.Join(dir, "pack", "fifo"), 0o755); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	interpreter := func(name, path string, args ...string) Interpreter {
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(resolved)
		if err != nil {
			t.Fatal(err)
		}
		return Interpreter{Name: name, Path: path, Resolved: resolved, Digest: sum(string(data)), Args: args}
	}
	byShell := []Interpreter{interpreter("/bin/sh", "/bin/sh")}
	python := func(line string, env []string, args ...string) []Interpreter {
		byEnv, it := interpreter("/usr/bin/env", "/usr/bin/env", line), interpreter("python3.12", at("a/python3.12"), args...)
		byEnv.IsEnv, it.OnPath, it.Env = true, true, env
		return []Interpreter{byEnv, it}
	}
	o := LookupOptions{
		Path:    strings.Join([]string{".", "", "a", at("pack/bin"), at("gone"), at("a"), at("b")}, ":"),
		Exclude: []string{at("pack")},
		PackDir: at("pack"),
	}
	// A bare name must never mean a file in the working folder.
	t.Chdir(at("pack/bin"))

	for _, tt := range []struct {
		name string
		want Program
	}{
		{"tool", Program{Path: at("a/tool"), Resolved: at("a/tool"), Digest: sum(hello), Interpreters: byShell}},
		{"plain", Program{Path: at("b/plain"), Resolved: at("b/plain"), Digest: sum("second")}},
		{"link", Program{Path: at("b/link"), Resolved: at("a/tool"), Digest: sum(hello), Interpreters: byShell}},
		{"py", Program{Path: at("a/py"), Resolved: at("a/py"), Digest: sum("#!/usr/bin/env -S python3.12 -u\n"), Interpreters: python("-S python3.12 -u", nil, "-u")}},
		{"viaenv", Program{Path: at("a/viaenv"), Resolved: at("a/viaenv"), Digest: sum("#!/usr/bin/env -S LANG=C python3.12\n"), Interpreters: python("-S LANG=C python3.12", []string{"LANG=C"})}},
		{"tabs", Program{Path: at("a/tabs"), Resolved: at("a/tabs"), Digest: sum("#! \t/bin/sh\t-e\n"), Interpreters: []Interpreter{interpreter("/bin/sh", "/bin/sh", "-e")}}},
		{at("b/tool"), Program{Path: at("b/tool"), Resolved: at("b/tool"), Digest: sum("other")}},
		{at("b/../b/tool"), Program{Path: at("b/tool"), Resolved: at("b/tool"), Digest: sum("other")}},
		{"./run", Program{Path: at("pack/run"), Resolved: at("pack/run"), Digest: sum(hello), Interpreters: byShell}},
		{"./sub/deep", Program{Path: at("pack/sub/deep"), Resolved: at("pack/sub/deep"), Digest: sum("deep")}},
		{".//sub//deep", Program{Path: at("pack/sub/deep"), Resolved: at("pack/sub/deep"), Digest: sum("deep")}},
		{"./inlink", Program{Path: at("pack/inlink"), Resolved: at("pack/sub/deep"), Digest: sum("deep")}},
		{"./dirlink/deep", Program{Path: at("pack/dirlink/deep"), Resolved: at("pack/sub/deep"), Digest: sum("deep")}},
		{"./te..st", Program{Path: at("pack/te..st"), Resolved: at("pack/te..st"), Digest: sum("legal")}},
		{"./%2e%2e", Program{Path: at("pack/%2e%2e"), Resolved: at("pack/%2e%2e"), Digest: sum("legal")}},
		{"./-dash", Program{Path: at("pack/-dash"), Resolved: at("pack/-dash"), Digest: sum("dash")}},
		{"./with space", Program{Path: at("pack/with space"), Resolved: at("pack/with space"), Digest: sum("space")}},
		{"./barelocal", Program{Path: at("pack/barelocal"), Resolved: at("pack/barelocal"), Digest: sum("#!/usr/bin/env python3.12\n"), Interpreters: python("python3.12", nil)}},
	} {
		tt.want.Name = tt.name
		got, err := Lookup(tt.name, o)
		if err != nil {
			t.Errorf("Lookup(%q) = %v, want %q", tt.name, err, tt.want.Path)
		} else if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Program{}, "Needs", "Links"), cmpopts.EquateEmpty()); diff != "" { // see TestNeeds
			t.Errorf("Lookup(%q) differs (-want +got):\n%s", tt.name, diff)
		}
	}

	for _, tt := range []struct {
		name string
		kind error
		want string
	}{
		{"", fs.ErrNotExist, "the name is empty"},
		{"a\x00b", fs.ErrNotExist, "NUL byte"},
		{"no-such-program", fs.ErrNotExist, "not found on PATH"},
		{"tol", fs.ErrNotExist, `(similar: ["tool"])`},
		{"python", fs.ErrNotExist, `(similar: ["python3.12"])`},
		{".", fs.ErrNotExist, "a path must be absolute"},
		{"..", fs.ErrNotExist, "a path must be absolute"},
		{"run", fs.ErrNotExist, "not found on PATH"},
		{"sub/deep", fs.ErrNotExist, "begin with ./"},
		{"../a/tool", fs.ErrNotExist, "begin with ./"},
		{"./../a/tool", fs.ErrNotExist, "leads out of the pack"},
		{"./sub/../run", fs.ErrNotExist, "leads out of the pack"},
		{"./", fs.ErrNotExist, "names no file"},
		{"./gone", fs.ErrNotExist, "no such file in the pack"},
		{"./run/x", fs.ErrNotExist, "not a file inside the pack"},
		{"./out", fs.ErrNotExist, "not a file inside the pack"},
		{"./outdir/tool", fs.ErrNotExist, "not a file inside the pack"},
		{"./needs", fs.ErrNotExist, `needs program "no-such-interpreter-x"`},
		{"./noshell", fs.ErrNotExist, `needs program "/no/such/shell": no such file`},
		{"./crlf", fs.ErrNotExist, "carriage return"},
		{"./relative", fs.ErrNotExist, "an interpreter must be an absolute path"},
		{at("gone"), fs.ErrNotExist, "no such file"},
		{at("a/tool/x"), fs.ErrNotExist, "no such file"},
		{"./noexec", fs.ErrPermission, "is not executable (chmod +x makes it so)"},
		{"./sub", fs.ErrPermission, "is a directory"},
		{"./fifo", fs.ErrPermission, "is not a regular file"},
		{"./empty", fs.ErrPermission, "names no interpreter"},
		{"into", fs.ErrPermission, "leads into the pack"},
		{at("a/plain"), fs.ErrPermission, "is not executable"},
		{at("a"), fs.ErrPermission, "is a directory"},
	} {
		p, err := Lookup(tt.name, o)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.kind) {
			t.Errorf("Lookup(%q) = %+v, %v, want an error with %q", tt.name, p, err, tt.want)
		}
	}

	for _, packDir := range []string{"", "pack", at("gone")} {
		if _, err := Lookup("./run", LookupOptions{PackDir: packDir}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Lookup(./run) in %q = %v, want it not found", packDir, err)
		}
	}
}

func TestLookupUnreadable(t *testing.T) {
	dir := tree(t, map[string]string{"tool*": hello})
	path := filepath.Join(dir, "tool")
	if err := os.Chmod(path, 0o111); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(path); err == nil {
		_ = f.Close()
		t.Skip("this user reads everything")
	}
	if _, err := Lookup(path, LookupOptions{}); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("Lookup(%q) = %v, want it unreadable", path, err)
	}
}

func TestDigestIsRemembered(t *testing.T) {
	dir := tree(t, map[string]string{"f": "one"})
	path := filepath.Join(dir, "f")
	if err := os.Truncate(path, alwaysRead+1); err != nil {
		t.Fatal(err)
	}
	var c digestCache
	whole, _, err := c.file(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.known) != 0 {
		t.Error("the digest of a file that has just changed is remembered")
	}
	// Pretend that the file has settled: the same stamp, with a digest that can be told
	// from the real one.
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	c.known = map[string]digestEntry{path: {paths.StampOf(info), "remembered", []byte("head")}}
	if got, head, err := c.file(path); err != nil || got != "remembered" || string(head) != "head" {
		t.Errorf("file = %q, %q, %v, want what is remembered", got, head, err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil { // the owner cannot set the time of change
		t.Fatal(err)
	}
	if got, _, err := c.file(path); err != nil || got != whole {
		t.Errorf("after Chtimes: file = %q, %v, want it computed", got, err)
	}
}

// The bytes of a file that is not large are read each time: see alwaysRead.
func TestDigestIsComputed(t *testing.T) {
	path := filepath.Join(tree(t, map[string]string{"f": "one"}), "f")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	l := Lookuper{digests: digestCache{known: map[string]digestEntry{path: {paths.StampOf(info), sum("other"), nil}}}}
	if got, _, err := l.digests.file(path); err != nil || got != sum("one") {
		t.Errorf("file = %q, %v, want that of its bytes", got, err)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	p := Program{Name: "f", Path: path, Resolved: resolved, Digest: sum("other")}
	if _, err := l.Verify(p); !errors.As(err, new(*ChangedError)) {
		t.Errorf("Verify = %v, want a *ChangedError", err)
	}
}

// The bytes of a file that only root can change are read once, and again when its
// stamp differs.
func TestSystemDigestIsRemembered(t *testing.T) {
	path, err := filepath.EvalSymlinks("/usr/bin/env")
	if err != nil || !file.SystemOwned(path) {
		t.Skip("there is no /usr/bin/env that only root can change")
	}
	var c digestCache
	want, _, err := c.file(path)
	if err != nil {
		t.Fatal(err)
	}
	known := c.known[path]
	if known.digest != want {
		t.Fatalf("remembered is %q, want %q", known.digest, want)
	}
	known.digest = "remembered"
	c.known[path] = known
	if got, _, err := c.file(path); err != nil || got != "remembered" {
		t.Errorf("file = %q, %v, want what is remembered", got, err)
	}
	known.stamp.Changed = known.stamp.Changed.Add(-time.Nanosecond)
	c.known[path] = known
	if got, _, err := c.file(path); err != nil || got != want {
		t.Errorf("with another stamp: file = %q, %v, want %q", got, err, want)
	}
}

func TestNear(t *testing.T) {
	dir := tree(t, map[string]string{"git": "", "grep": "", "python3": "", "pip": "", "kubectl": ""})
	for name, want := range map[string][]string{
		"gti": nil, "gitt": {"git"}, "python": {"python3"}, "python2": {"python3"}, "kubeclt": {"kubectl"}, "x": nil, "zzzzzz": nil,
	} {
		if got := near(name, []string{dir}); !slices.Equal(got, want) {
			t.Errorf("near(%q) = %q, want %q", name, got, want)
		}
	}
}

// A program that is removed or written during the look-up is reported as changed, not
// as lacking a permission.
func TestLookupOfWhatChanges(t *testing.T) {
	_, gone := os.Open(filepath.Join(t.TempDir(), "gone"))
	path := filepath.Join(t.TempDir(), "p")
	if _, err := new(Lookuper).program("p", path, LookupOptions{}); !errors.As(err, new(*ChangedError)) {
		t.Errorf("program = %v (%T), want that it changed", err, err)
	}
	for _, err := range []error{errChanging, gone} {
		if err := unreadable("p", "/p", err); !errors.As(err, new(*ChangedError)) || errors.Is(err, fs.ErrPermission) {
			t.Errorf("unreadable = %v (%T), want that it changed", err, err)
		}
	}
}
