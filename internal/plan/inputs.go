package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// An answer for more than one call must not cover files that nobody looked at. What a
// program reads cannot be told from its arguments: make(1) reads a file that no
// argument names, and "-fFILE" names a file for one program and not for another. So
// we do not try. The answer is bound to the files that an argument may name in any
// spelling, and to everything else that the run can read and that runs or other
// programs may change: the folders of its policy. If that is too much, only an answer
// for one call is offered.

// Bounds for the files that a command's arguments name.
const (
	maxInputs     = 64
	maxInputBytes = 64 << 20 // of all of them
	maxLookups    = 20_000   // paths that the arguments may mean
)

// inputs are what a run can read besides its pack and the system's files.
type inputs struct {
	files []call.File // that arguments name
	reads []call.File // folders, with the digest of everything in them
	once  string      // why an answer can hold for one call only
}

// same reports whether both are the same files with the same bytes.
func (i inputs) same(other inputs) bool {
	return i.once == other.once && slices.Equal(i.files, other.files) && slices.Equal(i.reads, other.reads)
}

// An inputFinder looks for files that arguments name.
type inputFinder struct {
	pack      *packs.Pack
	owner     *owner
	dir       string
	shown     []string // folders that the question names anyway
	bytesLeft int64
	lookups   int
	folders   []string // folders that the arguments name
	inputs
}

// ownInputs returns the inputs of a command that the model wrote itself. With
// lasting, they include the folders that an answer for more than one call is bound
// to.
func (p *Planner) ownInputs(c *Call, may *permissions, command *sandbox.Command, lasting bool) (inputs, error) {
	f := p.inputFinder(c, may, command)
	texts := slices.Clone(command.Args)
	for _, kv := range may.env {
		_, value, _ := strings.Cut(kv, "=")
		texts = append(texts, filepath.SplitList(value)...)
	}
	if err := f.find(slices.Concat(texts, interpreterArgs(command))); err != nil {
		return inputs{}, err
	}
	if !lasting || isPlain(command.Program) {
		return f.inputs, nil
	}
	f.bind(p.readable(may, command, f))
	return f.inputs, nil
}

// toolInputs returns the inputs of a declared tool: what its command names by itself
// and through the user's context. What a caller passes is covered by "any valid
// arguments". The folders that the question names are what the tool works on.
func (p *Planner) toolInputs(c *Call, may *permissions, command *sandbox.Command, inv *tools.Invocation) (inputs, error) {
	f := p.inputFinder(c, may, command)
	if err := f.find(slices.Concat(inv.Fixed, interpreterArgs(command))); err != nil {
		return inputs{}, err
	}
	for _, dir := range f.folders {
		if !paths.Inside(f.shown, dir) {
			f.only("its arguments name the folder %q, whose files were not checked", dir)
		}
	}
	return f.inputs, nil
}

func (p *Planner) inputFinder(c *Call, may *permissions, command *sandbox.Command) *inputFinder {
	f := &inputFinder{
		pack: c.Pack, owner: c.owner(), dir: command.Dir, bytesLeft: maxInputBytes,
		shown: append(may.folders(), command.Dir),
	}
	for _, path := range programFiles(command.Program) {
		if dir := f.owner.looksLikePack(path); dir != "" {
			f.only("its program is in %q, which looks like a pack but is not one here", dir)
		}
	}
	return f
}

// programFiles returns the files of a program and of its interpreters.
func programFiles(p program.Program) []string {
	files := []string{p.Path}
	for _, i := range p.Interpreters {
		files = append(files, i.Path)
	}
	return files
}

// interpreterArgs returns the arguments in first lines of scripts.
func interpreterArgs(c *sandbox.Command) []string {
	var args []string
	for _, i := range c.Program.Interpreters {
		if i.IsEnv {
			continue // that is the interpreter itself, and its arguments
		}
		for _, arg := range i.Args {
			args = append(args, arg)
			args = append(args, strings.Fields(arg)...) // some systems split them
		}
	}
	return args
}

// only records why an answer can hold for one call only. The first reason counts.
func (f *inputFinder) only(format string, args ...any) {
	if f.once == "" {
		f.once = fmt.Sprintf(format, args...)
	}
}

