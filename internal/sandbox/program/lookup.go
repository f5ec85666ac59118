// Package program finds the program that a name means: on the user's PATH, in a pack
// or behind a version manager's shim. It also finds a script's interpreters and the
// installation that a program needs. [Lookup] fixes its path and the digest of its
// bytes, and [Lookuper.Verify] checks later that it is unchanged.
//
// It starts nothing, and does not decide whether a program may run.
package program

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// A Program is a program as it was found. Its fields describe one state of the disk: a
// run is refused if they no longer match.
type Program struct {
	Name     string // as it was asked for
	Path     string // absolute, as found, not a shim; it is shown to a person and started
	Resolved string // Path with every symbolic link followed
	Digest   string // SHA-256 of the bytes of Resolved, in hex

	// Interpreters are the programs that run a script, in the order in which they are
	// started: the one in its first line, the one in that program's first line, and the
	// one that env(1) starts. The last is a binary. Empty for a binary.
	Interpreters []Interpreter

	// Shim is the absolute path of the version manager's shim (pyenv, asdf, mise, Volta,
	// rustup) that was found under Name and leads to Path; it is not started. Empty:
	// there was none.
	Shim string

	// Needs lists absolute folders and files outside the system's that the program and
	// its interpreter need: the installation in the user's home that holds them, or else
	// only their files. A run may read them. No link leads to any of them, none is
	// inside another, and none is in the pack or the workspace.
	Needs []string

	// Links are the symbolic links, outside the system's folders and Needs, through
	// which the program's and the interpreter's paths lead there.
	Links []paths.Link
}

// PathDirs returns the folders to put before a run's PATH, so that the run itself
// finds what was approved: the folders of the interpreters that env(1) looks for, and
// of the program behind a shim, since the shim may be missing or may not work in the
// run. System folders stay where PATH has them, unless something would come before
// them. A folder that PATH cannot express is left out.
func (p Program) PathDirs() []string {
	system := paths.SystemDirs()
	var dirs []string
	program := filepath.Dir(p.Path)
	first := p.Shim != "" && !paths.Inside(system, program)
	named := false // an interpreter other than env(1)
	for _, i := range p.Interpreters {
		dir := filepath.Dir(i.Path)
		if wanted := i.OnPath || !i.IsEnv && !named; wanted && (first || !paths.Inside(system, dir)) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		named = named || !i.IsEnv
	}
	if first && !slices.Contains(dirs, program) {
		dirs = append(dirs, program)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return strings.ContainsRune(dir, filepath.ListSeparator) })
}

// Files returns the paths that are started for p, in the order in which Verify checks
// them.
func (p *Program) Files() []string {
	paths := []string{p.Path}
	for _, i := range p.Interpreters {
		paths = append(paths, i.Path)
	}
	return paths
}

// LookupOptions says where programs are.
type LookupOptions struct {
	Path    string   // the user's PATH
	Exclude []string // absolute folders where a bare name finds no programs: the pack and the workspace
	PackDir string   // absolute folder that ./NAME is relative to; empty: such names are not found

	// Environ is the user's environment (KEY=value, as from os.Environ). It tells where
	// the home is, and version managers use it. Without a home, no folder counts as an
	// installation.
	Environ []string

	// Dir is the absolute folder for which version managers choose versions, by files
	// there and above: the project, or where the server was started. A pack never
	// chooses it, and files in Exclude do not count. Empty: no files count.
	Dir string
}

// Lookup is [Lookuper.Lookup] without remembered digests.
func Lookup(name string, o LookupOptions) (Program, error) {
	return new(Lookuper).Lookup(name, o)
}

// A Lookuper finds programs. It remembers the digests of unchanged files above 64
// MiB, and of those that only root can change. The zero value is ready. Safe for
// concurrent use.
type Lookuper struct {
	digests digestCache
}

