package program

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A chainWorld has programs that report how they were started, so that a look-up can
// be compared with what the kernel and env(1) really do.
type chainWorld struct {
	dir string
	o   LookupOptions
}

func newChainWorld(t *testing.T) *chainWorld {
	t.Helper()
	dir := tree(t, map[string]string{
		"link/to-env": "-> /usr/bin/env", "link/env": "-> /usr/bin/env", "link/lang": "-> ../bin/lang",
		"bin/text*": "echo no first line\n",
	})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin/lang", "bin/other", "bin/env", "own/env"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if os.Link(exe, path) != nil {
			writeCopy(t, exe, path)
		}
	}
	for _, name := range []string{"copy/env", "copy/renamed"} { // no link: that would change the file of the system
		writeCopy(t, "/usr/bin/env", filepath.Join(dir, name))
	}
	w := &chainWorld{dir: dir, o: LookupOptions{Path: filepath.Join(dir, "bin") + ":/usr/bin:/bin"}}
	grow(t, dir, map[string]string{
		"bin/by-lang*":  w.fill("#!DIR/bin/lang one two\n"),
		"bin/by-env*":   "#!/usr/bin/env lang\n",
		"bin/by-by*":    w.fill("#!DIR/bin/by-env -x\n"),
		"bin/by-three*": w.fill("#!DIR/bin/by-by\n"),
		"bin/looping*":  w.fill("#!DIR/bin/looping\n"),
	})
	return w
}

func writeCopy(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func (w *chainWorld) fill(text string) string { return strings.ReplaceAll(text, "DIR", w.dir) }

// script writes a script with this text and returns its path.
func (w *chainWorld) script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(w.dir, "script")
	if err := os.WriteFile(path, []byte(w.fill(text)), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// foretold returns how the last program of p's chain should be started.
func foretold(p Program, args ...string) started {
	argv, at := append([]string{p.Path}, args...), p.Path
	s := started{Exe: p.Resolved}
	for _, i := range p.Interpreters {
		if byEnv := len(argv) > 1 && s.Exe == "env"; byEnv {
			// The argv of env(1): its own name, the text of the first line, the script.
			argv = slices.Concat([]string{i.Name}, i.Args, argv[2:])
		} else {
			argv = slices.Concat([]string{i.Name}, i.Args, []string{at}, argv[1:])
		}
		s.Env, at, s.Exe = append(s.Env, i.Env...), i.Path, i.Resolved
		if i.IsEnv {
			s.Exe = "env"
		}
	}
	s.Argv = argv
	return s
}

// real starts the script. It returns nothing if no program reported how it was
// started.
func (w *chainWorld) real(t *testing.T, path string, args ...string) (s started, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + w.o.Path, childVar + "=started", "GORACE=atexit_sleep_ms=0"}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		cmd.Env = append(cmd.Env, "GOCOVERDIR="+dir)
	}
	given := slices.Clone(cmd.Env)
	out, err := cmd.CombinedOutput()
	var is said
	if err != nil || json.Unmarshal(out, &is) != nil {
		if err != nil {
			out = append(out, err.Error()...)
		}
		return started{}, string(out)
	}
	s = is.started()
	s.Env = slices.DeleteFunc(s.Env, func(kv string) bool { return slices.Contains(given, kv) })
	return s, string(out)
}

// compare reports whether the script was followed; when it was, the kernel and
// env(1) must start what was foretold.
func (w *chainWorld) compare(t *testing.T, text string) bool {
	t.Helper()
	path := w.script(t, text)
	p, err := Lookup(path, w.o)
	if err != nil {
		return false
	}
	if len(p.Interpreters) == 0 {
		t.Errorf("first line %q: no interpreter was found", text)
		return true
	}
	if err := p.CheckSearch([]string{"PATH=" + w.o.Path}); err != nil {
		t.Errorf("first line %q: CheckSearch = %v", text, err)
	}
	want := foretold(p, "a", "b c")
	got, output := w.real(t, path, "a", "b c")
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("first line %q starts another program than foretold (-want +got):\n%s\n%s", w.fill(text), diff, output)
	}
	return true
}

