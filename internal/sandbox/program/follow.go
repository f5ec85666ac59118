package program

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/shim"
)

// maxShims is how many shims may follow each other: one manager may pass a program on
// to the next.
const maxShims = 8

// shims returns the options for reading shims.
func (o *LookupOptions) shims() shim.Options {
	return shim.Options{Environ: o.Environ, Dir: o.Dir, Exclude: paths.Spellings(append([]string{o.PackDir}, o.Exclude...))}
}

// follow returns the program that runs when path is started for name: path itself, unless
// it is a shim. first is the path of the first shim, if any.
func (l *Lookuper) follow(name, path string, o LookupOptions) (real, first string, err error) {
	from := o.shims()
	var skip []string
	for range maxShims {
		s := shim.At(path, from)
		if s == nil {
			return path, first, nil
		}
		first = cmp.Or(first, s.Path)
		target, err := s.Target()
		if errors.Is(err, shim.ErrOnPath) {
			skip = append(skip, s.Dir)
			target, err = l.onPath(s.Name, o, skip)
			if err != nil {
				err = fmt.Errorf("it leaves %q to the rest of PATH, where it is not found", s.Name)
			}
		} else if err == nil {
			err = checkTarget(target, from.Exclude)
		}
		if err != nil {
			return "", "", shimError(s, name, err)
		}
		path = target
	}
	return "", "", &NotFoundError{Name: name, Problem: fmt.Sprintf("%q is a shim that leads from one shim to the next", first)}
}

// checkTarget returns an error if the program that a manager names must not be started.
func checkTarget(target string, exclude []string) error {
	resolved, err := filepath.EvalSymlinks(target)
	if err != nil {
		return fmt.Errorf("%q, where it leads, is a link that cannot be followed", target)
	}
	if problem, _ := file.Executable(target); problem != "" {
		return fmt.Errorf("%q, where it leads, %s", target, problem)
	}
	for _, path := range []string{target, resolved} {
		if paths.Inside(exclude, path) {
			return fmt.Errorf("%q, where it leads, is in the pack or the workspace", target)
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || file.WritableByOthers(info) {
			return fmt.Errorf("%q, where it leads, is in a folder that others may write to", target)
		}
	}
	return nil
}

// shimError returns the error for a shim that cannot be followed, with what to do.
func shimError(s *shim.Shim, name string, err error) error {
	return &NotFoundError{Name: name, Problem: fmt.Sprintf(
		"%q is a shim of %s that cannot be followed: %v; name the program by its absolute path instead", s.Path, s.Manager, err)}
}
