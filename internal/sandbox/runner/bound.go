package runner

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// What watches a run's folders on disk, where no kernel bounds them. A run can be
// over its bounds by what it writes between two looks.
const (
	lookEvery = 100 * time.Millisecond // at the most often
	lookShare = 20                     // a look takes at most one part of so many of the time

	// maxBoundDepth is how many folders there may be below each other. What is
	// deeper counts as too much: no look could be quick.
	maxBoundDepth = 256
)

// A holding is what a folder holds.
type holding struct {
	bytes int64 // on disk
	names int64
	deep  bool // there is more than was looked at, deeper down
}

// A filled is a folder on disk that a run fills.
type filled struct {
	root *os.Root
	// self opens the folder to us again after the run closed it: changing the mode of
	// "." in root would need the right to search it.
	self *os.File
}

// openFilled takes over root.
func openFilled(root *os.Root) (*filled, error) {
	self, err := root.Open(".")
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return &filled{root, self}, nil
}

func (f *filled) close() {
	_ = f.self.Close()
	_ = f.root.Close()
}

// A bound is a folder on disk that a run may fill up to a bound.
type bound struct {
	folder *filled
	before holding
	bytes  int64 // that it may hold in all, unless it held more before
	names  int64
	cause  sandbox.Cause // of the end of a run that fills it
}

// newBound bounds what is added to a folder.
func newBound(folder *filled, bytes, names int64, added bool) *bound {
	b := &bound{folder: folder, bytes: bytes, names: names, cause: sandbox.CauseWorkspaceLimit}
	b.before = folder.measure(0)
	if added {
		b.bytes, b.names = b.bytes+b.before.bytes, b.names+b.before.names
	}
	return b
}

// exceeded reports whether the folder holds too much, where extra bytes are the
// run's and in no folder.
func (b *bound) exceeded(extra int64) bool {
	most := max(b.names, b.before.names) + 1
	now := b.folder.measure(most)
	return now.deep || now.bytes+extra > max(b.bytes, b.before.bytes) || now.names > max(b.names, b.before.names)
}

// measure looks at everything in the folder; most bounds the names, and 0 does
// not. It opens nothing but folders, follows no links, and opens what the run
// closed to us. What cannot be opened counts as too much.
func (f *filled) measure(most int64) holding {
	m := &measuring{most: most, linked: map[fileID]bool{}}
	for range openTries {
		if m.folder(f.root, 0) {
			return m.holding
		}
		_ = f.self.Chmod(0o700)
	}
	m.deep = true
	return m.holding
}

// openTries is how often a folder is opened that a run closes meanwhile.
const openTries = 3

type measuring struct {
	holding
	most   int64
	linked map[fileID]bool // files with several names that were counted
}

func (m *measuring) full() bool { return m.most > 0 && m.names > m.most }

// folder reports whether the folder could be opened.
func (m *measuring) folder(root *os.Root, depth int) bool {
	f, err := root.Open(".")
	if err != nil {
		return !errors.Is(err, fs.ErrPermission) // else it is gone again
	}
	defer f.Close()
	for !m.full() {
		list, err := f.ReadDir(256)
		for _, e := range list {
			m.entry(root, e, depth)
		}
		if err != nil { // the end, or nothing that can be read
			break
		}
	}
	return true
}

func (m *measuring) entry(root *os.Root, e fs.DirEntry, depth int) {
	m.names++
	info, err := e.Info()
	if err != nil {
		return // gone again
	}
	if id, several := severalNames(info); several {
		if m.linked[id] {
			return
		}
		m.linked[id] = true
	}
	m.bytes += onDisk(info)
	if !info.IsDir() || m.full() {
		return
	}
	if depth >= maxBoundDepth {
		m.deep = true
		return
	}
	for range openTries {
		sub, err := root.OpenRoot(e.Name())
		if errors.Is(err, fs.ErrPermission) {
			if root.Chmod(e.Name(), info.Mode().Perm()|0o700) != nil {
				return // it is not the user's, so the run did not fill it
			}
			continue
		}
		if err != nil {
			return // gone again
		}
		open := m.folder(sub, depth+1)
		_ = sub.Close()
		if open {
			return
		}
	}
	m.deep = true
}

// A fileID tells a file from others.
type fileID struct{ dev, ino uint64 }

// watchBounds looks at a run's folders until done is closed, and says once when
// there is too much in one of them, or the log's disk is about to be full. hidden
// is how many bytes the run has in files without a name. The channel is closed when
// nobody looks any more.
func (r *Runner) watchBounds(done <-chan struct{}, bounds []*bound, hidden func() int64) <-chan sandbox.Cause {
	over := make(chan sandbox.Cause, 1)
	go func() {
		defer close(over)
		wait := lookEvery
		for {
			select {
			case <-done:
				return
			case <-time.After(wait):
			}
			begin := time.Now()
			if cause := r.over(bounds, hidden()); cause != sandbox.CauseExit {
				over <- cause
				return
			}
			wait = max(lookEvery, lookShare*time.Since(begin))
		}
	}()
	return over
}

func (r *Runner) over(bounds []*bound, hidden int64) sandbox.Cause {
	if !r.reserveLeft() {
		return sandbox.CauseDiskFull
	}
	return overBounds(bounds, hidden)
}

// overBounds says whether there is too much in one of the folders.
func overBounds(bounds []*bound, hidden int64) sandbox.Cause {
	for _, b := range bounds {
		if b.exceeded(hidden) {
			return b.cause
		}
	}
	return sandbox.CauseExit
}

// reserveLeft reports whether the disk of [Options.ReserveDir] has its reserve.
func (r *Runner) reserveLeft() bool {
	if r.o.ReserveDir == "" || r.o.Reserve <= 0 {
		return true
	}
	free, ok := freeSpace(r.o.ReserveDir)
	return !ok || free >= r.o.Reserve
}

// bounds are the folders on disk that the run fills, for watchBounds; close them.
// A folder that cannot be looked at is an error: nothing would bound it.
func (l *launch) bounds(ws *workspace) (all []*bound, err error) {
	limits := l.policy.Limits
	add := func(root *os.Root, err error, bytes int64, added bool) error {
		if err != nil {
			return err
		}
		folder, err := openFilled(root)
		if err == nil {
			all = append(all, newBound(folder, bytes, int64(limits.LayerNames), added))
		}
		return err
	}
	if ws != nil && !paths.Inside(layered(l.policy.Layers), l.command.Workspace) {
		root, err := ws.root.OpenRoot(".")
		if err := add(root, err, limits.Workspace, false); err != nil {
			return all, err
		}
	}
	if l.tmpOnDisk {
		root, err := os.OpenRoot(l.tmp)
		if err := add(root, err, limits.Workspace, true); err != nil {
			return all, err
		}
	}
	if l.layers != nil {
		for _, one := range l.layers.all {
			if one.copy == nil {
				continue
			}
			root, err := os.OpenRoot(one.from)
			if err := add(root, err, limits.Layer, true); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

func closeBounds(all []*bound) {
	for _, b := range all {
		b.folder.close()
	}
}
