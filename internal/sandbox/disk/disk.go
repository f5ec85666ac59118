// Package disk watches the folders on disk that a run fills, where no kernel bounds
// them: it measures their contents, and reports when they hold too much or a disk is
// almost full.
//
// It ends no run and removes nothing. A run can exceed its bounds by what it writes
// between two measurements.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

const (
	lookEvery = 100 * time.Millisecond // the shortest pause between two measurements
	lookShare = 20                     // measuring takes at most 1/lookShare of the time

	// maxBoundDepth is how deep folders may be nested. Deeper ones count as too much,
	// since measuring them is slow.
	maxBoundDepth = 256
)

// A Holding measures a folder's contents.
type Holding struct {
	Bytes int64 // on disk
	Names int64
	Deep  bool // there are deeper folders, which were not measured
}

// A Folder is a folder on disk that a run fills.
type Folder struct {
	root *os.Root
	// self changes the folder's mode back after the run removed our rights: changing
	// "." through root would need the right to search it.
	self *os.File
}

// Open takes ownership of root, even if it returns an error.
func Open(root *os.Root) (*Folder, error) {
	self, err := root.Open(".")
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return &Folder{root, self}, nil
}

// Close closes the folder.
func (f *Folder) Close() {
	_ = f.self.Close()
	_ = f.root.Close()
}

// A Bound is a folder on disk that a run may fill up to a bound.
type Bound struct {
	Folder *Folder
	Bytes  int64 // that it may hold in all, or what it held before, if more
	Names  int64
	Cause  sandbox.Cause // for ending a run that fills it

	before Holding
}

// NewBound bounds a folder's contents or, if added, what a run adds to them.
func NewBound(folder *Folder, bytes, names int64, added bool) *Bound {
	b := &Bound{Folder: folder, Bytes: bytes, Names: names, Cause: sandbox.CauseWorkspaceLimit}
	b.before = folder.Measure(0)
	if added {
		b.Bytes, b.Names = b.Bytes+b.before.Bytes, b.Names+b.before.Names
	}
	return b
}

// exceeded reports whether the folder holds too much. The extra bytes belong to the
// run and are in no folder.
func (b *Bound) exceeded(extra int64) bool {
	most := max(b.Names, b.before.Names) + 1
	now := b.Folder.Measure(most)
	return now.Deep || now.Bytes+extra > max(b.Bytes, b.before.Bytes) || now.Names > max(b.Names, b.before.Names)
}

// Measure measures everything in the folder. It stops after most names; 0: no bound.
// It opens only folders, follows no links, and restores our rights to folders that
// the run closed. A folder that cannot be opened counts as too much.
func (f *Folder) Measure(most int64) Holding {
	m := &measuring{most: most, linked: map[fileID]bool{}}
	for range openTries {
		if m.folder(f.root, 0) {
			return m.Holding
		}
		_ = f.self.Chmod(0o700)
	}
	m.Deep = true
	return m.Holding
}

// openTries is how often opening a folder is tried while the run keeps closing it.
const openTries = 3

type measuring struct {
	Holding
	most   int64
	linked map[fileID]bool // files with several names that were counted
}

func (m *measuring) full() bool { return m.most > 0 && m.Names > m.most }

// folder reports whether the folder could be opened.
func (m *measuring) folder(root *os.Root, depth int) bool {
	f, err := root.Open(".")
	if err != nil {
		return !errors.Is(err, fs.ErrPermission) // any other error means it is gone
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
	m.Names++
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
	m.Bytes += onDisk(info)
	if !info.IsDir() || m.full() {
		return
	}
	if depth >= maxBoundDepth {
		m.Deep = true
		return
	}
	for range openTries {
		sub, err := root.OpenRoot(e.Name())
		if errors.Is(err, fs.ErrPermission) {
			if root.Chmod(e.Name(), info.Mode().Perm()|0o700) != nil {
				return // another user owns it, so the run did not fill it
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
	m.Deep = true
}

// A fileID identifies a file.
type fileID struct{ dev, ino uint64 }

// A Reserve is how many bytes must stay free on the disk of a folder. The zero value
// reserves nothing.
type Reserve struct {
	Dir   string
	Bytes int64
}

// Left reports whether the disk still has its reserve.
func (r Reserve) Left() bool {
	if r.Dir == "" || r.Bytes <= 0 {
		return true
	}
	free, ok := freeSpace(r.Dir)
	return !ok || free >= r.Bytes
}

// Watch measures a run's folders until done is closed. It sends one Cause if a folder
// holds too much, or if the reserve is used up. hidden returns how many bytes the run
// has in unlinked files. The channel is closed when watching has ended.
func Watch(done <-chan struct{}, reserve Reserve, bounds []*Bound, hidden func() int64) <-chan sandbox.Cause {
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
			if cause := look(reserve, bounds, hidden()); cause != sandbox.CauseExit {
				over <- cause
				return
			}
			wait = max(lookEvery, lookShare*time.Since(begin))
		}
	}()
	return over
}

func look(reserve Reserve, bounds []*Bound, hidden int64) sandbox.Cause {
	if !reserve.Left() {
		return sandbox.CauseDiskFull
	}
	return Exceeded(bounds, hidden)
}

// Exceeded returns the Cause of the first folder that holds too much, or
// [sandbox.CauseExit] if there is none. The hidden bytes belong to the run and are in
// no folder.
func Exceeded(bounds []*Bound, hidden int64) sandbox.Cause {
	for _, b := range bounds {
		if b.exceeded(hidden) {
			return b.Cause
		}
	}
	return sandbox.CauseExit
}