// Lookup finds the program that name means: an absolute path, ./PATH inside the pack,
// or a bare name on the user's PATH. Only folders of PATH that [FilterPath] keeps
// count.
//
// The error is a [*NotFoundError], a [*NotExecutableError], or an error from reading
// the file.
func (l *Lookuper) Lookup(name string, o LookupOptions) (Program, error) {
	if problem := nameProblem(name); problem != "" {
		return Program{}, &NotFoundError{Name: name, Problem: problem}
	}
	switch {
	case filepath.IsAbs(name):
		return l.absolute(name, o)
	case strings.HasPrefix(name, "./"):
		return l.inPack(name, o)
	case strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) || name == "." || name == "..":
		return Program{}, &NotFoundError{Name: name, Problem: "a path must be absolute, or begin with ./ and stay inside the pack"}
	}
	path, err := l.onPath(name, o, nil)
	if err != nil {
		return Program{}, err
	}
	return l.program(name, path, o)
}

// nameProblem says why name cannot name a program, on any system or on this one.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case strings.ContainsRune(name, 0):
		return "the name has a NUL byte"
	}
	return systemNameProblem(name)
}

func (l *Lookuper) absolute(name string, o LookupOptions) (Program, error) {
	path := filepath.Clean(name)
	switch problem, err := file.Executable(path); {
	case errors.Is(err, fs.ErrNotExist):
		return Program{}, &NotFoundError{Name: name, Problem: "no such file"}
	case problem != "":
		return Program{}, &NotExecutableError{Name: name, Path: path, Problem: problem}
	}
	return l.program(name, path, o)
}

func (l *Lookuper) inPack(name string, o LookupOptions) (Program, error) {
	notFound := func(problem string) (Program, error) {
		return Program{}, &NotFoundError{Name: name, Problem: problem}
	}
	rel := strings.TrimLeft(strings.TrimPrefix(name, "./"), "/")
	if o.PackDir == "" || !filepath.IsAbs(o.PackDir) {
		return notFound("there is no pack to look in")
	}
	if rel == "" {
		return notFound("the path names no file")
	}
	if slices.Contains(strings.Split(filepath.ToSlash(rel), "/"), "..") || !filepath.IsLocal(rel) {
		return notFound("the path leads out of the pack")
	}
	root, err := os.OpenRoot(o.PackDir)
	if err != nil {
		return notFound("the pack's folder cannot be opened")
	}
	defer root.Close()

	// Root refuses a link out of the pack. Its file is compared with what the
	// path means outside the Root, since that path is what will be started.
	info, err := root.Stat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return notFound("no such file in the pack")
	} else if err != nil {
		return notFound("not a file inside the pack")
	}
	path := filepath.Join(o.PackDir, rel)
	if outside, err := os.Stat(path); err != nil || !os.SameFile(info, outside) {
		return notFound("not a file inside the pack")
	}
	switch problem, err := file.Executable(path); {
	case errors.Is(err, fs.ErrNotExist):
		return notFound("no such file in the pack")
	case problem != "":
		return Program{}, &NotExecutableError{Name: name, Path: path, Problem: problem}
	}
	return l.program(name, path, o)
}

