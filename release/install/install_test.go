// Package install tests install.sh with a local server, as people use it: piped into a
// shell, with good and bad releases.
package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// archive returns an archive of programs, which are scripts; without names, of both.
func archive(t *testing.T, says string, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if len(names) == 0 {
		names = []string{"LICENSE", "packs-mcp", "packs-mcp-sigstore"}
	}
	for _, name := range names {
		text := "#!/bin/sh\necho '" + says + "'\n"
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const name = "packs-mcp_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"

// brokenOff marks a file whose connection breaks before all of it is sent.
const brokenOff = "broken off: "

func sumOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// install runs install.sh against a release, a map of path below /releases → content. The
// programs in the given folder take precedence over those of the system.
func install(t *testing.T, release map[string]string, programs map[string]string, env ...string) (home, out string, err error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("install.sh is for Linux and macOS")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := release[strings.TrimPrefix(r.URL.Path, "/releases/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if rest, cut := strings.CutPrefix(content, brokenOff); cut {
			w.Header().Set("Content-Length", strconv.Itoa(len(rest)+1000))
			content = rest
		}
		fmt.Fprint(w, content)
	}))
	defer server.Close()
	home = t.TempDir()
	bin := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.Open("../../install.sh")
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd := exec.Command("sh")
	cmd.Stdin = script
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + bin + ":/usr/bin:/bin", "TMPDIR=" + t.TempDir(), "PACKS_MCP_URL=" + server.URL + "/releases", "no_proxy=*"}, env...)
	text, err := cmd.CombinedOutput()
	return home, string(text), err
}

// good returns a valid release.
func good(t *testing.T) map[string]string {
	content := archive(t, "packs-mcp v1.2.3")
	sums := sumOf(content) + "  " + name + "\n" + strings.Repeat("0", 64) + "  packs-mcp_1.2.3_plan9_mips.tar.gz\n"
	all := make(map[string]string)
	for _, base := range []string{"latest/download/", "download/v1.2.3/"} {
		all[base+"checksums.txt"] = sums
		all[base+"checksums.txt.sigstore.json"] = "{}"
		all[base+name] = string(content)
	}
	return all
}

func TestGoodRelease(t *testing.T) {
	for _, env := range [][]string{nil, {"PACKS_MCP_VERSION=1.2.3"}, {"PACKS_MCP_VERSION=v1.2.3"}} {
		home, out, err := install(t, good(t), nil, env...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", env, err, out)
		}
		for _, program := range []string{"packs-mcp", "packs-mcp-sigstore"} {
			if said, err := exec.Command(filepath.Join(home, ".local/bin", program)).Output(); err != nil || string(said) != "packs-mcp v1.2.3\n" {
				t.Errorf("%s says %q, %v", program, said, err)
			}
		}
		if !strings.Contains(out, "has the checksum of the release") {
			t.Errorf("it said:\n%s", out)
		}
	}
}

// Installs into a private folder that contains an older version.
func TestReplaces(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "packs-mcp"), []byte("old"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, out, err := install(t, good(t), nil, "PACKS_MCP_DIR="+dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "packs-mcp")); err != nil || string(text) == "old" {
		t.Errorf("the older version is still there: %v", err)
	}
}

