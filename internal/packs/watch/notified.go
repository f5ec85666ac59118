package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// opensFiles says that watching a directory opens every file in it, which a
// user's home is too large, and too private, for. Where roots come is then seen
// by looking.
const opensFiles = runtime.GOOS != "linux" && runtime.GOOS != "windows"

// maxOpen is how many directories are watched where that costs an open file for
// each file in them, or a buffer for each: on all systems but Linux.
const maxOpen = 1_000

// A use says why a directory is watched.
type use uint8

const (
	forPacks use = 1 << iota // the library has it
	forPath                  // a root, or a file of the library, is in it, or may come into it
	// round tells those that the library still has from those that it had: each
	// change has the other value of it.
	round
)

// A notified eye is told by the system.
type notified struct {
	opts    Options
	watcher *fsnotify.Watcher
	local   func(dir string) bool // packfs.Local
	ticker  *time.Ticker          // of looks at the roots and files
	recheck *time.Timer           // of the next look at everything
	settle  *time.Timer           // runs while there are events that were not passed on

	roots   map[string]packfs.Which // :: root, as it was given → what was there; zero for nothing
	spots   map[string]string       // :: root, or file → path of which an event is about it
	rootAt  map[string]bool         // :: such a path of a root → true
	fileAt  map[string]bool         // :: such a path of a file → it is the file's own
	files   files
	watched map[string]use  // nil before the first follow
	round   use             // of the last change
	remote  map[string]bool // :: root on a file system without events → true; the log says so of each once
	next    time.Time       // when these are looked at next, if there are any

	touched map[string]bool // :: directory → something happened in it
	moved   map[string]bool // :: path → what had this name may have another, or is new
	all     bool            // something may have happened anywhere
	file    bool            // a file of the library may be another
	lost    bool            // so many events came that the system dropped some
	first   time.Time       // when the first event came that was not passed on; zero for none
	taken   time.Time       // when something was passed on that is being looked at; zero for nothing
	rest    time.Time       // before that, events are not passed on
	came    bool            // something that may be a directory is new
	most    int             // directories that are watched; 0: as many as the system allows
	lib     Library         // nil before the first follow
}

func newNotified(o Options) (eye, error) {
	w, err := fsnotify.NewBufferedWatcher(1_000)
	if err != nil {
		return nil, err
	}
	n := &notified{
		opts: o, watcher: w, local: packfs.Local, ticker: time.NewTicker(lookEvery), recheck: time.NewTimer(o.Recheck), settle: time.NewTimer(0),
		roots: make(map[string]packfs.Which), remote: make(map[string]bool), touched: make(map[string]bool), moved: make(map[string]bool),
	}
	n.settle.Stop()
	if runtime.GOOS != "linux" {
		n.most = maxOpen
	}
	return n, nil
}

func (n *notified) close() {
	n.ticker.Stop()
	n.recheck.Stop()
	n.settle.Stop()
	n.beside(func() { n.watcher.Close() }) // waits for its goroutine
}

// beside has f change the watcher on a goroutine that ends before it does, and
// returns the errors that came meanwhile: see [Watcher] for why.
func (n *notified) beside(f func()) (errs []error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	failing := n.watcher.Errors
	for {
		select {
		case err, open := <-failing:
			if !open {
				failing = nil
				continue
			}
			errs = append(errs, err)
		case <-done:
			return errs
		}
	}
}

func (n *notified) wait(ctx context.Context) (_ news, ok bool) {
	if !n.taken.IsZero() {
		n.rest, n.taken = time.Now().Add(restAfter(time.Since(n.taken))), time.Time{}
	}
	for {
		if n.all || n.file || len(n.touched) > 0 {
			if n.first.IsZero() {
				n.first = time.Now()
			}
			n.settle.Reset(max(0, min(n.opts.Quiet, n.opts.Longest-time.Since(n.first)), time.Until(n.rest)))
		}
		select {
		case <-ctx.Done():
			return news{}, false
		case <-n.settle.C:
			return n.take(), true
		case <-n.recheck.C:
			n.all = true
			return n.take(), true
		case <-n.ticker.C:
			n.file = n.file || n.files.changed()
			n.all = n.all || n.rootsMoved() || n.anyRemote() && !time.Now().Before(n.next)
			if n.all || n.file {
				return n.take(), true
			}
		case ev, open := <-n.watcher.Events:
			if !open {
				return news{}, false
			}
			n.note(ev)
		case err, open := <-n.watcher.Errors:
			if !open {
				return news{}, false
			}
			n.failed(err)
		}
	}
}