// Look-up follows scripts as this machine's kernel and env(1) do, and refuses the
// rest.
func TestChainIsReal(t *testing.T) {
	w := newChainWorld(t)
	pad := func(n int) string { return strings.Repeat("x", n-len(w.fill("#!DIR/bin/lang "))) }
	for _, tt := range []struct {
		text     string
		followed bool
	}{
		{"#!DIR/bin/lang\n", true},
		{"#!   DIR/bin/lang\n", true},
		{"#!\tDIR/bin/lang \t \n", true},
		{"#!DIR/bin/lang -a -b\n", true},
		{"#!DIR/bin/lang \t -a  -b \t\n", true},
		{"#!DIR/bin/lang -a\n#!/bin/sh\n", true},
		{"#!DIR/link/lang -a\n", true},
		{"#!DIR/bin/lang #x 'y'\n", true},
		{"#!DIR/bin/lang " + pad(255) + "\n", true},
		{"#!DIR/bin/lang " + pad(256) + "\n", false},
		{"#!DIR/bin/lang", false},
		{"#!DIR/bin/lang\x00-x\n", false},
		{"#!DIR/bin/lang\r\n", false},
		{"#!DIR/bin/lang\v-x\n", false},
		{"#!DIR/bin/../bin/lang\n", false},
		{"#!DIR//bin/lang\n", false},
		{"#!bin/lang\n", false},
		{"#!./bin/lang\n", false},
		{"#!lang\n", false},
		{"#!/proc/self/cwd/bin/lang\n", false},
		{"#!/proc/self/root/DIR/bin/lang\n", false},
		{"#!/dev/fd/0\n", false},
		{"#!\n", false},
		{"#! \t\n", false},

		{"#!DIR/bin/by-lang -y\n", true},
		{"#!DIR/bin/by-env -y\n", true},
		{"#!DIR/bin/by-by -y\n", true},
		{"#!DIR/bin/by-three\n", true},
		{"#!DIR/bin/looping\n", false},
		{"#!DIR/script\n", false},

		{"#!/usr/bin/env lang\n", true},
		{"#!/bin/env  lang \n", true},
		{"#!DIR/link/env lang\n", true},
		{"#!DIR/link/to-env lang\n", true},
		{"#!/usr/bin/env by-lang\n", true},
		{"#!/usr/bin/env by-by\n", true},
		{"#!/usr/bin/env DIR/bin/lang\n", true},
		{"#!/usr/bin/env -S lang\n", true},
		{"#!/usr/bin/env -Slang -a -b=c,d:@e%f\n", true},
		{"#!/usr/bin/env -S  lang \t -a   b \n", true},
		{"#!/usr/bin/env --split-string=lang -a\n", true},
		{"#!/usr/bin/env -S LANG=C PYTHONUTF8=1 lang -a X=2\n", true},
		{"#!/usr/bin/env -S DIR/bin/by-env -q\n", true},
		{"#!/usr/bin/env -S -v lang\n", false},

		{"#!/usr/bin/env\n", false},
		{"#!/usr/bin/env -S\n", false},
		{"#!/usr/bin/env X=1 lang\n", false},
		{"#!/usr/bin/env X=1\n", false},
		{"#!/usr/bin/env lang -a\n", false},
		{"#!/usr/bin/env -i lang\n", false},
		{"#!/usr/bin/env - lang\n", false},
		{"#!/usr/bin/env -\n", false},
		{"#!/usr/bin/env -vS lang\n", false},
		{"#!/usr/bin/env -iS lang\n", false},
		{"#!/usr/bin/env --split=lang\n", false},
		{"#!/usr/bin/env --split-string lang\n", false},
		{"#!/usr/bin/env -S -u X lang\n", false},
		{"#!/usr/bin/env -S -C / bin/lang\n", false},
		{"#!/usr/bin/env -S -P DIR/bin lang\n", false},
		{"#!/usr/bin/env -S -- lang\n", false},
		{"#!/usr/bin/env -S --argv0=x lang\n", false},
		{"#!/usr/bin/env -S --ignore-signal lang\n", false},
		{"#!/usr/bin/env -S -0 lang\n", false},
		{"#!/usr/bin/env -S X='a lang b' DIR/bin/other\n", false},
		{"#!/usr/bin/env -S LANG='a lang b' DIR/bin/other\n", false},
		{"#!/usr/bin/env -S \"lang\"\n", false},
		{"#!/usr/bin/env -S lang 'a b'\n", false},
		{"#!/usr/bin/env -S lang\\_-a\n", false},
		{"#!/usr/bin/env -S lang \\c -a\n", false},
		{"#!/usr/bin/env -S lang # -a\n", false},
		{"#!/usr/bin/env -S ${HOME}/lang\n", false},
		{"#!/usr/bin/env -S lang ${PATH}\n", false},
		{"#!/usr/bin/env -S PATH=DIR/own env lang\n", false},
		{"#!/usr/bin/env -S LD_PRELOAD=DIR/x lang\n", false},
		{"#!/usr/bin/env -S PYTHONSTARTUP=x lang\n", false},
		{"#!/usr/bin/env -S LANG=/DIR/x lang\n", false},
		{"#!/usr/bin/env -S =x lang\n", false},
		{"#!/usr/bin/env bin/lang\n", false},
		{"#!/usr/bin/env ./lang\n", false},
		{"#!/usr/bin/env no-such-program-x\n", false},
		{"#!/usr/bin/env text\n", false},
		{"#!DIR/bin/text\n", false},
		{"#!/usr/bin/env -S env lang\n", true}, // bin/env, which is first on PATH and none of the system's

		{"#!DIR/own/env lang\n", true},
		{"#!DIR/own/env -S X='a lang b' DIR/bin/other\n", true},
		{"#!DIR/copy/env lang\n", false},
		{"#!DIR/copy/renamed lang\n", false},
	} {
		if followed := w.compare(t, tt.text); followed != tt.followed {
			_, err := Lookup(filepath.Join(w.dir, "script"), w.o)
			t.Errorf("first line %q: followed %v (%v), want %v", tt.text, followed, err, tt.followed)
		}
	}

	// §9.5: env(1) by its name alone, and by its quoting.
	w.script(t, "#!DIR/own/env lang\n")
	p, err := Lookup(filepath.Join(w.dir, "script"), w.o)
	if err != nil || len(p.Interpreters) != 1 || p.Interpreters[0].Path != filepath.Join(w.dir, "own/env") || p.Interpreters[0].IsEnv {
		t.Errorf("Lookup of a script with an env of its own = %+v, %v, want that env as its interpreter", p, err)
	}
}

