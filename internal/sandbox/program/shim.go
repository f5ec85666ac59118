package program

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
)

// Version managers put shims on PATH: small programs, all alike, that find out
// which version of a tool is wanted here and start that. In a sandbox, a shim
// would need its manager, its files, and whatever it reads to decide; and a
// person who approves a shim has not been told what will run. So shims are
// followed, by reading the files that they would read. Nothing of a manager is
// run, and what only running it could tell is an error.

// A shim is one of a manager's, and what is asked of it.
type shim struct {
	manager string   // "pyenv"
	path    string   // absolute, of the shim itself
	name    string   // of the program that is wanted
	dir     string   // the folder that is passed over when the rest of PATH is asked
	root    string   // absolute, of the manager's files
	text    string   // of the shim, when it is a script
	exclude []string // see LookupOptions, in both spellings
	o       LookupOptions
}

// errOnPath is the answer of a manager that leaves a program to the rest of
// PATH.
var errOnPath = errors.New("not one of the manager's programs")

// maxShims is how many shims lead to each other at most: one manager may leave
// a program to the next.
const maxShims = 8

// follow returns the program that is started for name when path is, which is
// path itself if it is no shim.
func (l *Lookuper) follow(name, path string, o LookupOptions) (real, first string, err error) {
	var skip []string
	for range maxShims {
		s := shimAt(path, o)
		if s == nil {
			return path, first, nil
		}
		first = cmp.Or(first, s.path)
		target, err := s.target()
		if errors.Is(err, errOnPath) {
			skip = append(skip, s.dir)
			target, err = l.onPath(s.name, o, skip)
			if err != nil {
				err = fmt.Errorf("it leaves %q to the rest of PATH, where it is not found", s.name)
			}
		} else if err == nil {
			err = s.check(target)
		}
		if err != nil {
			return "", "", s.error(name, err)
		}
		path = target
	}
	return "", "", &NotFoundError{Name: name, Problem: fmt.Sprintf("%q is a shim that leads from one shim to the next", first)}
}

// shimAt returns the shim at path, or nil when that is none. On Windows, none
// is known.
func shimAt(path string, o LookupOptions) *shim {
	if runtime.GOOS == "windows" {
		return nil
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	name := filepath.Base(path)
	s := &shim{
		path: path, name: name, dir: filepath.Dir(path), o: o,
		exclude: paths.Spellings(append([]string{o.PackDir}, o.Exclude...)),
	}
	if paths.Inside(s.exclude, resolved) {
		return nil // a pack has no say in where versions are
	}
	dir := filepath.Dir(resolved)
	switch base := filepath.Base(resolved); {
	case base == "mise" && name != "mise" && !strings.HasPrefix(name, "mise-"):
		s.manager, s.root = "mise", o.miseRoot(s.dir)
	case base == "volta-shim" && name != base:
		s.manager, s.root = "Volta", o.voltaRoot(s.dir)
	case isRustupProxy(path, resolved):
		s.manager, s.root = "rustup", cmp.Or(o.envPath("RUSTUP_HOME"), o.inHome(".rustup"))
	case filepath.Base(dir) == "shims":
		text, err := readSmall(resolved)
		if err != nil || !strings.HasPrefix(text, "#!") {
			return nil
		}
		s.text = text
		if root, ok := pyenvRoot(text); ok {
			s.manager, s.dir, s.root = "pyenv", dir, root
		} else if len(asdfTools(text)) > 0 {
			s.manager, s.name, s.dir, s.root = "asdf", base, dir, filepath.Dir(dir)
		} else {
			return nil
		}
	default:
		return nil
	}
	return s
}

// target returns the program that the shim would start, or errOnPath.
func (s *shim) target() (string, error) {
	switch {
	case !filepath.IsAbs(s.root):
		return "", errors.New("its folder is not known, as HOME is not set")
	case paths.Inside(s.exclude, s.root):
		return "", errors.New("its folder is in the pack or the workspace")
	case s.name != filepath.Base(s.name) || strings.HasPrefix(s.name, "."):
		return "", fmt.Errorf("%q is no name of a program", s.name)
	}
	switch s.manager {
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

// check says why nobody should start target on the word of a manager.
func (s *shim) check(target string) error {
	resolved, err := filepath.EvalSymlinks(target)
	if err != nil {
		return fmt.Errorf("%q, where it leads, is a link that cannot be followed", target)
	}
	if problem, _ := executable(target); problem != "" {
		return fmt.Errorf("%q, where it leads, %s", target, problem)
	}
	for _, path := range []string{target, resolved} {
		if paths.Inside(s.exclude, path) {
			return fmt.Errorf("%q, where it leads, is in the pack or the workspace", target)
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || writableByOthers(info) {
			return fmt.Errorf("%q, where it leads, is in a folder that others may write to", target)
		}
	}
	return nil
}

// error says that the shim cannot be followed, and what to do.
func (s *shim) error(name string, err error) error {
	return &NotFoundError{Name: name, Problem: fmt.Sprintf(
		"%q is a shim of %s that cannot be followed: %v; name the program by its absolute path instead", s.path, s.manager, err)}
}

// home returns the user's home folder, or "".
func (o *LookupOptions) home() string {
	if runtime.GOOS == "windows" {
		return o.envPath("USERPROFILE")
	}
	return o.envPath("HOME")
}

// inHome returns a path below the home, or "" when that is not known.
func (o *LookupOptions) inHome(name string) string {
	if home := o.home(); home != "" {
		return filepath.Join(home, name)
	}
	return ""
}

// env returns the value of one of the user's environment variables.
func (o *LookupOptions) env(name string) string {
	for _, kv := range slices.Backward(o.Environ) {
		if n, value, ok := strings.Cut(kv, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// envPath is env for a variable that has an absolute path; any other value is
// as good as none.
func (o *LookupOptions) envPath(name string) string {
	if value := o.env(name); filepath.IsAbs(value) && !strings.ContainsRune(value, 0) {
		return filepath.Clean(value)
	}
	return ""
}

// versionDirs returns the folders where files of versions count, the nearest
// first: Dir and all above it, without those of the pack and the workspace,
// which must not choose a person's programs.
func (s *shim) versionDirs() []string {
	if !filepath.IsAbs(s.o.Dir) {
		return nil
	}
	var dirs []string
	for dir := filepath.Clean(s.o.Dir); ; dir = filepath.Dir(dir) {
		if !paths.Inside(s.exclude, dir) {
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
func (s *shim) read(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fs.ErrNotExist
	case err != nil:
		return "", fmt.Errorf("%q cannot be read", path)
	case paths.Inside(s.exclude, resolved):
		return "", fmt.Errorf("%q leads into the pack or the workspace", path)
	}
	text, err := readSmall(resolved)
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
		return fmt.Errorf("%s names a %s that is no plain word", source, what)
	}
	return nil
}

// latest returns the name of the folder in dir that is version or, as managers
// understand it, the highest that begins with it: "3.12" is 3.12.4.
func latest(dir, version string) (string, bool) {
	if isDir(filepath.Join(dir, version)) {
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

// runnable reports whether the file at path can be started.
func runnable(path string) bool {
	problem, err := executable(path)
	return problem == "" && err == nil
}
