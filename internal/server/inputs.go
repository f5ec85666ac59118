package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// An answer for more than one call must not cover files that nobody looked at.
// What a program reads cannot be told from its arguments: make(1) reads a file
// that no argument names, and "-fFILE" means a file to one program and not to
// another. So it is not tried. Files that an argument may name in any spelling
// are bound to the answer, and so is everything else that the run can read and
// that runs or other programs may change: the folders of its policy. What is too
// much to be bound takes the answer for more than one call away.

// Bounds of what is looked at of the files that a command's arguments name.
const (
	maxInputs     = 64
	maxInputBytes = 64 << 20 // of all of them
	maxLookups    = 20_000   // paths that the arguments may spell
)

// Bounds of the folders that are bound to an answer: a workspace with a few
// scripts and their output, hashed twice for each call.
const (
	maxReads     = 512 // files, folders and links
	maxReadBytes = 16 << 20
)

// inputs are what a run can read besides what is in its pack and the system's.
type inputs struct {
	files []gate.File // that arguments name
	reads []gate.File // folders
	once  string      // why an answer can only hold for one call
}

// An inputFinder looks for files that texts name.
type inputFinder struct {
	pack    *packs.Pack
	owner   *owner
	dir     string
	shown   []string // folders that the question names anyhow
	room    int64
	lookups int
	folders []string // that texts name
	inputs
}

// ownInputs are the inputs of a command that the model wrote itself.
func (p *planner) ownInputs(c *planCall, may *permissions, command *sandbox.Command) (inputs, error) {
	f := p.inputFinder(c, may, command)
	texts := slices.Clone(command.Args)
	for _, kv := range may.env {
		_, value, _ := strings.Cut(kv, "=")
		texts = append(texts, filepath.SplitList(value)...)
	}
	if err := f.find(slices.Concat(texts, interpreterArgs(command))); err != nil {
		return inputs{}, err
	}
	if isPlain(command.Program) {
		return f.inputs, nil
	}
	f.bind(p.readable(may, command, f))
	return f.inputs, nil
}

// toolInputs are the inputs of a declared tool: what its command names by itself
// and by the user's context. What a caller passes is covered by "any valid
// arguments", and the folders that the question names are what the tool is for.
func (p *planner) toolInputs(c *planCall, may *permissions, command *sandbox.Command, inv *tools.Invocation) (inputs, error) {
	f := p.inputFinder(c, may, command)
	if err := f.find(slices.Concat(inv.Fixed, interpreterArgs(command))); err != nil {
		return inputs{}, err
	}
	for _, dir := range f.folders {
		if !insideAny(f.shown, dir) {
			f.only("its arguments name the folder %q, whose files were not looked at", dir)
		}
	}
	return f.inputs, nil
}

func (p *planner) inputFinder(c *planCall, may *permissions, command *sandbox.Command) *inputFinder {
	f := &inputFinder{
		pack: c.Pack, owner: c.owner(), dir: command.Dir, room: maxInputBytes,
		shown: append(may.folders(), command.Dir),
	}
	for _, path := range programFiles(command.Program) {
		if dir := f.owner.looksLikePack(path); dir != "" {
			f.only("its program is in %q, which looks like a pack and is none here", dir)
		}
	}
	return f
}

// programFiles are the files of a program and of what runs it.
func programFiles(p program.Program) []string {
	files := []string{p.Path}
	for _, i := range p.Interpreters {
		files = append(files, i.Path)
	}
	return files
}

// interpreterArgs are the arguments that first lines give.
func interpreterArgs(c *sandbox.Command) []string {
	var args []string
	for _, i := range c.Program.Interpreters {
		if i.IsEnv {
			continue // it is what it starts, and that one's arguments
		}
		for _, arg := range i.Args {
			args = append(args, arg)
			args = append(args, strings.Fields(arg)...) // some systems split them
		}
	}
	return args
}

// only says why an answer can only hold for one call. The first reason counts.
func (f *inputFinder) only(format string, args ...any) {
	if f.once == "" {
		f.once = fmt.Sprintf(format, args...)
	}
}

// find looks for the files that the texts may name: by all of a text, or by its
// end, as in "-fFILE", "--file=FILE" and "@FILE", or by the end of what is before
// a separator.
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

// maxPath is how long a path can be, in bytes, on the systems that we know.
const maxPath = 4096

