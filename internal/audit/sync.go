package audit

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// lazyDelay is how long a lazy append may stay unsynced. The promise is a
// second, and the sync itself takes time.
const lazyDelay = 700 * time.Millisecond

// A written is an entry that has to be synced.
type written struct {
	file     *os.File
	failures int // how many syncs had failed before it was written
}

// A round is one sync, for everybody whose entry was written before it began.
type round struct {
	file     *os.File
	done     chan struct{} // closed when the others are there
	err      error
	failures int   // after it
	failure  error // the last of them
}

// sync makes an entry durable. Those who come while a sync is under way share
// the next one: a disk takes about as long for many entries as for one, and when
// it fails, it fails for all of them.
func (l *Log) sync(w written) error {
	l.mu.Lock()
	r := l.waiting
	if r != nil && r.file == w.file {
		l.mu.Unlock()
		<-r.done
		return r.outcome(w)
	}
	r = &round{file: w.file, done: make(chan struct{})}
	l.waiting = r
	l.mu.Unlock()

	l.syncing <- struct{}{}
	l.mu.Lock()
	if l.waiting == r {
		l.waiting = nil // who comes now may have written after it began
	}
	l.mu.Unlock()
	// A file that was closed meanwhile, because the log was renamed, was synced
	// before that.
	if err := l.syncNow(w.file); !errors.Is(err, os.ErrClosed) {
		r.err = err
	}
	l.mu.Lock()
	r.failures, r.failure = l.failures, l.failure
	l.mu.Unlock()
	close(r.done)
	<-l.syncing
	return r.outcome(w)
}

// outcome is what a round that is done means for an entry.
func (r *round) outcome(w written) error {
	if r.err != nil || r.failures == w.failures {
		return r.err
	}
	return errLost(r.failure)
}

// lost returns an error when a sync failed since an entry was written.
func (l *Log) lost(w written) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures == w.failures {
		return nil
	}
	return errLost(l.failure)
}

// errLost is about an entry whose own sync went well, after another that failed.
// A system may tell of bytes that it could not write once, and take them for
// written from then on: the sync that failed may have been about these.
func errLost(failure error) error {
	return fmt.Errorf("a sync failed that the entry may have been part of: %w", failure)
}

// syncFile syncs a file, one at a time: whoever is told that all is well has to
// know of every sync that failed before.
func (l *Log) syncFile(f *os.File) error {
	l.syncing <- struct{}{}
	defer func() { <-l.syncing }()
	return l.syncNow(f)
}

// syncNow is syncFile for whoever has the token of syncing.
func (l *Log) syncNow(f *os.File) error {
	err := l.ops.sync(f)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		l.mu.Lock()
		l.failures++
		l.failure = err
		l.mu.Unlock()
	}
	return err
}

// syncLater starts the syncer unless it runs. The caller has the turn.
func (l *Log) syncLater(w written) {
	if l.lazy {
		return
	}
	l.lazy, l.unsynced = true, w
	l.syncer.Go(func() {
		timer := time.NewTimer(lazyDelay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.stop:
			return // Close syncs
		}
		l.turn <- struct{}{}
		w := written{file: l.file, failures: l.unsynced.failures}
		l.lazy = false
		<-l.turn
		var err error
		if w.file != nil {
			err = l.sync(w)
		} else {
			err = l.lost(w) // a rename failed half way; the file was synced before
		}
		if err != nil {
			l.opts.Logger.Error("syncing the audit log", "path", l.path, "err", err)
			l.turn <- struct{}{}
			l.lazyErr = err
			<-l.turn
		}
	})
}