// onPath returns the path of the first program called name, passing over the
// folders skip.
func (l *Lookuper) onPath(name string, o LookupOptions, skip []string) (string, error) {
	skip = paths.Spellings(skip)
	dirs := slices.DeleteFunc(pathDirs(o.Path, o.Exclude), func(dir string) bool {
		resolved, err := filepath.EvalSymlinks(dir)
		return err != nil || slices.Contains(skip, dir) || slices.Contains(skip, resolved)
	})
	exclude := paths.Spellings(o.Exclude)
	var refused *NotExecutableError
	for _, dir := range dirs {
		path := filepath.Join(dir, executableName(name))
		problem, err := file.Executable(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if problem == "" {
			if resolved, err := filepath.EvalSymlinks(path); err != nil || paths.Inside(exclude, resolved) {
				problem = "leads into the pack or the workspace"
			}
		}
		if problem == "" {
			return path, nil
		}
		if refused == nil {
			refused = &NotExecutableError{Name: name, Path: path, Problem: problem}
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", &NotFoundError{Name: name, Problem: "not found on PATH", Near: near(name, dirs)}
}

// program returns the Program at path, or the one behind it if that is a shim.
func (l *Lookuper) program(name, path string, o LookupOptions) (Program, error) {
	path, shim, err := l.follow(name, path, o)
	if err != nil {
		return Program{}, err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Program{}, unreadable(name, path, err) // it existed a moment ago
	}
	if err != nil {
		return Program{}, &NotExecutableError{Name: name, Path: path, Problem: "is a link that cannot be followed"}
	}
	if problem := shifting(path); problem != "" {
		return Program{}, &NotExecutableError{Name: name, Path: path, Problem: problem}
	}
	p := Program{Name: name, Path: path, Resolved: resolved, Shim: shim}
	in := newInstallation(o)
	in.add(path)
	var head []byte
	if p.Digest, head, err = l.digests.file(resolved); err != nil {
		return Program{}, unreadable(name, path, err)
	}
	if runtime.GOOS != "windows" {
		if err := l.chain(&p, head, in, o); err != nil {
			return Program{}, err
		}
	}
	p.Needs, p.Links = in.found()
	return p, nil
}

// unreadable returns the error for a program that exists but could not be read. It
// cannot be approved without its bytes.
func unreadable(name, path string, err error) error {
	if errors.Is(err, errChanging) || errors.Is(err, fs.ErrNotExist) {
		return &ChangedError{Name: name, Path: path, Err: err} // it may be readable another time
	}
	if errors.Is(err, fs.ErrPermission) {
		return &NotExecutableError{Name: name, Path: path, Problem: "cannot be read, so its bytes cannot be checked"}
	}
	return &NotExecutableError{Name: name, Path: path, Problem: "cannot be read: " + paths.Cause(err)}
}

// A Checked is a file whose bytes are those that were approved.
type Checked struct {
	Path  string
	Stamp paths.Stamp
}

// Verify returns a [*ChangedError] if p has changed, and otherwise the files that it checked: the
// program's, and the interpreters' if it is a script. It misses later writes to these files, and
// the changes that digestCache documents. If other files are in their place by the time the system
// starts them, the level notices if it can compare.
func (l *Lookuper) Verify(p Program) (checked []Checked, err error) {
	check := func(path, wantResolved, wantDigest string) error {
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			return &ChangedError{Name: p.Name, Path: path, Err: err}
		}
		if resolved != wantResolved {
			return &ChangedError{Name: p.Name, Path: path}
		}
		switch e, err := l.digests.entry(resolved); {
		case err != nil:
			return &ChangedError{Name: p.Name, Path: path, Err: err}
		case e.digest != wantDigest:
			return &ChangedError{Name: p.Name, Path: path}
		default:
			checked = append(checked, Checked{path, e.stamp})
		}
		return nil
	}
	if err := check(p.Path, p.Resolved, p.Digest); err != nil {
		return nil, err
	}
	for _, i := range p.Interpreters {
		if err := check(i.Path, i.Resolved, i.Digest); err != nil {
			return nil, err
		}
	}
	// The paths that the approved run may read must still lead to the same places. Where
	// a shim leads now does not matter, since it is not started.
	for _, path := range p.Needs {
		if resolved, err := filepath.EvalSymlinks(path); err != nil || !paths.Same(resolved, path) {
			return nil, &ChangedError{Name: p.Name, Path: path, Err: err}
		}
	}
	for _, link := range p.Links {
		if target, err := os.Readlink(link.Path); err != nil || target != link.Target {
			return nil, &ChangedError{Name: p.Name, Path: link.Path, Err: err}
		}
	}
	return checked, nil
}
