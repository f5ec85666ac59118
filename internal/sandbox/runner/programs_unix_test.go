//go:build unix

package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// plant makes files under a new folder, which it returns. A path that ends in "*" is
// executable, a value that begins with "-> " is a link's target, and ROOT/ in a value
// stands for the folder.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		name, exec := strings.CutSuffix(name, "*")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if exec {
			mode = 0o755
		}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(strings.ReplaceAll(text, "ROOT/", dir+"/")), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A run at this machine's level finds what was looked up: the program behind a shim,
// its installation, the links to it, and the interpreter that env(1) looks for.
func TestRunWhatShimsStandFor(t *testing.T) {
	const pyenvShim = "#!/usr/bin/env bash\nprogram=\"${0##*/}\"\nexport PYENV_ROOT=\"ROOT/home/.pyenv\"\n" +
		"exec \"ROOT/home/.pyenv/libexec/pyenv\" exec \"$program\" \"$@\"\n"
	dir := plant(t, map[string]string{
		"home/.pyenv/shims/lang*":         pyenvShim,
		"home/.pyenv/version":             "1",
		"home/.pyenv/versions/1":          "-> ../store/1.0",
		"home/.pyenv/store/1.0/lib/it":    "library",
		"home/.pyenv/store/1.0/bin/lang*": "#!/bin/sh\nread lib < \"${0%/*}/../lib/it\"\necho \"$lib, ${1##*/}\"\n",
		"home/.pyenv/store/1.0/bin/sub*":  "#!/bin/sh\nlang by-name\n",
		"home/.pyenv/shims/sub*":          pyenvShim,
		"home/ws/x":                       "",
		"home/ws/pack/script*":            "#!/usr/bin/env lang\n",
	})
	ws := filepath.Join(dir, "home/ws")
	o := program.LookupOptions{
		Path: filepath.Join(dir, "home/.pyenv/shims"), Environ: []string{"HOME=" + filepath.Join(dir, "home")},
		Exclude: []string{ws}, PackDir: filepath.Join(ws, "pack"),
	}
	r := New(Options{})
	for name, want := range map[string]string{
		"lang":     "library, argument\n",
		"sub":      "library, by-name\n",
		"./script": "library, script\n",
	} {
		p, err := program.Lookup(name, o)
		if err != nil {
			t.Fatal(err)
		}
		path := append(p.PathDirs(), "/usr/bin", "/bin")
		res, err := r.Run(t.Context(), sandbox.Policy{Writable: []string{ws}}, sandbox.Command{
			Program: p, Args: []string{"argument"}, Dir: ws, Env: []string{"PATH=" + strings.Join(path, ":"), "HOME=" + ws},
		})
		if err != nil {
			t.Errorf("Run(%q) = %v", name, err)
		} else if got := string(res.Stdout.Head); got != want || res.ExitCode != 0 {
			t.Errorf("Run(%q) at level %s = %q, status %d, %q, want %q", name, res.Level, got, res.ExitCode, res.Stderr.Head, want)
		}
	}
}

// A run is not started if env(1) would find a different program in its PATH.
func TestRunOnAnotherPath(t *testing.T) {
	dir := plant(t, map[string]string{
		"bin/lang*": "#!/bin/sh\n", "first/lang*": "#!/bin/sh\necho wrong >wrong\n", "script*": "#!/usr/bin/env lang\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	p, err := program.Lookup(at("script"), program.LookupOptions{Path: at("bin") + ":/usr/bin:/bin"})
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	for path, ok := range map[string]bool{at("bin"): true, at("first") + ":" + at("bin"): false} {
		_, err = r.Run(t.Context(), sandbox.Policy{Writable: []string{dir}}, sandbox.Command{Program: p, Dir: dir, Env: []string{"PATH=" + path + ":/usr/bin:/bin"}})
		if _, refused := errors.AsType[*program.NotFoundError](err); refused == ok || ok && err != nil {
			t.Errorf("Run with the PATH %q = %v, want it run: %v", path, err, ok)
		}
	}
	if _, err := os.Lstat(at("wrong")); err == nil {
		t.Error("the other program ran")
	}
}