func (f *inputFinder) suffixes(text string) error {
	for i := max(0, len(text)-maxPath); i < len(text); i++ {
		name := text[i:]
		if !utf8.RuneStart(name[0]) {
			continue
		}
		// "src/" does not end in the top of the file system.
		if i > 0 && strings.Trim(name, "./") == "" && text[0] != '-' && strings.IndexByte("=:,;@", text[i-1]) < 0 {
			continue
		}
		if f.lookups++; f.lookups > maxLookups {
			f.only("its arguments are too long to look for files in all of them")
			return nil
		}
		path := name
		if !filepath.IsAbs(path) {
			path = f.dir + string(filepath.Separator) + name // not joined: a ".." behind a link is another folder
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

// throughProc returns what a path means to the program, as far as it leads through
// the folders that /proc has of a process: its working folder and the top. What
// else is in /proc cannot be told beforehand.
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

// add binds what is at path. whole: it is what an argument says, and not only
// what one may mean.
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
		f.only("its arguments lead to %q, which looks like a pack and is none here", dir)
	}
	if slices.ContainsFunc(f.files, func(have gate.File) bool { return have.Path == resolved }) {
		return nil
	}
	if info, err := os.Stat(resolved); err == nil && info.IsDir() {
		if !slices.Contains(f.folders, resolved) {
			f.folders = append(f.folders, resolved)
		}
		return nil
	}
	digest, size, err := digestFile(resolved, f.room)
	switch {
	case err != nil:
		digest, size = "unreadable", 0
	case digest == "":
		f.only("its arguments name %q, which is neither a file nor a folder", resolved)
		return nil
	case size > f.room || len(f.files) == maxInputs:
		if !whole {
			f.only("its arguments may name more files than can be approved")
			return nil
		}
		return errManyInputs
	}
	f.room -= size
	f.files = append(f.files, gate.File{Path: resolved, Digest: digest})
	return nil
}

// bound reports whether a file, without links, is bound to every answer: by the
// pack's digest, or because the user cannot change it. What is in /proc is
// another at each look.
func (f *inputFinder) bound(path string) bool {
	return within(path, f.pack.Dir) && !f.pack.Loose || paths.IsSystem(path) || insideAny([]string{"/proc", "/sys", "/dev"}, path)
}

// readable are the folders that a command can read code from, and that are not
// bound already: those of its policy, those that its arguments name or that have
// a file they name, and installations in the project.
func (p *planner) readable(may *permissions, command *sandbox.Command, f *inputFinder) []string {
	all := slices.Concat(may.folders(), []string{command.Dir}, f.folders)
	for _, file := range f.files {
		all = append(all, filepath.Dir(file.Path))
	}
	for _, path := range programFiles(command.Program) {
		if resolved := withoutLinks(path); !f.bound(resolved) {
			all = append(all, filepath.Dir(resolved))
		}
	}
	for _, path := range command.Program.Needs {
		if p.opts.Project != "" && within(path, withoutLinks(p.opts.Project)) {
			all = append(all, path)
		}
	}
	var dirs []string
	for _, dir := range all {
		dir = withoutLinks(dir)
		if !f.bound(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	// What is inside of another is bound with that.
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return slices.ContainsFunc(dirs, func(other string) bool { return other != dir && within(dir, other) })
	})
}

// bind binds folders with everything in them.
func (f *inputFinder) bind(dirs []string) {
	if f.once != "" {
		return // nobody needs it
	}
	room := &readRoom{entries: maxReads, bytes: maxReadBytes}
	for _, dir := range dirs {
		digest, why := room.digest(dir)
		if why != "" {
			f.only("it can read %q, which %s", dir, why)
			f.reads = nil
			return
		}
		f.reads = append(f.reads, gate.File{Path: dir, Digest: digest})
	}
}

// A readRoom is how much more may be looked at.
type readRoom struct {
	entries int
	bytes   int64
}

// digest returns the digest of everything in a folder, or of a file, or why there
// is none. Links are bound as they are, and not followed: where they lead is bound
// by itself, or cannot be read.
func (r *readRoom) digest(path string) (digest, why string) {
	h := sha256.New()
	why = r.add(h, path, ".")
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), why
}

// add writes what is at path, which is called name, to h. It says why it cannot.
func (r *readRoom) add(h hash.Hash, path, name string) (why string) {
	const unreadable = "cannot be read whole"
	if r.entries--; r.entries < 0 {
		return fmt.Sprintf("holds more than %d files and folders", maxReads)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return unreadable
	}
	var text string
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		text, err = os.Readlink(path)
	case mode.IsRegular():
		var size int64
		text, size, err = digestFile(path, r.bytes)
		if r.bytes -= size; r.bytes < 0 {
			return fmt.Sprintf("holds more than %d MiB", maxReadBytes>>20)
		}
	}
	if err != nil {
		return unreadable
	}
	fmt.Fprintf(h, "%q %v %q\n", name, info.Mode(), text)
	if !info.IsDir() {
		return ""
	}
	entries, err := r.list(path)
	if err != nil {
		return unreadable
	}
	for _, entry := range entries {
		if why := r.add(h, filepath.Join(path, entry), name+"/"+entry); why != "" {
			return why
		}
	}
	return ""
}

// list returns the names in a folder, sorted, and of a large one no more than
// there is room for and one.
func (r *readRoom) list(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(r.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// isPlain reports whether a program is one of the system's that only print what
// they read: they start no other program and load no code, whatever their
// arguments and the folder they are in. Others are not on the list because they
// do (find, sort, tar, sed), because a file of the folder decides what they do (git,
// make), or because they write a file that an argument names (uniq).
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

// digestFile returns the digest of a regular file, and its size; of one with
// more than max bytes, the size alone counts. No digest: it is another thing.
func digestFile(path string, max int64) (digest string, size int64, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", 0, err // opening a pipe or a device would wait, or do something
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(h, io.LimitReader(f, max+1))
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), size, err
}