// restAfter is how long nothing is looked at after a look that took so long, so
// that whoever writes all the time takes no more than a fifth of one processor. An
// edit after that much peace waits for nothing.
func restAfter(took time.Duration) time.Duration { return min(4*took, time.Second) }

// failed keeps what an error says: unless it is known to mean nothing, events
// are missing.
func (n *notified) failed(err error) {
	n.opts.Logger.Debug("watching the folders of packs", "err", err)
	if !errors.Is(err, syscall.EINVAL) { // a directory that was moved, and removed before fsnotify heard of it
		n.all, n.lost = true, true
	}
}

// take returns what is to be looked at, and begins anew.
func (n *notified) take() news {
	seen := news{file: n.file}
	if !n.all {
		seen.dirs = make([]string, 0, len(n.touched))
		for d := range n.touched {
			seen.dirs = append(seen.dirs, d)
		}
	}
	clear(n.touched)
	n.all, n.file, n.first, n.taken = false, false, time.Time{}, time.Now()
	n.settle.Stop()
	return seen
}

// note keeps what an event says.
func (n *notified) note(ev fsnotify.Event) {
	dir := filepath.Dir(ev.Name)
	whole, ofFile := n.fileAt[ev.Name]
	if ofFile {
		n.file = n.files.changed() || !whole || n.file
	}
	switch {
	case n.rootAt[ev.Name]:
		n.all = true
	case whole:
		return
	case ofFile: // a folder on the way to it
	case n.watched[dir]&forPacks == 0 && n.watched[ev.Name]&forPacks == 0:
		return // a neighbour
	case ev.Op&^(fsnotify.Write|fsnotify.Chmod) == 0 && n.watched[ev.Name] == 0 && !n.lib.Concerns(filepath.Base(ev.Name)):
		return // a log, or what a program makes
	default:
		n.touched[dir] = true
		n.touched[ev.Name] = true // when it is a directory
	}
	// Of a file, nothing is to be watched in another way.
	switch {
	case n.rootAt[ev.Name] || ofFile || n.watched[ev.Name] != 0:
		if ev.Has(fsnotify.Create) || ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
			n.moved[ev.Name] = true
		}
	case ev.Has(fsnotify.Create):
		info, err := os.Lstat(ev.Name)
		n.came = n.came || err != nil || !info.Mode().IsRegular()
	}
}

