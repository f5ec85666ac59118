package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"time"
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

// A bound is a folder on disk that a run may fill up to a bound.
type bound struct {
	root   *os.Root
	before holding
	bytes  int64 // that it may hold in all, unless it held more before
	names  int64
	cause  Cause // of the end of a run that fills it
}

// newBound bounds what is added to a folder.
func newBound(root *os.Root, bytes, names int64, added bool) *bound {
	b := &bound{root: root, bytes: bytes, names: names, cause: CauseWorkspaceLimit}
	b.before = measureRoot(root, 0)
	if added {
		b.bytes, b.names = b.bytes+b.before.bytes, b.names+b.before.names
	}
	return b
}

// exceeded reports whether the folder holds too much, where extra bytes are the
// run's and in no folder.
func (b *bound) exceeded(extra int64) bool {
	most := max(b.names, b.before.names) + 1
	now := measureRoot(b.root, most)
	return now.deep || now.bytes+extra > max(b.bytes, b.before.bytes) || now.names > max(b.names, b.before.names)
}

// measureRoot looks at everything in a folder; most bounds the names, and 0 does
// not. It opens nothing but folders, follows no links, and opens what the run
// closed to us.
func measureRoot(root *os.Root, most int64) holding {
	m := &measuring{most: most, linked: map[fileID]bool{}}
	m.folder(root, 0)
	return m.holding
}

type measuring struct {
	holding
	most   int64
	linked map[fileID]bool // files with several names that were counted
}

func (m *measuring) full() bool { return m.most > 0 && m.names > m.most }

func (m *measuring) folder(root *os.Root, depth int) {
	f, err := root.Open(".")
	if errors.Is(err, fs.ErrPermission) {
		// It is the run's own, and the run closed it.
		if info, serr := root.Stat("."); serr == nil && root.Chmod(".", info.Mode().Perm()|0o500) == nil {
			f, err = root.Open(".")
		}
	}
	if err != nil {
		return
	}
	defer f.Close()
	for !m.full() {
		list, err := f.ReadDir(256)
		for _, e := range list {
			m.entry(root, e, depth)
		}
		if err != nil { // the end, or nothing that can be read
			return
		}
	}
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
	sub, err := root.OpenRoot(e.Name())
	if errors.Is(err, fs.ErrPermission) && root.Chmod(e.Name(), info.Mode().Perm()|0o700) == nil {
		sub, err = root.OpenRoot(e.Name())
	}
	if err != nil {
		return
	}
	defer sub.Close()
	m.folder(sub, depth+1)
}

// A fileID tells a file from others.
type fileID struct{ dev, ino uint64 }

// watchBounds looks at a run's folders until done is closed, and says once when
// there is too much in one of them, or the log's disk is about to be full. hidden
// is how many bytes the run has in files without a name. The channel is closed when
// nobody looks any more.
func (r *Runner) watchBounds(done <-chan struct{}, bounds []*bound, hidden func() int64) <-chan Cause {
	over := make(chan Cause, 1)
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
			if cause := r.over(bounds, hidden()); cause != CauseExit {
				over <- cause
				return
			}
			wait = max(lookEvery, lookShare*time.Since(begin))
		}
	}()
	return over
}

func (r *Runner) over(bounds []*bound, hidden int64) Cause {
	if !r.reserveLeft() {
		return CauseDiskFull
	}
	return overBounds(bounds, hidden)
}

// overBounds says whether there is too much in one of the folders.
func overBounds(bounds []*bound, hidden int64) Cause {
	for _, b := range bounds {
		if b.exceeded(hidden) {
			return b.cause
		}
	}
	return CauseExit
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
func (l *launch) bounds(ws *workspace) []*bound {
	limits := l.policy.Limits
	var all []*bound
	if ws != nil && !insideAny(layered(l.policy.Layers), l.command.Workspace) {
		if root, err := ws.root.OpenRoot("."); err == nil {
			all = append(all, newBound(root, limits.Workspace, int64(limits.LayerNames), false))
		}
	}
	add := func(dir string, bytes, names int64) {
		if root, err := os.OpenRoot(dir); err == nil {
			all = append(all, newBound(root, bytes, names, true))
		}
	}
	if l.tmpOnDisk {
		add(l.tmp, limits.Workspace, int64(limits.LayerNames))
	}
	if l.layers != nil {
		for _, one := range l.layers.all {
			if one.copy != nil {
				add(one.from, limits.Layer, int64(limits.LayerNames))
			}
		}
	}
	return all
}

func closeBounds(all []*bound) {
	for _, b := range all {
		_ = b.root.Close()
	}
}
