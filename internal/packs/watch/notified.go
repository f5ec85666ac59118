package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// rootsEvery is the time between two looks at where the roots are. Events tell
// of most that can happen to a root, and not when a folder far above it is
// renamed, or another file system is mounted there.
const rootsEvery = 2 * time.Second

// maxOpen is how many directories are watched where that costs an open file for
// each file in them, or a buffer for each: on all systems but Linux.
const maxOpen = 1_000

// A use says why a directory is watched.
type use uint8

const (
	forPacks use = 1 << iota // the library has it
	forRoot                  // a root is in it, or may come into it
	// round tells those that the library still has from those that it had: each
	// change has the other value of it.
	round
)

// A notified eye is told by the system.
type notified struct {
	opts    Options
	watcher *fsnotify.Watcher
	ticker  *time.Ticker // of looks at the roots
	recheck *time.Timer  // of the next look at everything
	settle  *time.Timer  // runs while there are events that were not passed on

	roots   map[string]packfs.Which // :: root, as it was given → what was there; zero for nothing
	spots   map[string]bool         // :: path of which an event is about a root
	watched map[string]use          // nil before the first follow
	round   use                     // of the last change
	remote  bool                    // a root is on a file system without events

	touched map[string]bool // :: directory → something happened in it
	moved   map[string]bool // :: path → what had this name may have another, or is new
	all     bool            // something may have happened anywhere
	lost    bool            // so many events came that the system dropped some
	first   time.Time       // when the first event came that was not passed on; zero for none
}

func newNotified(o Options) (eye, error) {
	w, err := fsnotify.NewBufferedWatcher(1_000)
	if err != nil {
		return nil, err
	}
	n := &notified{
		opts: o, watcher: w, ticker: time.NewTicker(rootsEvery), recheck: time.NewTimer(o.Recheck), settle: time.NewTimer(0),
		roots: make(map[string]packfs.Which), touched: make(map[string]bool), moved: make(map[string]bool),
	}
	n.settle.Stop()
	return n, nil
}

func (n *notified) close() {
	n.ticker.Stop()
	n.recheck.Stop()
	n.settle.Stop()
	n.watcher.Close() // waits for its goroutine
}

func (n *notified) wait(ctx context.Context) (dirs []string, ok bool) {
	for {
		if n.all || len(n.touched) > 0 {
			if n.first.IsZero() {
				n.first = time.Now()
			}
			n.settle.Reset(max(0, min(n.opts.Quiet, n.opts.Longest-time.Since(n.first))))
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-n.settle.C:
			return n.take(), true
		case <-n.recheck.C:
			n.all = true
			return n.take(), true
		case <-n.ticker.C:
			if n.remote || n.rootsMoved() {
				n.all = true
				return n.take(), true
			}
		case ev, open := <-n.watcher.Events:
			if !open {
				return nil, false
			}
			n.note(ev)
		case err, open := <-n.watcher.Errors:
			if !open {
				return nil, false
			}
			n.failed(err)
		}
	}
}

// failed keeps what an error says: unless it is known to mean nothing, events
// are missing.
func (n *notified) failed(err error) {
	n.opts.Logger.Debug("watching the folders of packs", "err", err)
	if !errors.Is(err, syscall.EINVAL) { // a directory that was moved, and removed before fsnotify heard of it
		n.all, n.lost = true, true
	}
}

// take returns what is to be looked at, and begins anew.
func (n *notified) take() (dirs []string) {
	if !n.all {
		dirs = make([]string, 0, len(n.touched))
		for d := range n.touched {
			dirs = append(dirs, d)
		}
	}
	clear(n.touched)
	n.all, n.first = false, time.Time{}
	n.settle.Stop()
	return dirs
}

// note keeps what an event says.
func (n *notified) note(ev fsnotify.Event) {
	dir := filepath.Dir(ev.Name)
	switch {
	case n.spots[ev.Name]:
		n.all = true
	case n.watched[dir]&forPacks == 0 && n.watched[ev.Name]&forPacks == 0:
		return // a neighbour of a root
	default:
		n.touched[dir] = true
		n.touched[ev.Name] = true // when it is a directory
	}
	if ev.Has(fsnotify.Create) || ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
		n.moved[ev.Name] = true
	}
}

// rootsMoved reports whether another directory is where a root was.
func (n *notified) rootsMoved() bool {
	for root, was := range n.roots {
		if is := which(root); is != was && !is.Same(was) {
			n.moved[n.spot(root)] = true
			return true
		}
	}
	return false
}

