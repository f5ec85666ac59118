package program

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/shim"
)

// A script is run by another program: the kernel starts the one that the script's
// first line names, which may be a script itself, and env(1) starts the one that its
// arguments name. This file follows the chain of these programs before anything runs,
// so that a person is shown each of them, and each is compared before the start.
//
// Only a small part of what the kernel and env(1) accept is followed: the part that
// all systems read alike. Everything else is refused with a reason, since a guess
// could show a person one program and run another.

// An Interpreter is one program that is started to run a script.
type Interpreter struct {
	Name     string // as in the first line or env(1)'s argument
	Path     string // absolute, as found; this is started
	Resolved string // Path with every symbolic link followed
	Digest   string // SHA-256 of the bytes of Resolved, in hex

	// Args are its arguments before the script's path.
	Args []string

	// Env are the variables, NAME=value, that env(1) sets for it and for
	// everything that follows.
	Env []string

	IsEnv  bool // it is the system's env(1), which starts the next interpreter
	OnPath bool // env(1) looks for Name in the run's PATH
}

// maxInterpreters is how long a chain may be. The kernel gives up after fewer
// scripts, but starts counting again after env(1).
const maxInterpreters = 8

// chain completes p with the programs that run it, if it is a script. head are
// its first bytes.
func (l *Lookuper) chain(p *Program, head []byte, in *installation, o LookupOptions) error {
	script := p.Path
	for {
		line, ok, problem := firstLine(head)
		switch {
		case problem != "":
			return &NotExecutableError{Name: p.Name, Path: script, Problem: problem}
		case !ok && len(p.Interpreters) > 0 && !isBinary(head):
			// execvp(3), which env(1) calls, would give it to a shell.
			return &NotExecutableError{Name: p.Name, Path: script, Problem: `is neither a binary nor a script that begins with "#!"`}
		case !ok:
			return nil
		case len(p.Interpreters) >= maxInterpreters:
			return &NotExecutableError{Name: p.Name, Path: p.Path, Problem: fmt.Sprintf("is run by more than %d programs, one after the other", maxInterpreters)}
		}
		i, next, err := l.byKernel(script, line, in)
		if err != nil {
			return err
		}
		if i.IsEnv {
			started, err := envStarts(script, i.Args)
			if err != nil {
				return err
			}
			p.Interpreters = append(p.Interpreters, i)
			if i, next, err = l.byEnv(script, started, in, o); err != nil {
				return err
			}
		}
		if s := shim.At(i.Path, o.shims()); s != nil && !i.OnPath {
			// The kernel or env(1) starts exactly this path.
			return &NotFoundError{Name: i.Name, NeededBy: script, Problem: fmt.Sprintf(
				"it is a shim of %s; name the interpreter itself in the first line of the script, or \"#!/usr/bin/env %s\"", s.Manager, s.Name)}
		}
		p.Interpreters = append(p.Interpreters, i)
		script, head = i.Path, next
	}
}