// Whatever is wrong with a release, nothing of it is installed.
func TestBadReleases(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(map[string]string)
		programs map[string]string
		env      []string
		says     string
	}{
		{name: "a changed archive", change: func(r map[string]string) { r["latest/download/"+name] = string(archive(t, "evil")) }, says: "checksums.txt says"},
		{name: "a cut archive", change: func(r map[string]string) { r["latest/download/"+name] = r["latest/download/"+name][:40] }, says: "checksums.txt says"},
		{name: "no checksums", change: func(r map[string]string) { delete(r, "latest/download/checksums.txt") }, says: "cannot download"},
		{name: "empty checksums", change: func(r map[string]string) { r["latest/download/checksums.txt"] = "" }, says: "exactly one archive"},
		{name: "a page in place of checksums", change: func(r map[string]string) { r["latest/download/checksums.txt"] = "<html>404</html>" }, says: "exactly one archive"},
		{name: "two checksums", change: func(r map[string]string) {
			r["latest/download/checksums.txt"] += strings.Repeat("1", 64) + "  " + strings.Replace(name, "1.2.3", "1.2.4", 1) + "\n"
		}, says: "exactly one archive"},
		{name: "a path in the name", change: func(r map[string]string) {
			r["latest/download/checksums.txt"] = strings.Replace(r["latest/download/checksums.txt"], name, "packs-mcp_../../x_linux_amd64.tar.gz", 1)
		}, says: "exactly one archive"},
		{name: "an archive that is broken off", change: func(r map[string]string) { r["latest/download/"+name] = brokenOff + r["latest/download/"+name][:40] }, says: "cannot download"},
		{name: "checksums that are broken off", change: func(r map[string]string) {
			r["latest/download/checksums.txt"] = brokenOff + r["latest/download/checksums.txt"]
		}, says: "cannot download"},
		{name: "a checksum in capital letters", change: func(r map[string]string) {
			r["latest/download/checksums.txt"] = strings.ToUpper(r["latest/download/checksums.txt"][:64]) + r["latest/download/checksums.txt"][64:]
		}, says: "exactly one archive"},
		{name: "the checksums of another release", change: func(r map[string]string) {
			r["latest/download/checksums.txt"] = strings.Repeat("a", 64) + "  " + name + "\n"
		}, says: "checksums.txt says"},
		{name: "an archive without the second program", change: func(r map[string]string) { exchange(t, r, "packs-mcp v1.2.3", "LICENSE", "packs-mcp") }, says: "cannot be unpacked"},
		{name: "a program that does not start", change: func(r map[string]string) { exchange(t, r, "'; exit 3; '", "packs-mcp", "packs-mcp-sigstore") }, says: "does not start"},
		{name: "no archive", change: func(r map[string]string) { delete(r, "latest/download/"+name) }, says: "cannot download"},
		{name: "an unknown version", env: []string{"PACKS_MCP_VERSION=9.9.9"}, says: "cannot download"},
		{name: "another version than asked", change: func(r map[string]string) {
			r["download/v1.0.0/checksums.txt"] = r["latest/download/checksums.txt"]
		}, env: []string{"PACKS_MCP_VERSION=1.0.0"}, says: "names " + name},
		{name: "a system without a program", programs: map[string]string{"uname": `case $1 in -s) echo Plan9 ;; *) echo x86_64 ;; esac`}, says: "no packs-mcp for Plan9"},
		{name: "a processor without a program", programs: map[string]string{"uname": `case $1 in -s) echo Linux ;; *) echo sparc64 ;; esac`}, says: "no packs-mcp for the processor sparc64"},
		{name: "Windows", programs: map[string]string{"uname": `echo MINGW64_NT-10.0`}, says: "does not install on Windows"},
		{name: "a user in the address", env: []string{"PACKS_MCP_URL=http://127.0.0.1:80@example.invalid/releases"}, says: "not an address without a user"},
		{name: "a blank in the address", env: []string{"PACKS_MCP_URL=https://example.invalid/ releases"}, says: "not an address without a user"},
		{name: "a file as address", env: []string{"PACKS_MCP_URL=file:///tmp"}, says: "not an https address"},
		{name: "a version that is a path", env: []string{"PACKS_MCP_VERSION=../../1.2.3"}, says: "not a version"},
		{name: "a version that is an option", env: []string{"PACKS_MCP_VERSION=1.2.3 --insecure"}, says: "not a version"},
		{name: "a mistyped wish for a signature", env: []string{"PACKS_MCP_SIGNATURE=required"}, says: "PACKS_MCP_SIGNATURE is required"},
		{name: "no home", env: []string{"HOME="}, says: "there is no HOME"},
		{name: "no folder for temporary files", env: []string{"TMPDIR=/dev/null/x"}, says: "no place for temporary files"},
		{name: "a folder that cannot be made", env: []string{"PACKS_MCP_DIR=/dev/null/bin"}, says: "cannot write to the folder /dev/null/bin"},
		{name: "plain HTTP", env: []string{"PACKS_MCP_URL=http://example.invalid/releases"}, says: "not an https address"},
		{name: "a signature of somebody else", programs: map[string]string{"cosign": "exit 1"}, says: "not the release workflow's"},
		{name: "no signature", change: func(r map[string]string) { delete(r, "latest/download/checksums.txt.sigstore.json") }, programs: map[string]string{"cosign": "exit 0"}, says: "no signature"},
		{name: "no cosign where it is required", env: []string{"PACKS_MCP_SIGNATURE=require"}, says: "no cosign"},
	} {
		t.Run(c.name, func(t *testing.T) {
			release := good(t)
			if c.change != nil {
				c.change(release)
			}
			home, out, err := install(t, release, c.programs, c.env...)
			if err == nil {
				t.Errorf("it succeeded:\n%s", out)
			}
			for _, want := range []string{c.says, "nothing was installed", "hint: "} {
				if !strings.Contains(out, want) {
					t.Errorf("it did not say %q:\n%s", want, out)
				}
			}
			err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
				if err == nil && (!d.IsDir() || strings.HasPrefix(d.Name(), ".packs-mcp")) {
					t.Errorf("it left %s", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// exchange replaces an archive of a release, with its checksum.
func exchange(t *testing.T, release map[string]string, says string, programs ...string) {
	content := archive(t, says, programs...)
	release["latest/download/"+name] = string(content)
	release["latest/download/checksums.txt"] = sumOf(content) + "  " + name + "\n"
}

// tools returns a folder with only these programs of the system.
func tools(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		file, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(file, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// If the system lacks a program that the script needs, the script names it and installs
// nothing.
func TestMissingTools(t *testing.T) {
	all := []string{"sh", "uname", "tar", "gzip", "mktemp", "grep", "sha256sum", "curl", "cp", "mv", "rm", "mkdir", "chmod"}
	for missing, says := range map[string]string{
		"tar": "there is no tar on the PATH", "gzip": "there is no gzip on the PATH", "sha256sum": "neither sha256sum nor shasum", "curl": "neither curl nor wget",
	} {
		var rest []string
		for _, name := range all {
			if name != missing {
				rest = append(rest, name)
			}
		}
		home, out, err := install(t, good(t), nil, "PATH="+tools(t, rest...))
		if err == nil || !strings.Contains(out, says) || !strings.Contains(out, "nothing was installed") {
			t.Errorf("without %s: %v\n%s", missing, err, out)
		}
		if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
			t.Errorf("without %s it left %v, %v", missing, left, err)
		}
	}
	if _, out, err := install(t, good(t), nil, "PATH="+tools(t, all...)); err != nil {
		t.Errorf("with all of them: %v\n%s", err, out)
	}
}

// wget works like curl.
func TestWget(t *testing.T) {
	if _, err := exec.LookPath("wget"); err != nil {
		t.Skip("wget: not on this system")
	}
	path := tools(t, "sh", "uname", "tar", "gzip", "mktemp", "grep", "sha256sum", "wget", "mv", "rm", "mkdir", "chmod")
	if _, out, err := install(t, good(t), nil, "PATH="+path); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	bad := good(t)
	bad["latest/download/"+name] = "changed"
	if home, out, err := install(t, bad, nil, "PATH="+path); err == nil || !strings.Contains(out, "checksums.txt says") {
		t.Errorf("a changed archive: %v\n%s", err, out)
	} else if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// What exists at the programs' paths: a link is replaced, but not its target; a folder is left
// alone. Nothing else in the folder changes.
func TestInstallOverExistingFiles(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, []byte("other"), 0o755), os.Symlink(other, filepath.Join(dir, "packs-mcp")), os.WriteFile(filepath.Join(dir, "jq"), []byte("jq"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, out, err := install(t, good(t), nil, "PACKS_MCP_DIR="+dir+"/"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "other" {
		t.Errorf("it wrote through the link: %q, %v", text, err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "packs-mcp")); err != nil || info.Mode() != 0o755 {
		t.Errorf("the program is %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("it left %v, %v", left, err)
	}

	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "packs-mcp", "packs-mcp"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, out, err := install(t, good(t), nil, "PACKS_MCP_DIR="+dir)
	if err == nil || !strings.Contains(out, "packs-mcp is a folder") || !strings.Contains(out, "nothing was installed") {
		t.Errorf("over a folder: %v\n%s", err, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// The last lines say how to start the program from this shell.
func TestPathHints(t *testing.T) {
	dir := t.TempDir()
	before := filepath.Join(t.TempDir(), "packs-mcp")
	if err := os.WriteFile(before, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, want string
	}{
		{"/usr/bin:/bin", `export PATH="` + dir + `:$PATH"`},
		{"/usr/bin:/bin", "next: " + dir + "/packs-mcp try"},
		{dir + ":/usr/bin:/bin", "next: packs-mcp try, or packs-mcp setup"},
		{filepath.Dir(before) + ":" + dir + ":/usr/bin:/bin", "finds another one first: " + before},
	} {
		_, out, err := install(t, good(t), nil, "PACKS_MCP_DIR="+dir, "PATH="+c.path)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("with PATH %s: %v, want %q in\n%s", c.path, err, c.want, out)
		}
		if strings.Contains(c.path, dir) == strings.Contains(out, "export PATH") {
			t.Errorf("with PATH %s it said\n%s", c.path, out)
		}
	}
}

// If cosign is installed, it checks for this repository's release workflow.
func TestSignature(t *testing.T) {
	home, out, err := install(t, good(t), map[string]string{"cosign": `printf '%s\n' "$@" >"$HOME/asked"`})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	asked, err := os.ReadFile(filepath.Join(home, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"verify-blob\n", "https://token.actions.githubusercontent.com\n", `^https://github\.com/packs-mcp/packs-mcp/\.github/workflows/release\.yml@refs/tags/v[0-9]` + "\n"} {
		if !strings.Contains(string(asked), want) {
			t.Errorf("cosign was not asked with %q:\n%s", want, asked)
		}
	}
}

// A truncated script does nothing.
func TestCutScript(t *testing.T) {
	script, err := os.ReadFile("../../install.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []int{4, 3, 2} {
		home := t.TempDir()
		cmd := exec.Command("sh")
		cmd.Stdin = bytes.NewReader(script[:len(script)-len(script)/part])
		cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "PACKS_MCP_URL=http://127.0.0.1:1"}
		out, _ := cmd.CombinedOutput() // it fails, or ends early
		if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
			t.Errorf("it left %v, %v:\n%s", left, err, out)
		}
	}
}
