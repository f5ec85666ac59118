package packs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/packs/byname"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// A visit is one scan's look at one directory. It opens the directory only if
// something in it has to be read.
type visit struct {
	s     *scanner
	up    *visit // nil for the root itself
	name  string // below up, with slashes
	place place
	full  string     // absolute path
	old   *memo.Node // what is remembered; nil: nothing
	subs  memo.Subs  // the remembered subdirectories that were not asked for yet
	// quiet says that nothing here was touched since the last scan. What is
	// remembered is then used without checking it, however recent it is.
	quiet bool
	// loud says that this directory, or one above it, is not the one that is
	// remembered under its name. Nothing below it is quiet.
	loud   bool
	isPack bool
	// vanished says that a document no longer existed when it was to be read,
	// although the directory had just listed it: the pack is probably being removed.
	vanished bool
	dir      *packfs.Dir // nil if it was not opened
	// seen is the information about the plain file seenName, whose record counts,
	// from the last look at it; nil: none.
	seen     os.FileInfo
	seenName string
	now      memo.Node

	was  memo.Node // what old points to
	next *visit    // reused for the directories below, since there are so many
}

// below returns a visit of a directory in this one, or of the target of a link in it.
// It is valid until the next call.
func (v *visit) below(name string, at place, full string) *visit {
	if v.next == nil {
		v.next = new(visit)
	}
	sub := v.next
	*sub = visit{
		s: v.s, up: v, name: name, place: at, full: full, loud: v.loud,
		now: memo.Node{Docs: sub.now.Docs[:0]}, was: memo.Node{Docs: sub.was.Docs[:0]}, next: sub.next,
	}
	return sub
}

// remember makes the visit use the node at an offset in the tree of the last scan.
func (v *visit) remember(at int) {
	if subs, ok := v.s.old.Read(at, &v.was); ok {
		v.old, v.subs = &v.was, subs
	}
}

// open opens the directory through its parent.
func (v *visit) open() (*packfs.Dir, error) {
	if v.dir != nil {
		return v.dir, nil
	}
	var err error
	if v.up == nil {
		v.dir, err = v.s.files.Open(v.full)
		return v.dir, err
	}
	above, err := v.up.open()
	if err != nil {
		return nil, err
	}
	v.dir, err = above.Sub(v.name)
	return v.dir, err
}

func (v *visit) close() {
	if v.dir != nil {
		v.dir.Close()
		v.dir = nil
	}
}

// again starts over without what is remembered.
func (v *visit) again() {
	v.close()
	v.now, v.old, v.subs, v.quiet, v.vanished, v.seen = memo.Node{Docs: v.now.Docs[:0]}, nil, memo.Subs{}, false, false, nil
}

// look determines what is in the directory. It reads the directory only if its stamp is
// not the remembered one.
func (v *visit) look() error {
	v.now.Name = filepath.Base(filepath.FromSlash(v.name))
	old := v.old
	if old != nil {
		v.quiet = !v.loud && !old.Always && !v.s.wasTouched(v.full)
		same := v.quiet
		if !same && !old.Stamp.IsZero() {
			info, err := v.s.files.Lstat(v.full)
			same = err == nil && info.IsDir() && v.s.stamps.Same(old.Stamp, info)
		}
		if same {
			v.now.Stamp, v.now.Which, v.now.Entries, v.now.Cut = old.Stamp, old.Which, old.Entries, old.Cut
			return nil
		}
	}
	v.s.reads++
	dir, err := v.open()
	if err != nil {
		return err
	}
	info, err := dir.Info()
	if err != nil {
		return err
	}
	v.now.Which = packfs.WhichOf(info)
	v.loud = v.loud || old != nil && !v.now.Which.Same(old.Which)
	found, cut, err := dir.NamesOf(v.s.bounds.entries, byname.Counts)
	if err != nil {
		return err
	}
	v.now.Entries, v.now.Cut, v.now.Stamp = memo.EntriesOf(found), cut, v.s.stamps.Of(info)
	return nil
}

