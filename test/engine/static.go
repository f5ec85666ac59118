package engine

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Statically runs the tests of the package in the working folder in a binary that a container
// can start, like packs-mcp itself: it needs no C library, so it has no race detector.
// Without names it runs the tests that this process was asked to run. done reports whether
// they ran; code is their exit status.
func Statically(names ...string) (code int, done bool) {
	self, err := os.Executable()
	if err != nil || static(self) {
		return 0, false
	}
	dir, err := os.MkdirTemp("", "packs-static-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, filepath.Base(self))
	build := exec.Command("go", "test", "-c", "-buildvcs=false", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building a static test: %v\n%s", err, out)
		return 1, true
	}
	args := os.Args[1:]
	if len(names) > 0 {
		args = []string{"-test.v", "-test.run=^(" + strings.Join(names, "|") + ")$"}
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			return max(e.ExitCode(), 1), true
		}
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// static reports whether a program needs no other file to start.
func static(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return true // not a Linux program
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