// Random lines are refused, or do what was foretold.
func TestChainOfRandomLines(t *testing.T) {
	w := newChainWorld(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	blank := func() string { return pick(" ", " ", " ", "\t", "  ", " \t ") }
	programs := []string{"lang", "lang", "other", "by-lang", "by-env", "by-by", "DIR/bin/lang", "DIR/link/lang", "DIR/bin/by-three", "bin/lang", "text", "env", "/usr/bin/env"}
	words := []string{"-a", "b", "c=d", "LANG=C", "X=1", "-", "--", "-S", "'q r'", "\"", "\\_", "\\c", "$X", "${PATH}", "#", "#x", "x#", "~", "*", "%", "\v", "\r", "é", "-u", "-i"}
	starts := []string{"/usr/bin/env", "/usr/bin/env", "/usr/bin/env", "/bin/env", "DIR/link/env", "DIR/link/to-env", "DIR/own/env", "DIR/copy/env", "DIR/bin/lang", "DIR/bin/by-lang", "DIR/bin/by-env", "bin/lang"}
	options := []string{"", "", "", "-S", "-S", "-S ", "-S\t", "--split-string=", "-vS", "-i ", "-S -i ", "-u X ", "-S -u X ", "--", "-P /bin "}
	line := func() string {
		var b strings.Builder
		b.WriteString("#!" + pick("", "", " ", "\t") + pick(starts...) + blank() + pick(options...))
		for range r.IntN(3) / 2 {
			b.WriteString(pick("LANG=C", "TERM=x", "X=1", "PATH=/", "LC_ALL=") + blank())
		}
		b.WriteString(pick(programs...))
		for range r.IntN(4) / 2 {
			b.WriteString(blank() + pick(words...))
		}
		b.WriteString(pick("", "", " ", "\t ", "\r", "\x00"))
		text := b.String()
		if r.IntN(4) == 0 { // one byte more, less, or another
			at := 2 + r.IntN(len(text)-2)
			text = text[:at] + pick("", " ", "\\", "'", "=", "-", "/", string(rune(1+r.IntN(126)))) + text[min(len(text), at+r.IntN(2)):]
		}
		return text + pick("\n", "\n", "\n", "\n\n", "\necho\n", "")
	}
	const enough = 150
	followed, tried := 0, 0
	for end := time.Now().Add(20 * time.Second); followed < enough && time.Now().Before(end) && !t.Failed(); tried++ {
		if w.compare(t, line()) {
			followed++
		}
	}
	t.Logf("%d of %d lines were followed", followed, tried)
	if followed < enough/10 {
		t.Errorf("%d of %d lines were followed, which says too little", followed, tried)
	}
}

// Another program under the name that env(1) looks for is an error.
func TestChainOnAnotherPath(t *testing.T) {
	w := newChainWorld(t)
	grow(t, w.dir, map[string]string{"first/lang*": "#!/bin/sh\n", "data/lang": "no program"})
	p, err := Lookup(w.script(t, "#!/usr/bin/env lang\n"), w.o)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(w.dir, name) }
	for path, ok := range map[string]bool{
		at("bin"):                         true,
		"/usr/bin:" + at("bin"):           true,
		at("data") + ":" + at("bin"):      true, // env(1) skips files that it cannot start
		at("gone") + ":" + at("bin"):      true,
		at("first") + ":" + at("bin"):     false,
		at("link") + ":" + at("bin"):      false,
		"":                                false,
		":" + at("bin"):                   false, // the working folder
		"bin:" + at("bin"):                false,
		"/usr/bin:/bin":                   false,
		at("bin/../bin") + ":/usr/bin":    true,
		at("bin") + ":" + at("first"):     true,
		at("bin") + ":.":                  true,
		"/proc/self/cwd/bin:" + at("bin"): false,
	} {
		if err := p.CheckSearch([]string{"PATH=/usr/bin", "PATH=" + path}); (err == nil) != ok {
			t.Errorf("CheckSearch with the PATH %q = %v, want success %v", path, err, ok)
		}
	}
}
