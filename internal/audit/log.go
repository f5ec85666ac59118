package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// lockWait is how long an append waits for other writers.
const lockWait = 5 * time.Second

// Options change how a log is written. The zero value is usable.
type Options struct {
	// MaxSize is the size in bytes at which the file is renamed and a new one
	// begun; 0 never renames. A single entry may exceed it.
	MaxSize int64
	// Server is put into entries that have none.
	Server string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger receives problems that do not stop an append, such as a failed
	// rename; nil discards them.
	Logger *slog.Logger
}

// Log appends to one log file. It is safe for concurrent use, including by
// several processes. If a crash left the end damaged, the next append records
// that and continues.
type Log struct {
	path   string
	opts   Options
	wait   time.Duration
	lock   *flock.Flock // between processes; held only by the holder of the turn
	ops    fileOps
	stop   chan struct{} // closed by Close
	syncer sync.WaitGroup

	turn     chan struct{} // holds a token while somebody uses what follows
	head     head
	file     *os.File // nil until the first use, and after Close
	size     int64    // of file after our last look or write; -1: look again
	pos      position
	closed   bool
	lazy     bool    // the syncer runs, and will sync file
	unsynced written // the oldest entry that the syncer has to sync; meaningful while lazy is set
	lazyErr  error   // the syncer's error; the next append returns it

	syncing  chan struct{} // holds a token while a file is synced
	mu       sync.Mutex
	waiting  *round // the next round, which a caller can still join; nil: none
	failures int    // syncs that failed
	failure  error  // of the last of them
}

// fileOps are the operations that fail when a disk is full or broken. Tests
// replace them.
type fileOps struct {
	write func(*os.File, []byte) (int, error)
	sync  func(*os.File) error
}

// Open opens the log at path. It creates a missing log with mode 0600, and
// missing folders above it with mode 0700. It returns an [*UnsafeError] if the
// file, or the head file beside it, is a link, is not a regular file, belongs to
// another user, can be accessed by others, or is not an audit log.
func Open(path string, opts Options) (*Log, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening audit log %q: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("opening audit log %q: %w", path, err)
	}
	l := &Log{
		path:    path,
		head:    head{path: headPath(path)},
		opts:    opts,
		wait:    lockWait,
		lock:    flock.New(lockPath(path), flock.SetFlag(os.O_CREATE|os.O_RDONLY|openFlags)),
		ops:     fileOps{write: (*os.File).Write, sync: (*os.File).Sync},
		stop:    make(chan struct{}),
		turn:    make(chan struct{}, 1),
		syncing: make(chan struct{}, 1),
		size:    -1,
	}
	release, err := l.acquire()
	if err == nil {
		err = l.look()
		release()
	}
	if err != nil {
		err = errors.Join(err, l.head.close())
		if l.file != nil {
			err = errors.Join(err, l.file.Close())
		}
		return nil, fmt.Errorf("opening audit log %q: %w", path, err)
	}
	return l, nil
}

// Append writes e and returns once it is on the disk. If it returns an error,
// the entry may or may not be in the log, and the caller must not do what the
// entry records. It waits at most 5 seconds for other writers.
func (l *Log) Append(e Entry) error {
	w, err := l.append([]Entry{e}, false)
	if err != nil {
		return fmt.Errorf("writing audit log %q: %w", l.path, err)
	}
	// Sync without the turn and the lock, so that others can write meanwhile.
	if err := l.sync(w); err != nil {
		return fmt.Errorf("syncing audit log %q: %w", l.path, err)
	}
	return nil
}

// AppendLazy writes e at once and syncs it to the disk within a second. If the
// sync fails, the next append returns the error.
func (l *Log) AppendLazy(e Entry) error { return l.AppendAll([]Entry{e}) }

// AppendAll is [Log.AppendLazy] for several entries, which get consecutive lines. If it
// returns an error, only the first of them may be in the log.
func (l *Log) AppendAll(entries []Entry) error {
	if _, err := l.append(slices.Clone(entries), true); err != nil {
		return fmt.Errorf("writing audit log %q: %w", l.path, err)
	}
	return nil
}

// Ready returns why no entry could be written now.
func (l *Log) Ready(context.Context) error {
	release, err := l.acquire()
	if err != nil {
		return err
	}
	defer release()
	return l.look()
}

// Failures returns how many syncs failed. An entry written lazily before a
// failed sync may be lost, even if a later sync of the same file succeeds.
func (l *Log) Failures() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}

// Close syncs what was written, waits for background work and closes the log.
// Appends after it return [ErrClosed].
func (l *Log) Close() error {
	l.turn <- struct{}{} // every holder returns the turn in bounded time
	if l.closed {
		<-l.turn
		return nil
	}
	l.closed = true
	close(l.stop)
	<-l.turn
	l.syncer.Wait()

	err := errors.Join(l.lazyErr, l.head.close())
	if l.file != nil {
		err = errors.Join(err, l.syncFile(l.file), l.file.Close())
	}
	if l.lazy && err == nil {
		err = l.lost(l.unsynced)
	}
	if err != nil {
		return fmt.Errorf("closing audit log %q: %w", l.path, err)
	}
	return nil
}

