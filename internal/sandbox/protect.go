package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// What of the protected paths of a run is remembered. Beyond it, a change is
// reported and not undone.
const (
	maxGuardedBytes   = 8 << 20 // of the content of all files
	maxGuardedFiles   = 2_000   // whose content is kept
	maxGuardedEntries = 20_000  // that are looked at
	maxGuardedDepth   = 16      // folders below each other
	maxGuardedLinks   = 64      // followed to what they lead to
)

// guards know what was at the protected paths before the runs that are under
// way. Runs at the same time share that: otherwise the second would take for
// the user's what the first has changed, and put it back when the first has
// undone it. The zero value is ready. Runs of other processes know nothing of
// it.
type guards struct {
	mu    sync.Mutex
	known map[guardKey]*baseline // guarded by mu
}

// A guardKey names a protected path.
type guardKey struct {
	root     string // absolute path of the writable folder
	dev, ino uint64 // of the folder; zeros where the system does not tell
	path     string // slash path below it
}

// A baseline is what was at one protected path. It does not change once it is
// taken.
type baseline struct {
	guardKey
	runs  int // that go by it; guarded by guards.mu
	taken time.Time
	way   []wayFolder // that lead to it, the writable folder first
	at    string      // path, or what stands in its way: a link, a file
	was   *item       // nil: nothing was there
}

// A wayFolder is a folder on the way to a protected path. Its mode is put back
// when it keeps us from looking.
type wayFolder struct {
	path string
	mode fs.FileMode
}

// An item is one thing as it was.
type item struct {
	stamp stamp
	owner owner
	depth int    // below the protected path
	path  string // while the content is not read yet

	link string // where a symbolic link leads
	data []byte // of a regular file
	kept bool   // data, or link, is all of it

	kids  map[string]*item // of a folder
	whole bool             // nothing in the folder was left out
}

// A guarded is what one run has to leave as it was. A nil one is nothing.
type guarded struct {
	guards  *guards
	folders []*guardedFolder
}

// A guardedFolder is a writable folder with the protected paths below it.
type guardedFolder struct {
	abs   string
	root  *os.Root // open from before the run, so it stays the same folder
	key   guardKey
	mode  fs.FileMode
	below []*baseline
}

