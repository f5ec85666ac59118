// Package shim reads what a version manager's shim would start: pyenv's, asdf's,
// mise's, Volta's and rustup's.
//
// Version managers put shims on PATH: small programs, all alike, that find out
// which version of a tool is wanted here and start that. In a sandbox, a shim
// would need its manager, its files, and whatever it reads to decide; and a
// person who approves a shim has not been told what will run. So shims are
// followed, by reading the files that they would read. Nothing of a manager is
// run, and what only running it could tell is an error.
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
	Exclude []string // absolute folders that have no say, each in all its spellings: the pack and the workspace
}

// A Shim is one of a version manager's, and what is asked of it.
type Shim struct {
	Manager string // "pyenv"
	Path    string // absolute, of the shim itself
	Name    string // of the program that is wanted
	Dir     string // the folder to pass over when the rest of PATH is asked

	root string // absolute, of the manager's files
	text string // of the shim, when it is a script
	o    Options
}

// ErrOnPath is the answer of a manager that leaves a program to the rest of
// PATH.
var ErrOnPath = errors.New("not one of the manager's programs")

// At returns the shim at path, or nil when that is none. On Windows, none
// is known.
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
		return nil // a pack has no say in where versions are
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

// versionDirs returns the folders where files of versions count, the nearest
// first: Dir and all above it, without those of the pack and the workspace,
// which must not choose a person's programs.
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

// read returns the text of one of the files that versions are in. A file that
// is not there is fs.ErrNotExist. A link is followed, but not into the pack or
// the workspace.
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

// checkName reports whether name, of a version or a tool, may be part of a
// path and of a message. What else is in a file of versions is not repeated:
// the file may be a link to one that nobody should see.
func checkName(what, name, source string) error {
	ok := name != "" && len(name) <= 128 && name[0] != '.' && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._+-", r))
	})
	if !ok {
		return fmt.Errorf("%s names a %s that is not a plain word", source, what)
	}
	return nil
}

// latest returns the name of the folder in dir that is version or, as managers
// understand it, the highest that begins with it: "3.12" is 3.12.4.
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