// acquire takes the turn and the lock, in bounded time.
func (l *Log) acquire() (release func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.wait)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waited %v for other writers of this process: %w", l.wait, ctx.Err())
	}
	if l.closed {
		<-l.turn
		return nil, ErrClosed
	}
	if _, err := l.lock.TryLockContext(ctx, time.Millisecond); err != nil {
		<-l.turn
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("waited %v for the process that holds %q: %w", l.wait, l.lock.Path(), err)
		}
		return nil, fmt.Errorf("locking: %w", err)
	}
	return func() {
		if err := l.lock.Unlock(); err != nil {
			l.opts.Logger.Warn("unlocking the audit log", "path", l.lock.Path(), "err", err)
		}
		<-l.turn
	}, nil
}

// append writes entries, which it completes, and returns what the caller has to sync.
func (l *Log) append(entries []Entry, lazy bool) (written, error) {
	for i := range entries {
		switch e := &entries[i]; e.Event {
		case "":
			return written{}, errors.New("the entry has no event")
		case EventRecovered:
			return written{}, fmt.Errorf("event %q is reserved for the log itself", e.Event)
		default:
			*e = withoutTokens(*e)
		}
	}
	release, err := l.acquire()
	if err != nil {
		return written{}, err
	}
	defer release()
	if err := l.lazyErr; err != nil {
		l.lazyErr = nil
		return written{}, fmt.Errorf("syncing earlier entries: %w", err)
	}
	if err := l.look(); err != nil {
		return written{}, err
	}
	l.mu.Lock()
	failures := l.failures // read before writing: a sync may fail meanwhile
	l.mu.Unlock()
	if err := l.write(entries); err != nil {
		l.size = -1
		return written{}, err
	}
	w := written{file: l.file, failures: failures}
	if lazy {
		l.syncLater(w)
	}
	return w, nil
}

// look brings l.file and l.pos up to date with the disk, since another process
// may have written, renamed or removed the file. The caller holds the lock.
func (l *Log) look() error {
	fi, err := os.Lstat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := checkSafe(l.path, fi); err != nil {
			return err
		}
	}
	same := false
	if err == nil && l.file != nil {
		old, err := l.file.Stat()
		same = err == nil && os.SameFile(fi, old)
	}
	if !same {
		if err := l.reopen(); err != nil {
			return err
		}
		if fi, err = l.file.Stat(); err != nil {
			return err
		}
	}
	if fi.Size() == l.size {
		return nil
	}
	l.size = -1
	pos, err := locate(l.path, l.file, fi.Size())
	if err != nil {
		return err
	}
	if pos.fresh {
		if err := l.head.write(pos.last); err != nil {
			return err
		}
		if err := syncDir(filepath.Dir(l.path)); err != nil {
			return err
		}
	}
	if pos.recovery != nil {
		l.opts.Logger.Warn("the audit log was damaged; the next entry records it",
			"path", l.path, "missing", pos.recovery.Missing, "torn", pos.recovery.Torn != nil, "head", pos.recovery.Head)
	}
	l.pos, l.size = pos, fi.Size()
	return nil
}

// reopen opens the file that is at the path now. It syncs the old one before
// closing it, and sync relies on that.
func (l *Log) reopen() error {
	if l.file != nil {
		if err := l.syncFile(l.file); err != nil {
			return err
		}
	}
	f, err := openSafe(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	old := l.file
	l.file, l.size = f, -1
	if old != nil {
		return old.Close()
	}
	return nil
}

// write appends entries, preceded by any recovery that is due.
func (l *Log) write(entries []Entry) error {
	if l.pos.recovery != nil {
		entries = append([]Entry{{Event: EventRecovered, Recovered: l.pos.recovery}}, entries...)
	}
	now := l.opts.Now().UTC()
	at := link{seq: l.pos.seq, hash: l.pos.last.hash}
	var buf []byte
	if !l.pos.newline {
		buf = append(buf, '\n')
	}
	for i := range entries {
		e := &entries[i]
		if e.Event != EventRecovered {
			e.Recovered = nil
		}
		if e.Time.IsZero() {
			e.Time = now
		}
		e.Time = e.Time.UTC()
		if e.Server == "" {
			e.Server = l.opts.Server
		}
		e.Seq, e.Prev = at.seq+1, at.hash
		line, err := encode(e)
		if err != nil {
			return err
		}
		// A recovery must stay in the same file as the damage it describes, and before
		// another entry.
		if l.opts.MaxSize > 0 && l.size+int64(len(buf)) > 0 && l.size+int64(len(buf)+len(line)) > l.opts.MaxSize && l.pos.newline && l.pos.recovery == nil {
			if err := l.flush(buf, at); err != nil {
				return err
			}
			if err := l.rotate(); err != nil {
				return err
			}
			buf = buf[:0]
		}
		buf = append(buf, line...)
		at = link{seq: e.Seq, hash: e.Hash, prev: e.Prev}
	}
	return l.flush(buf, at)
}

// flush appends lines, the last of which is at, in one write.
func (l *Log) flush(lines []byte, at link) error {
	if len(lines) == 0 {
		return nil
	}
	if _, err := l.ops.write(l.file, lines); err != nil {
		return err
	}
	if err := l.head.write(at); err != nil {
		return err
	}
	l.size += int64(len(lines))
	l.pos = position{size: l.size, last: at, seq: at.seq, newline: true}
	return nil
}
