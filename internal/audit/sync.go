package audit

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// lazyDelay is how long a lazy append may stay unsynced. [Log.AppendLazy]
// promises a second, and the sync itself takes time.
const lazyDelay = 700 * time.Millisecond

// A written is an entry that has to be synced.
type written struct {
	file     *os.File
	failures int // how many syncs had failed before it was written
}

// A round is one sync, shared by every entry that was written before it began.
type round struct {
	file     *os.File
	done     chan struct{} // closed when the other fields are set
	err      error
	failures int   // after it
	failure  error // the last of them
}

// sync makes an entry durable. Callers that arrive during a sync share the next
// one: a disk takes about as long for many entries as for one, and a failure is
// a failure for all of them.
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
		l.waiting = nil // a caller arriving now may have written after it began
	}
	l.mu.Unlock()
	// If a rename closed the file meanwhile, reopen synced it first.
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

// outcome returns what a finished round means for an entry.
func (r *round) outcome(w written) error {
	if r.err != nil || r.failures == w.failures {
		return r.err
	}
	return errLost(r.failure)
}

// lost returns an error if a sync failed since an entry was written.
func (l *Log) lost(w written) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures == w.failures {
		return nil
	}
	return errLost(l.failure)
}

// errLost is for an entry whose own sync succeeded after another sync failed. A
// system may report only once that it could not write some bytes, and consider
// them written from then on, so the failed sync may have been about this entry's
// bytes.
func errLost(failure error) error {
	return fmt.Errorf("a sync failed that the entry may have been part of: %w", failure)
}

// syncFile syncs a file. Syncs run one at a time: a caller may be told that all
// is well only when every earlier failure is known.
func (l *Log) syncFile(f *os.File) error {
	l.syncing <- struct{}{}
	defer func() { <-l.syncing }()
	return l.syncNow(f)
}

// syncNow is syncFile for a caller that holds the syncing token.
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

// syncLater starts the syncer unless it is running. The caller has the turn.
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
			err = l.lost(w) // a rename failed half way; the file was already synced
		}
		if err != nil {
			l.opts.Logger.Error("syncing the audit log", "path", l.path, "err", err)
			l.turn <- struct{}{}
			l.lazyErr = err
			<-l.turn
		}
	})
}
