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

// tick looks at what there may be no events of.
func (n *notified) tick() {
	n.file = n.file || n.files.changed()
	n.all = n.all || n.rootsMoved() || n.anyRemote() && !time.Now().Before(n.next)
}

// maxWaiting is how many events are looked at, to see whether one is waiting that
// concerns a pack: more than come in a moment.
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
		if !ev.Has(fsnotify.Chmod) || !mayHoldMore(ev.Name) {
			return // a log, or what a program makes
		}
		n.touched[dir], n.touched[ev.Name], n.came = true, true, true // it may be open now
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
		n.came = n.came || mayHoldMore(ev.Name)
	}
}

// mayHoldMore reports whether there is, or was, something at path that is no
// regular file.
func mayHoldMore(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || !info.Mode().IsRegular()
}