// firstLine returns the first line of a script without "#!" and surrounding blanks.
// ok reports whether it is a script; problem says why the kernel would refuse the
// line, or why it cannot be shown.
func firstLine(head []byte) (line string, ok bool, problem string) {
	text, ok := strings.CutPrefix(string(head), "#!")
	if !ok {
		return "", false, ""
	}
	line, _, whole := strings.Cut(text, "\n")
	switch {
	case !whole:
		return "", true, fmt.Sprintf("has a first line of more than %d bytes, or one that does not end; shorten it, and end it with a line break", headSize-1)
	case strings.ContainsFunc(strings.TrimSuffix(line, "\r"), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "", true, "has a control character in its first line; remove it"
	}
	if line = strings.Trim(line, " \t"); line == "" {
		return "", true, "names no interpreter in its first line"
	}
	return line, true, ""
}

// isBinary reports whether head begins a file that the kernel starts without another
// program.
func isBinary(head []byte) bool {
	magic := []string{"\x7fELF"}
	if runtime.GOOS == "darwin" {
		magic = []string{"\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\xca\xfe\xba\xbf"}
	}
	return slices.ContainsFunc(magic, func(m string) bool { return strings.HasPrefix(string(head), m) })
}

// byKernel returns the program that the kernel starts for a script with this
// first line, and that program's first bytes.
func (l *Lookuper) byKernel(script, line string, in *installation) (i Interpreter, head []byte, err error) {
	i.Name = line
	if end := strings.IndexAny(line, " \t"); end >= 0 {
		i.Name, i.Args = line[:end], []string{strings.TrimLeft(line[end:], " \t")}
	}
	if strings.HasSuffix(line, "\r") {
		return i, nil, &NotFoundError{Name: strings.TrimSuffix(i.Name, "\r"), NeededBy: script,
			Problem: "the first line of the script ends in a carriage return; save it with Unix line ends"}
	}
	head, err = l.interpreter(&i, script, "", in)
	return i, head, err
}

// byEnv returns the program that env(1) starts, and its first bytes.
func (l *Lookuper) byEnv(script string, i Interpreter, in *installation, o LookupOptions) (Interpreter, []byte, error) {
	var path string
	if !strings.ContainsRune(i.Name, '/') {
		i.OnPath = true
		var err error
		if path, err = l.onPath(i.Name, o, nil); err == nil {
			path, _, err = l.follow(i.Name, path, o)
		}
		if nf, ok := errors.AsType[*NotFoundError](err); ok {
			nf.NeededBy = script
		}
		if err != nil {
			return i, nil, err
		}
	}
	head, err := l.interpreter(&i, script, path, in)
	if err == nil && i.IsEnv {
		err = &NotFoundError{Name: i.Name, NeededBy: script, Problem: "env(1) would start env(1); name the interpreter itself"}
	}
	return i, head, err
}

// interpreter completes i, which is at path or, if path is empty, at its name. It
// returns the first bytes of the file.
func (l *Lookuper) interpreter(i *Interpreter, script, path string, in *installation) (head []byte, err error) {
	notFound := func(problem string) ([]byte, error) {
		return nil, &NotFoundError{Name: i.Name, NeededBy: script, Problem: problem}
	}
	if path == "" {
		path = i.Name
		switch {
		case !filepath.IsAbs(path):
			return notFound("an interpreter must be an absolute path, or a name after /usr/bin/env")
		case filepath.Clean(path) != path:
			return notFound(`write its path without "..", "." and doubled slashes`)
		}
	}
	switch problem, err := file.Executable(path); {
	case errors.Is(err, fs.ErrNotExist):
		return notFound("no such file")
	case problem != "":
		return nil, &NotExecutableError{Name: script, Path: path, Problem: problem}
	}
	if problem := shifting(path); problem != "" {
		return notFound(problem)
	}
	i.Path = path
	if i.Resolved, err = filepath.EvalSymlinks(path); err != nil {
		return notFound("no such file")
	}
	if i.Digest, head, err = l.digests.file(i.Resolved); err != nil {
		return nil, unreadable(i.Name, path, err)
	}
	in.add(path)
	std, err := l.systemEnv()
	if err != nil {
		return head, nil // no env(1) here: an ordinary program
	}
	// One binary can be many programs, depending on the name that it is started under.
	env := filepath.Base(path) == "env" || filepath.Base(std.Resolved) == "env"
	switch {
	case env && i.Resolved == std.Resolved:
		i.IsEnv = true
	case env && i.Digest == std.Digest:
		return notFound("it is a copy of env(1); write /usr/bin/env")
	}
	return head, nil
}

// shifting says why the path of a program means a different file to another process,
// or returns "".
func shifting(path string) string {
	if runtime.GOOS == "windows" {
		return ""
	}
	if slices.ContainsFunc(paths.Places(path), func(stop string) bool { return paths.Inside([]string{"/proc"}, stop) }) {
		return "leads through /proc, which is different for each process; name the file itself"
	}
	return ""
}

// An envProgram is the system's env(1).
type envProgram struct{ Resolved, Digest string }

// systemEnv returns the system's own env(1), in a folder where the user can change
// nothing.
func (l *Lookuper) systemEnv() (envProgram, error) {
	for _, path := range []string{"/usr/bin/env", "/bin/env", "/run/current-system/sw/bin/env"} {
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil || !paths.IsSystem(resolved) || !file.Fixed(path) || !file.Fixed(resolved) {
			continue
		}
		digest, _, err := l.digests.file(resolved)
		return envProgram{resolved, digest}, err
	}
	return envProgram{}, fs.ErrNotExist
}

// envStarts returns the program that env(1) starts when the kernel gives it args and
// then a script's path: NAME alone, or -S with words in which no env(1) gives a
// character a special meaning.
func envStarts(script string, args []string) (next Interpreter, err error) {
	refuse := func(format string, a ...any) (Interpreter, error) {
		return Interpreter{}, &NotFoundError{Name: "env", NeededBy: script, Problem: fmt.Sprintf(format, a...) +
			`; write "#!/usr/bin/env NAME" or "#!/usr/bin/env -S NAME ARGUMENT…"`}
	}
	if len(args) == 0 {
		return refuse("the first line does not say what env(1) is to start")
	}
	text, split := strings.CutPrefix(args[0], "-S")
	if !split {
		text, split = strings.CutPrefix(args[0], "--split-string=")
	}
	words := []string{text}
	if split {
		words = strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
	}
	for n, word := range words {
		if !plainWord(word) {
			return refuse("%q has blanks, quotes or other characters that env(1) may read as more than themselves", word)
		}
		name, value, assigns := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "-"):
			return refuse("env(1) is given the option %q, which is not followed", word)
		case assigns && !split:
			return refuse("env(1) would take all of %q for a variable", word)
		case assigns && !harmless(name, value):
			return refuse("env(1) sets the variable %q, which may choose what runs; set it in the script instead", name)
		case assigns:
			next.Env = append(next.Env, word)
		case word == "":
			return refuse("the first line does not say what env(1) is to start")
		default:
			next.Name, next.Args = word, words[n+1:]
			for _, arg := range next.Args {
				if !plainWord(arg) {
					return refuse("%q has quotes or other characters that env(1) may read as more than themselves", arg)
				}
			}
			return next, nil
		}
	}
	return refuse("the first line does not say what env(1) is to start")
}