// find looks for the files that the texts may name: with the whole text, with the end
// of a text, as in "-fFILE", "--file=FILE" and "@FILE", or with the end of the part
// before a separator.
func (f *inputFinder) find(texts []string) error {
	for _, text := range texts {
		parts := []string{text}
		for i := range len(text) {
			if strings.IndexByte(":,;", text[i]) >= 0 {
				parts = append(parts, text[:i])
			}
		}
		for _, part := range parts {
			if err := f.suffixes(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxPath is the longest path, in bytes, on the systems that we know.
const maxPath = 4096

func (f *inputFinder) suffixes(text string) error {
	for i := max(0, len(text)-maxPath); i < len(text); i++ {
		name := text[i:]
		if !utf8.RuneStart(name[0]) {
			continue
		}
		// In "src/", the trailing slash does not mean the root directory.
		if i > 0 && strings.Trim(name, "./") == "" && text[0] != '-' && strings.IndexByte("=:,;@", text[i-1]) < 0 {
			continue
		}
		if f.lookups++; f.lookups > maxLookups {
			f.only("its arguments are too long to look for files in all of them")
			return nil
		}
		path := name
		if !filepath.IsAbs(path) {
			path = f.dir + string(filepath.Separator) + name // not joined: a ".." after a link leads to another folder
		}
		path = f.throughProc(path)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if err := f.add(path, i == 0 || text[i-1] == '='); err != nil {
			return err
		}
	}
	return nil
}

// throughProc returns what a path means to the program if it leads through a
// process's folders in /proc: its working folder and its root. Other paths in /proc
// cannot be resolved beforehand.
func (f *inputFinder) throughProc(path string) string {
	for range 8 {
		rest, ok := strings.CutPrefix(path, "/proc/")
		if !ok {
			return path
		}
		f.only("its arguments lead through /proc, which is different for each process")
		parts := strings.SplitN(rest, "/", 3) // the process, its folder, and what is in it
		switch {
		case len(parts) == 3 && parts[1] == "cwd":
			path = f.dir + "/" + parts[2]
		case len(parts) == 3 && parts[1] == "root":
			path = "/" + parts[2]
		default:
			return path
		}
	}
	return path
}

// add binds what is at path. whole says that an argument names exactly this path;
// otherwise it may only mean it.
func (f *inputFinder) add(path string, whole bool) error {
	if err := f.owner.refuse(path); err != nil {
		return err
	}
	if slices.ContainsFunc(paths.Places(path), func(place string) bool { return within(place, "/proc") }) {
		f.only("its arguments lead through /proc, which is different for each process")
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil || f.bound(resolved) {
		return nil
	}
	if dir := f.owner.looksLikePack(resolved); dir != "" {
		f.only("its arguments lead to %q, which looks like a pack but is not one here", dir)
	}
	if slices.ContainsFunc(f.files, func(have call.File) bool { return have.Path == resolved }) {
		return nil
	}
	if info, err := os.Stat(resolved); err == nil && info.IsDir() {
		if !slices.Contains(f.folders, resolved) {
			f.folders = append(f.folders, resolved)
		}
		return nil
	}
	digest, size, err := digestFile(resolved, f.bytesLeft)
	switch {
	case err != nil:
		digest, size = "unreadable", 0
	case digest == "":
		f.only("its arguments name %q, which is neither a file nor a folder", resolved)
		return nil
	case size > f.bytesLeft || len(f.files) == maxInputs:
		if !whole {
			f.only("its arguments may name more files than can be approved")
			return nil
		}
		return ErrManyInputs
	}
	f.bytesLeft -= size
	f.files = append(f.files, call.File{Path: resolved, Digest: digest})
	return nil
}

// bound reports whether a file, without links, needs no digest of its own: the pack's
// digest covers it, or the user cannot change it. Files in /proc cannot be bound,
// since they differ each time they are read.
func (f *inputFinder) bound(path string) bool {
	return within(path, f.pack.Dir) && !f.pack.Loose || paths.IsSystem(path) || paths.Inside([]string{"/proc", "/sys", "/dev"}, path)
}

// readable returns the folders from which a command can read code and which are not
// bound already: those of its policy, those that its arguments name or that hold a
// file they name, and installations in the project.
func (p *Planner) readable(may *permissions, command *sandbox.Command, f *inputFinder) []string {
	all := slices.Concat(may.folders(), []string{command.Dir}, f.folders)
	for _, file := range f.files {
		all = append(all, filepath.Dir(file.Path))
	}
	for _, path := range programFiles(command.Program) {
		if resolved := paths.WithoutLinks(path); !f.bound(resolved) {
			all = append(all, filepath.Dir(resolved))
		}
	}
	for _, path := range command.Program.Needs {
		if p.opts.Project != "" && within(path, paths.WithoutLinks(p.opts.Project)) {
			all = append(all, path)
		}
	}
	var dirs []string
	for _, dir := range all {
		dir = paths.WithoutLinks(dir)
		if !f.bound(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	// The digest of a folder covers the folders in it.
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return slices.ContainsFunc(dirs, func(other string) bool { return other != dir && within(dir, other) })
	})
}

// bind binds folders with everything in them.
func (f *inputFinder) bind(dirs []string) {
	if f.once != "" {
		return // it is not needed
	}
	room := &readBudget{entries: maxReads, bytes: maxReadBytes}
	for _, dir := range dirs {
		digest, why := room.digest(dir)
		if why != "" {
			f.only("it can read %q, which %s", dir, why)
			f.reads = nil
			return
		}
		f.reads = append(f.reads, call.File{Path: dir, Digest: digest})
	}
}

// isPlain reports whether a program is one of the system's that only print what they
// read: they start no other program and load no code, whatever their arguments and
// their folder. Other programs are not on the list because they do (find, sort, tar,
// sed), because a file in the folder controls what they do (git, make), or because
// they write a file that an argument names (uniq).
func isPlain(p program.Program) bool {
	if p.Shim != "" || len(p.Interpreters) > 0 || slices.ContainsFunc(paths.Places(p.Path), func(place string) bool { return !paths.IsSystem(place) }) {
		return false
	}
	return slices.Contains([]string{
		"base64", "basename", "cat", "cksum", "cmp", "comm", "cut", "date", "df", "dirname", "du", "echo", "expand", "false", "fold", "grep",
		"head", "id", "join", "ls", "md5sum", "nl", "od", "paste", "printf", "pwd", "readlink", "realpath", "seq", "sha1sum", "sha256sum",
		"sha512sum", "stat", "tac", "tail", "tr", "true", "uname", "wc", "whoami",
	}, filepath.Base(p.Path))
}