// read returns the result of parse for a file in the directory. It remembers that
// result if the file is a plain one. parse returns the file's information from before
// it was read, or nil if nothing was read.
func (v *visit) read(name string, plain bool, parse func(dir *packfs.Dir) (memo.Record, os.FileInfo)) memo.Record {
	if plain {
		if old := v.old.Document(name); old != nil && (v.quiet || v.unchanged(name, old)) {
			v.now.Docs = append(v.now.Docs, *old)
			return *old
		}
	} else {
		v.now.Always = true
	}
	v.s.reads++
	dir, err := v.open()
	if err != nil {
		v.s.note(err)
		v.vanished = v.vanished || plain && errors.Is(err, packfs.ErrNotFound) // together with its folder
		return memo.Record{Name: name, Problems: []diag.Diagnostic{unreadable(name, err)}}
	}
	var d memo.Record
	// Retry while somebody is writing the file. After the last try, an event or
	// the next scan sees the final state.
	for range 3 {
		var info os.FileInfo
		if d, info = parse(dir); info == nil || !plain {
			if _, err := v.s.files.Lstat(v.path(name)); plain && errors.Is(err, fs.ErrNotExist) {
				v.vanished = true
			}
			break
		}
		after, err := v.s.files.Lstat(v.path(name))
		if err == nil && packfs.StampOf(after) == packfs.StampOf(info) {
			if !isUnread(d.Problems) {
				d.Stamp = v.s.stamps.Of(info)
			}
			v.seen, v.seenName = after, name
			break
		}
	}
	d.Name = name
	if plain {
		v.now.Docs = append(v.now.Docs, d)
	}
	return d
}

func (v *visit) path(name string) string { return v.full + string(filepath.Separator) + name }

// isPlain reports whether the name is that of a file in the directory itself.
func (v *visit) isPlain(name string) bool {
	e, ok := v.now.Entries.Find(name)
	return ok && e.Mode.IsRegular()
}

func (v *visit) unchanged(name string, old *memo.Record) bool {
	if old.Stamp.IsZero() {
		return false
	}
	info, err := v.s.files.Lstat(v.path(name))
	if err != nil || !info.Mode().IsRegular() || !v.s.stamps.Same(old.Stamp, info) {
		return false
	}
	v.seen, v.seenName = info, name
	return true
}

// toolFiles returns the files that declare tools of the pack in this directory.
func (v *visit) toolFiles() []string {
	files := toolFilesHere(v.now.Entries)
	e, ok := v.now.Entries.Find("tools")
	if !ok || e.Mode&(fs.ModeDir|fs.ModeSymlink) == 0 {
		return files
	}
	if e.Mode&fs.ModeSymlink != 0 {
		v.now.Always = true
	} else if v.old != nil && v.old.Tools != nil {
		known := v.old.Tools
		if v.quiet {
			v.now.Tools = known
		} else if info, err := v.s.files.Lstat(v.path("tools")); err == nil && info.IsDir() && v.s.stamps.Same(known.Stamp, info) {
			v.now.Tools = known
		}
	}
	if v.now.Tools == nil {
		v.s.reads++
		v.now.Tools = &memo.Listing{}
		dir, err := v.open()
		if err == nil {
			*v.now.Tools, err = listTools(dir, v.s.stamps)
		}
		v.s.note(err)
	}
	for _, name := range v.now.Tools.Names {
		if len(files) < maxToolFiles {
			files = append(files, "tools/"+name)
		}
	}
	return files
}

// listTools reads the folder tools of a pack. If there is an error, the listing is
// empty.
func listTools(dir *packfs.Dir, st memo.Stamper) (memo.Listing, error) {
	sub, err := dir.Sub("tools")
	if err != nil {
		return memo.Listing{}, err
	}
	defer sub.Close()
	info, err := sub.Info()
	if err != nil {
		return memo.Listing{}, err
	}
	found, _, err := sub.NamesOf(maxEntries, func(name string, mode fs.FileMode) bool { return !mode.IsDir() && byname.IsToolPack(name) })
	if err != nil {
		return memo.Listing{}, err
	}
	l := memo.Listing{Stamp: st.Of(info)}
	for _, e := range found {
		l.Names = append(l.Names, e.Name())
	}
	return l, nil
}

func unreadable(name string, err error) diag.Diagnostic {
	hint := "make it a plain file inside the pack that you may read"
	if errors.Is(err, packfs.ErrNotFound) {
		hint = "correct entry: in the configuration, or the link that leads nowhere"
	}
	return diag.Diagnostic{
		Code: CodeEntryUnreadable, Severity: diag.Error, File: name,
		Message: "the entry document cannot be read: " + packfs.Cause(err), Hint: hint,
	}
}

// holdDirs reports whether one of the entries is a directory that could be looked at.
func holdDirs(l memo.Entries) bool {
	for e := range l.All() {
		if e.IsDir() && !byname.IsSkipped(e.Name) {
			return true
		}
	}
	return false
}

// haveManifest reports whether one of the entries marks the directory as a plugin.
func haveManifest(l memo.Entries) bool {
	for e := range l.All() {
		if byname.IsManifest(e.Name) {
			return true
		}
	}
	return false
}