// plainWord reports whether env(1) takes a word of -S literally.
func plainWord(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\\\"'$#`", r) })
}

// harmless reports whether a variable with this value is known to choose neither a
// program nor a file. Those that do are too many to list.
func harmless(name, value string) bool {
	known := slices.Contains([]string{
		"LANG", "LANGUAGE", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "DEBUG", "NODE_ENV", "RUST_BACKTRACE",
		"PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE",
	}, name) || slices.Contains(LocaleNames(), name)
	return known && !strings.ContainsRune(value, '/')
}

// LocaleNames are the categories of locale(7). Any other name that begins like them
// is not the system's, and may hold anything.
func LocaleNames() []string {
	return []string{
		"LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
		"LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
	}
}

// CheckSearch returns a [*NotFoundError] if env(1) would find another program on
// the PATH of env, the environment of a run, than the one that was looked up.
func (p Program) CheckSearch(env []string) error {
	var path string
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && name == "PATH" {
			path = value
		}
	}
	for _, i := range p.Interpreters {
		if !i.OnPath {
			continue
		}
		if found := search(path, i.Name); found != i.Path {
			return &NotFoundError{Name: i.Name, NeededBy: p.Path, Problem: fmt.Sprintf(
				"env(1) would find %q in the PATH of the run, where %q was looked up", found, i.Path)}
		}
	}
	return nil
}

// search returns the path at which execvp(3) finds name, or "" when it finds none or
// would look in a folder that is a different one for the run.
func search(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || shifting(dir) != "" || paths.Inside([]string{"/proc"}, filepath.Clean(dir)) {
			return ""
		}
		// A file that cannot be started is passed over by execvp, as by Lookup.
		at := filepath.Join(dir, name)
		if problem, err := file.Executable(at); problem == "" && err == nil {
			return at
		}
	}
	return ""
}