// guard notes what is at the protected paths of p. It follows links only to
// name what else is to be protected, opens regular files and folders only, and
// waits for nothing that they could be exchanged for.
func (g *guards) guard(p *Policy) (*guarded, error) {
	if len(p.Protected) == 0 {
		return nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &taker{guards: g, guarded: &guarded{guards: g}, writable: p.Writable}
	for _, path := range p.Protected {
		if found, err := t.add(path); err != nil || !found {
			if err == nil {
				err = &CommandError{Problem: fmt.Sprintf("protected path %q is not below a writable folder", path)}
			}
			t.guarded.releaseLocked()
			return nil, err
		}
	}
	for len(t.leads) > 0 {
		lead := t.leads[0]
		t.leads = t.leads[1:]
		if _, err := t.add(lead); err != nil {
			t.guarded.releaseLocked()
			return nil, err
		}
	}
	t.read()
	return t.guarded, nil
}

// release forgets what no other run goes by. It may be called more than once.
func (g *guarded) release() {
	if g == nil {
		return
	}
	g.guards.mu.Lock()
	defer g.guards.mu.Unlock()
	g.releaseLocked()
}

// releaseLocked is release for a caller that holds guards.mu.
func (g *guarded) releaseLocked() {
	for _, f := range g.folders {
		for _, b := range f.below {
			if b.runs--; b.runs == 0 {
				delete(g.guards.known, b.guardKey)
			}
		}
		_ = f.root.Close()
	}
	g.folders = nil
}

// A taker takes the baselines of one run.
type taker struct {
	guards   *guards
	guarded  *guarded
	writable []string
	leads    []string // absolute paths that links lead to
	links    int      // that were followed
	entries  int      // that were looked at
	files    []unread // whose content is not read yet
}

type unread struct {
	root *os.Root
	item *item
}

// add guards the absolute path, unless it is in no writable folder.
func (t *taker) add(abs string) (found bool, err error) {
	dir, rel := "", ""
	for _, w := range t.writable {
		r, err := filepath.Rel(w, abs)
		if err == nil && r != "." && filepath.IsLocal(r) && len(filepath.Clean(w)) > len(dir) {
			dir, rel = filepath.Clean(w), filepath.ToSlash(r)
		}
	}
	if dir == "" {
		return false, nil
	}
	f, err := t.folder(dir)
	if err != nil {
		return false, err
	}
	key := f.key
	key.path = rel
	if slices.ContainsFunc(f.below, func(b *baseline) bool { return b.path == rel }) {
		return true, nil
	}
	b := t.guards.known[key]
	if b == nil {
		b = t.take(f, key)
		if t.guards.known == nil {
			t.guards.known = map[guardKey]*baseline{}
		}
		t.guards.known[key] = b
	}
	b.runs++
	f.below = append(f.below, b)
	t.follow(f, b)
	return true, nil
}

func (t *taker) folder(dir string) (*guardedFolder, error) {
	for _, f := range t.guarded.folders {
		if f.abs == dir {
			return f, nil
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &CommandError{Folder: true, Problem: fmt.Sprintf("writable folder %q", dir), Err: errors.Unwrap(err)}
	}
	info, err := root.Stat(".")
	if err != nil {
		_ = root.Close()
		return nil, &CommandError{Folder: true, Problem: fmt.Sprintf("writable folder %q", dir), Err: errors.Unwrap(err)}
	}
	st := stampOf(info)
	f := &guardedFolder{abs: dir, root: root, key: guardKey{root: dir, dev: st.dev, ino: st.ino}, mode: info.Mode()}
	t.guarded.folders = append(t.guarded.folders, f)
	return f, nil
}

// take looks at what is at one path.
func (t *taker) take(f *guardedFolder, key guardKey) *baseline {
	b := &baseline{guardKey: key, taken: time.Now(), way: []wayFolder{{".", f.mode}}, at: key.path}
	parts := strings.Split(key.path, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		info, err := f.root.Lstat(at)
		if err != nil {
			return b // not there, or out of the reach of the user, and so of the program
		}
		if i < len(parts)-1 && info.IsDir() {
			b.way = append(b.way, wayFolder{at, info.Mode()})
			continue
		}
		b.at, b.was = at, t.look(f.root, at, info, 0)
		return b
	}
	return b
}

// follow notes where the link leads that is at a protected path, or on the way
// to it: that is what other programs will read.
func (t *taker) follow(f *guardedFolder, b *baseline) {
	if b.was == nil || b.was.link == "" || t.links >= maxGuardedLinks {
		return
	}
	t.links++
	to := filepath.FromSlash(b.was.link)
	if !filepath.IsAbs(to) {
		to = filepath.Join(f.abs, filepath.FromSlash(path.Dir(b.at)), to)
	}
	to = filepath.Join(to, filepath.FromSlash(strings.TrimPrefix(b.path, b.at)))
	// A folder that the link itself is in cannot be meant to stay as it is.
	if rel, err := filepath.Rel(to, filepath.Join(f.abs, filepath.FromSlash(b.at))); err == nil && filepath.IsLocal(rel) {
		return
	}
	t.leads = append(t.leads, to)
}

// look notes what is at name, which info is about, and everything below it.
func (t *taker) look(root *os.Root, name string, info fs.FileInfo, depth int) *item {
	it := &item{stamp: stampOf(info), owner: ownerOf(info), depth: depth}
	t.entries++
	switch mode := info.Mode(); {
	case mode.IsRegular():
		it.path = name
		t.files = append(t.files, unread{root, it})
	case mode&fs.ModeSymlink != 0:
		var err error
		it.link, err = root.Readlink(name)
		it.kept = err == nil
	case mode.IsDir():
		it.kids = map[string]*item{}
		if depth < maxGuardedDepth {
			it.whole = t.lookInto(root, name, it)
		}
	}
	return it
}

// lookInto notes what is in the folder at name, and reports whether that is
// everything.
func (t *taker) lookInto(root *os.Root, name string, it *item) (whole bool) {
	f, err := openFolder(root, name)
	if err != nil {
		return false
	}
	defer f.Close()
	for {
		list, err := f.ReadDir(256)
		for _, e := range list {
			if t.entries >= maxGuardedEntries {
				return false
			}
			if info, err := e.Info(); err == nil {
				it.kids[e.Name()] = t.look(root, path.Join(name, e.Name()), info, it.depth+1)
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// read reads the content of files as far as there is room for it. Those near
// the protected path come first, and then the small ones: what other programs
// run is there, and what they store is below.
func (t *taker) read() {
	slices.SortStableFunc(t.files, func(a, b unread) int {
		return cmp.Or(cmp.Compare(a.item.depth, b.item.depth), cmp.Compare(a.item.stamp.size, b.item.stamp.size))
	})
	room, files := int64(maxGuardedBytes), maxGuardedFiles
	for _, u := range t.files {
		if it := u.item; files > 0 && it.stamp.size <= room {
			it.data, it.kept = readSame(u.root, it.path, it.stamp)
			room, files = room-int64(len(it.data)), files-1
		}
		u.item.path = ""
	}
}

// readSame reads the regular file at name, if it is the one of the stamp and
// stays so.
func readSame(root *os.Root, name string, want stamp) (data []byte, ok bool) {
	f, err := root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	is := func() bool {
		info, err := f.Stat()
		return err == nil && info.Mode().IsRegular() && stampOf(info) == want
	}
	if !is() {
		return nil, false
	}
	data = make([]byte, want.size)
	if _, err := io.ReadFull(f, data); err != nil || !is() {
		return nil, false
	}
	return data, true
}

// openFolder opens the folder at name, and not where a link leads that took
// its place.
func openFolder(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|openDirOnly, 0)
	if err != nil {
		return nil, err
	}
	there, err := root.Lstat(name)
	if err == nil {
		var here fs.FileInfo
		if here, err = f.Stat(); err == nil && !os.SameFile(here, there) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// names returns the names of what was in a folder, in order.
func (it *item) names() []string { return slices.Sorted(maps.Keys(it.kids)) }
