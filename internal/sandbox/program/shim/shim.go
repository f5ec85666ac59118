// Package shim finds out what a version manager's shim would start. It knows the shims
// of pyenv, asdf, mise, Volta and rustup.
//
// Version managers put shims on PATH: small, identical programs that find out which
// version of a tool is wanted here, and start it. In a sandbox, a shim would need its
// manager, the manager's files, and everything that it reads to decide. A person who
// approves a shim would not know what will run. So this package reads the files that the
// shim would read. It runs no part of a manager; if only the manager could tell, it
// returns an error.
//
// The package does not check the program that it names; package program does.
package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// Options say where a shim looks for the version that is wanted.
type Options struct {
	Environ Environ
	Dir     string   // absolute folder that versions are chosen for; empty: no folder's files count
	Exclude []string // absolute folders whose files do not count, each in all its spellings: the pack and the workspace
}

// A Shim is a version manager's shim, with the program that it was found for.
type Shim struct {
	Manager string // "pyenv"
	Path    string // absolute, of the shim itself
	Name    string // of the program that is wanted
	Dir     string // the folder to skip when searching the rest of PATH

	root string // absolute, of the manager's files
	text string // of the shim, if it is a script
	o    Options
}

// ErrOnPath says that the manager does not have the program, and would look for it in the
// rest of PATH.
var ErrOnPath = errors.New("not one of the manager's programs")

// At returns the shim at path, or nil if there is none. It knows no shims of Windows.
func At(path string, o Options) *Shim {
	if runtime.GOOS == "windows" {
		return nil
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	name := filepath.Base(path)
	s := &Shim{Path: path, Name: name, Dir: filepath.Dir(path), o: o}
	if paths.Inside(s.o.Exclude, resolved) {
		return nil // a pack cannot choose where versions are
	}
	dir := filepath.Dir(resolved)
	switch base := filepath.Base(resolved); {
	case base == "mise" && name != "mise" && !strings.HasPrefix(name, "mise-"):
		s.Manager, s.root = "mise", o.Environ.miseRoot(s.Dir)
	case base == "volta-shim" && name != base:
		s.Manager, s.root = "Volta", o.Environ.voltaRoot(s.Dir)
	case isRustupProxy(path, resolved):
		s.Manager, s.root = "rustup", cmp.Or(o.Environ.path("RUSTUP_HOME"), o.Environ.inHome(".rustup"))
	case filepath.Base(dir) == "shims":
		text, err := file.Text(resolved)
		if err != nil || !strings.HasPrefix(text, "#!") {
			return nil
		}
		s.text = text
		if root, ok := pyenvRoot(text); ok {
			s.Manager, s.Dir, s.root = "pyenv", dir, root
		} else if len(asdfTools(text)) > 0 {
			s.Manager, s.Name, s.Dir, s.root = "asdf", base, dir, filepath.Dir(dir)
		} else {
			return nil
		}
	default:
		return nil
	}
	return s
}

// Target returns the program that the shim would start, or [ErrOnPath].
func (s *Shim) Target() (string, error) {
	switch {
	case !filepath.IsAbs(s.root):
		return "", errors.New("its folder is not known, as HOME is not set")
	case paths.Inside(s.o.Exclude, s.root):
		return "", errors.New("its folder is in the pack or the workspace")
	case s.Name != filepath.Base(s.Name) || strings.HasPrefix(s.Name, "."):
		return "", fmt.Errorf("%q is not the name of a program", s.Name)
	}
	switch s.Manager {
	case "pyenv":
		return s.pyenv()
	case "asdf":
		return s.asdf()
	case "mise":
		return s.mise()
	case "Volta":
		return s.volta()
	}
	return s.rustup()
}

// versionDirs returns the folders whose version files count, nearest first: Dir and all
// folders above it, but not those of the pack and the workspace, which must not choose
// the user's programs.
func (s *Shim) versionDirs() []string {
	if !filepath.IsAbs(s.o.Dir) {
		return nil
	}
	var dirs []string
	for dir := filepath.Clean(s.o.Dir); ; dir = filepath.Dir(dir) {
		if !paths.Inside(s.o.Exclude, dir) {
			dirs = append(dirs, dir)
		}
		if dir == filepath.Dir(dir) {
			return dirs
		}
	}
}

// read returns the text of a version file. The error for a missing file is
// fs.ErrNotExist. It follows links, but not into the pack or the workspace.
func (s *Shim) read(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fs.ErrNotExist
	case err != nil:
		return "", fmt.Errorf("%q cannot be read", path)
	case paths.Inside(s.o.Exclude, resolved):
		return "", fmt.Errorf("%q leads into the pack or the workspace", path)
	}
	text, err := file.Text(resolved)
	if err != nil {
		return "", fmt.Errorf("%q cannot be read: %s", path, paths.Cause(err))
	}
	return text, nil
}

// checkName returns an error unless name, of a version or a tool, may be part of a path
// and of a message. The error does not repeat the name: the file may be a link to a
// secret one.
func checkName(what, name, source string) error {
	ok := name != "" && len(name) <= 128 && name[0] != '.' && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._+-", r))
	})
	if !ok {
		return fmt.Errorf("%s names a %s that is not a plain word", source, what)
	}
	return nil
}

// latest returns the name of the folder in dir for a version: the version itself or, as
// managers do, the highest that begins with it. "3.12" means 3.12.4.
func latest(dir, version string) (string, bool) {
	if file.IsDir(filepath.Join(dir, version)) {
		return version, true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", false
	}
	prefix := version + "."
	if version == "latest" {
		prefix = ""
	}
	var best string
	var bestNumbers []int
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		if numbers, plain := numbersOf(rest); ok && plain && e.IsDir() && slices.Compare(numbers, bestNumbers) > 0 {
			best, bestNumbers = e.Name(), numbers
		}
	}
	return best, best != ""
}

// numbersOf returns the numbers of "12.4.1".
func numbersOf(version string) ([]int, bool) {
	var numbers []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}
