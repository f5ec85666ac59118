package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// opensFiles says that watching a directory opens every file in it. A user's home is
// too large and too private for that, so there we find new roots by looking.
const opensFiles = runtime.GOOS != "linux" && runtime.GOOS != "windows"

// maxOpen is how many directories are watched on systems where that costs an open
// file for each file in them, or a buffer for each directory: all systems except
// Linux.
const maxOpen = 1_000

// A use says why a directory is watched.
type use uint8

const (
	forPacks use = 1 << iota // it is a directory of the library
	forPath                  // it contains a root or a file of the library, or may come to contain it
	// round separates the current directories of the library from earlier ones: its
	// value alternates with each change.
	round
)

// notified is the eye that gets events from the system.
type notified struct {
	opts    Options
	watcher *fsnotify.Watcher
	local   func(dir string) bool // packfs.Local
	ticker  *time.Ticker          // of looks at the roots and files
	recheck *time.Timer           // of the next look at everything
	settle  *time.Timer           // runs while events wait to be passed on

	roots   map[string]packfs.Which // :: root, as it was given → the directory that was there; zero: none
	spots   map[string]string       // :: root or file → the path whose events concern it
	rootAt  map[string]bool         // :: such a path of a root → true
	fileAt  map[string]bool         // :: such a path of a file → whether it is the file's own path
	files   files
	watched map[string]use  // nil before the first follow
	round   use             // of the last change
	remote  map[string]bool // :: root on a file system without events → true, once that was logged
	next    time.Time       // when the remote roots are looked at next, if there are any

	touched map[string]bool // :: directory → something happened in it
	moved   map[string]bool // :: path → true if it was renamed, or is new
	all     bool            // something may have happened anywhere
	file    bool            // a file of the library may have changed
	lost    bool            // so many events came that the system dropped some
	first   time.Time       // when the first event that still waits came; zero: none waits
	taken   time.Time       // when the last events were passed on, until the look at them has ended; zero: no look is going on
	rest    time.Time       // until then, events are not passed on
	came    bool            // something new may be a directory
	most    int             // the most directories to watch; 0: as many as the system allows
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

// beside runs f, which changes the watcher, on a goroutine that ends before beside
// returns. It returns the errors that came meanwhile. [Watcher] says why this is
// needed.
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
			if n.tick(); n.all || n.file {
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

// tick looks at what may change without events.
func (n *notified) tick() {
	n.file = n.file || n.files.changed()
	n.all = n.all || n.rootsMoved() || n.anyRemote() && !time.Now().Before(n.next)
}

// maxWaiting is how many waiting events are checked for one that concerns a pack:
// more than come in a moment.
const maxWaiting = 10_000

func (n *notified) waiting() bool {
	for range maxWaiting {
		if n.all || n.file || len(n.touched) > 0 {
			return true
		}
		select {
		case <-n.recheck.C:
			n.all = true
		case <-n.ticker.C:
			n.tick()
		case ev, open := <-n.watcher.Events:
			if !open {
				return false
			}
			n.note(ev)
		case err, open := <-n.watcher.Errors:
			if !open {
				return false
			}
			n.failed(err)
		default:
			return false
		}
	}
	return false
}

// restAfter returns how long to rest after a look that took this long. A program that
// writes all the time then costs at most a fifth of a processor. An edit after a rest
// is not delayed.
func restAfter(took time.Duration) time.Duration { return min(4*took, time.Second) }

// failed handles an error of the watcher. Unless the error is known to be harmless,
// events have been lost.
func (n *notified) failed(err error) {
	n.opts.Logger.Debug("watching the folders of packs", "err", err)
	if !errors.Is(err, syscall.EINVAL) { // a directory that was moved, and removed before fsnotify heard of it
		n.all, n.lost = true, true
	}
}

// take returns what to look at, and starts collecting again.
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

// note records an event.
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
	case ofFile: // a folder on the way to the file
	case n.watched[dir]&forPacks == 0 && n.watched[ev.Name]&forPacks == 0:
		return // another file in the same folder
	case ev.Op&^(fsnotify.Write|fsnotify.Chmod) == 0 && n.watched[ev.Name] == 0 && !n.lib.Concerns(filepath.Base(ev.Name)):
		if !ev.Has(fsnotify.Chmod) || !mayHoldMore(ev.Name) {
			return // a log, or a file that a program writes
		}
		n.touched[dir], n.touched[ev.Name], n.came = true, true, true // it may have become readable
	default:
		n.touched[dir] = true
		n.touched[ev.Name] = true // in case it is a directory
	}
	// An event about a file does not change what is watched.
	switch {
	case n.rootAt[ev.Name] || ofFile || n.watched[ev.Name] != 0:
		if ev.Has(fsnotify.Create) || ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename) {
			n.moved[ev.Name] = true
		}
	case ev.Has(fsnotify.Create):
		n.came = n.came || mayHoldMore(ev.Name)
	}
}

// mayHoldMore reports whether there is, or was, something other than a regular file
// at path.
func mayHoldMore(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || !info.Mode().IsRegular()
}