// which says which directory is at path; zero for none.
func which(path string) packfs.Which {
	d, err := packfs.Open(path)
	if err != nil {
		return packfs.Which{}
	}
	defer d.Close()
	w, err := d.Which()
	if err != nil {
		return packfs.Which{}
	}
	return w
}

// follow changes what is watched on a goroutine that ends before it does:
// fsnotify can wait for somebody to read an error of its own while it holds the
// lock that each of these changes takes.
func (n *notified) follow(lib Library, took time.Duration) (fresh []string, err error) {
	n.recheck.Reset(max(n.opts.Recheck, 100*took))
	if n.watched != nil && len(n.moved) == 0 && !n.lost {
		return nil, nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		fresh, err = n.change(lib)
	}()
	var errs []error
	for {
		select {
		case err := <-n.watcher.Errors:
			errs = append(errs, err)
		case <-done:
			for _, err := range errs {
				n.failed(err)
			}
			return fresh, err
		}
	}
}

// change makes what is watched what is to be.
func (n *notified) change(lib Library) (fresh []string, err error) {
	for path := range n.watched {
		// What has another name now is not to be watched under this one.
		if n.lost || isOrBelow(path, n.moved) {
			n.unwatch(path)
		}
	}
	n.moved, n.lost = make(map[string]bool), false
	begins := n.watched == nil
	if begins {
		n.watched = make(map[string]use)
	}

	// There may be very many directories, so no second map is made of them.
	n.round ^= round
	var added []string
	count := 0
	for dir := range lib.Dirs() {
		if count++; count > maxOpen && runtime.GOOS != "linux" {
			return nil, fmt.Errorf("more than %d directories", maxOpen)
		}
		if _, known := n.watched[dir]; known {
			n.watched[dir] = forPacks | n.round
		} else {
			added = append(added, dir)
		}
	}
	above := make(map[string]use)
	n.lookForRoots(lib.Roots(), above)
	for path := range above {
		if why, known := n.watched[path]; known && why&round == n.round {
			n.watched[path] |= forRoot
		} else if known {
			n.watched[path] = forRoot | n.round
		}
	}
	for path, why := range n.watched {
		if why&round != n.round {
			n.unwatch(path)
		}
	}
	for _, path := range added {
		if _, known := n.watched[path]; known {
			continue // roots overlap
		}
		switch ok, err := n.watch(path, forPacks|above[path]); {
		case err != nil:
			return nil, fmt.Errorf("watching %d directories: %w", count, err)
		case ok && !begins:
			fresh = append(fresh, path)
		}
	}
	for path := range above {
		if _, known := n.watched[path]; !known {
			if _, err := n.watch(path, forRoot); err != nil {
				return nil, fmt.Errorf("watching %d directories: %w", count, err)
			}
		}
	}
	if n.rootsMoved() {
		n.all = true // between the look and the events
	}
	return fresh, nil
}

// watch reports whether a directory is watched now. That it is not there any more,
// or may not be read, is no error: an event above says so.
func (n *notified) watch(path string, why use) (bool, error) {
	err := n.watcher.Add(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err == nil {
		n.watched[path] = why | n.round
	}
	return err == nil, err
}

func (n *notified) unwatch(path string) {
	// That it is not watched any more, since it is gone, is no error.
	_ = n.watcher.Remove(path)
	delete(n.watched, path)
}

// lookForRoots finds out where the roots are, and which directories tell when
// that changes.
func (n *notified) lookForRoots(roots []string, want map[string]use) {
	n.spots, n.remote = make(map[string]bool, len(roots)), false
	for _, root := range roots {
		spot := n.spot(root)
		n.spots[spot] = true
		want[filepath.Dir(spot)] |= forRoot
		is := which(root)
		if was, known := n.roots[root]; known && is != was && !is.Same(was) {
			n.all = true // perhaps since it was looked at
		}
		n.roots[root] = is
		n.remote = n.remote || is != packfs.Which{} && !packfs.Local(root)
	}
}

// spot returns the path that comes, or goes, when the root does: of a root that
// is not there, the first directory on the way to it that is missing.
func (n *notified) spot(root string) string {
	path, err := filepath.Abs(root)
	if err != nil {
		return root
	}
	for {
		above := filepath.Dir(path)
		if resolved, err := filepath.EvalSymlinks(above); err == nil {
			return filepath.Join(resolved, filepath.Base(path))
		}
		if above == path {
			return path
		}
		path = above
	}
}

// isOrBelow reports whether a path, or a directory above it, is one of all.
func isOrBelow(path string, all map[string]bool) bool {
	for len(all) > 0 {
		if all[path] {
			return true
		}
		above := filepath.Dir(path)
		if above == path {
			return false
		}
		path = above
	}
	return false
}