// rootsMoved reports whether another directory is where a root was.
func (n *notified) rootsMoved() bool {
	for root, was := range n.roots {
		if is := which(root); is != was && !is.Same(was) {
			at, _ := spot(root)
			n.moved[at] = true
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

func (n *notified) follow(ctx context.Context, lib Library, took time.Duration) (fresh []string, err error) {
	n.lib = lib
	if took > 0 {
		n.recheck.Reset(max(n.opts.Recheck, 100*took))
		n.next = time.Now().Add(max(n.opts.Every, 20*took))
	} else if n.watched != nil && len(n.moved) == 0 && !n.came && !n.lost {
		return nil, nil
	}
	for _, err := range n.beside(func() { fresh, err = n.change(ctx, lib) }) {
		n.failed(err)
	}
	return fresh, err
}

// change makes what is watched what is to be.
func (n *notified) change(ctx context.Context, lib Library) (fresh []string, err error) {
	for path := range n.watched {
		// What has another name now is not to be watched under this one.
		if n.lost || isOrBelow(path, n.moved) {
			n.unwatch(path)
		}
	}
	n.moved, n.came, n.lost = make(map[string]bool), false, false
	begins := n.watched == nil
	if begins {
		n.watched = make(map[string]use)
		n.files = filesOf(lib)
	}

	// There may be very many directories, so no second map is made of them.
	n.round ^= round
	var added []string
	count := 0
	for dir := range lib.Dirs() {
		if ctx.Err() != nil {
			return nil, nil
		}
		if count++; n.most > 0 && count > n.most {
			return nil, fmt.Errorf("more than %d directories", n.most)
		}
		was, known := n.watched[dir]
		if !known {
			added = append(added, dir)
			continue
		}
		n.watched[dir] = forPacks | n.round
		if was&forPacks == 0 && !begins {
			fresh = append(fresh, dir)
		}
	}
	paths := make(map[string]use)
	n.findPaths(lib, paths)
	for path := range paths {
		if why, known := n.watched[path]; known && why&round == n.round {
			n.watched[path] |= forPath
		} else if known {
			n.watched[path] = forPath | n.round
		}
	}
	for path, why := range n.watched {
		if why&round != n.round {
			n.unwatch(path)
		}
	}
	for _, path := range added {
		if ctx.Err() != nil {
			return nil, nil
		}
		if _, known := n.watched[path]; known {
			continue // roots overlap
		}
		switch ok, err := n.watch(path, forPacks|paths[path]); {
		case err != nil:
			return nil, fmt.Errorf("watching %d directories: %w", count, err)
		case ok && !begins:
			fresh = append(fresh, path)
		}
	}
	for path := range paths {
		if _, known := n.watched[path]; !known {
			if _, err := n.watch(path, forPath); err != nil {
				return nil, fmt.Errorf("watching %d directories: %w", count, err)
			}
		}
	}
	// Between the look and the events:
	n.all = n.rootsMoved() || n.all
	n.file = n.files.changed() || n.file
	for path, was := range n.spots {
		if is, _ := spot(path); is != was {
			n.moved[is], n.all = true, true
		}
	}
	return fresh, nil
}

// watch reports whether a directory is watched now. That it is not there any more,
// or something else is, or it may not be read, is no error: an event above says so.
// The error is that the system watches no more.
func (n *notified) watch(path string, why use) (bool, error) {
	err := n.watcher.Add(path)
	switch {
	case err == nil:
		n.watched[path] = why | n.round
	case isNoMore(err):
		return false, err
	default:
		n.opts.Logger.Debug("watching a folder of packs", "dir", path, "err", err)
	}
	return err == nil, nil
}

// isNoMore reports whether an error says that the system watches no more.
func isNoMore(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}, func(no error) bool { return errors.Is(err, no) })
}

func (n *notified) unwatch(path string) {
	// That it is not watched any more, since it is gone, is no error.
	_ = n.watcher.Remove(path)
	delete(n.watched, path)
}

// findPaths finds out where the roots and files are, and which directories tell
// when that changes.
func (n *notified) findPaths(lib Library, want map[string]use) {
	n.spots, n.rootAt, n.fileAt = make(map[string]string), make(map[string]bool), make(map[string]bool)
	add := func(path string) (at string, whole bool) {
		at, whole = spot(path)
		n.spots[path] = at
		if !opensFiles {
			want[filepath.Dir(at)] |= forPath
		}
		return at, whole
	}
	for _, root := range lib.Roots() {
		at, _ := add(root)
		n.rootAt[at] = true
		is := which(root)
		if was, known := n.roots[root]; known && is != was && !is.Same(was) {
			n.all = true // perhaps since it was looked at
		}
		n.roots[root] = is
		remote := is != packfs.Which{} && !n.local(root)
		if _, told := n.remote[root]; remote && !told {
			n.opts.Logger.Info("this folder of packs is on a file system that may not tell of changes, as those of networks, and is looked at from time to time", "dir", root, "every", n.opts.Every)
		}
		if remote || n.remote[root] {
			n.remote[root] = remote
		}
	}
	for file := range n.files {
		at, whole := add(file)
		n.fileAt[at] = whole
	}
}

// anyRemote reports whether a root is on a file system without events.
func (n *notified) anyRemote() bool {
	for _, remote := range n.remote {
		if remote {
			return true
		}
	}
	return false
}

// spot returns the path that comes, or goes, when what is at path does: the same
// without symlinks above it, and then it is whole; or the first directory on the
// way to it that is missing.
func spot(path string) (at string, whole bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path, false
	}
	for at := abs; ; {
		above := filepath.Dir(at)
		if resolved, err := filepath.EvalSymlinks(above); err == nil {
			return filepath.Join(resolved, filepath.Base(at)), at == abs
		}
		if above == at {
			return at, at == abs
		}
		at = above
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
