// Package watch keeps a library of packs up to date with the folders while the
// program runs: it uses the system's notifications, and looks at regular intervals
// where there are none.
//
// It knows directories and no packs. The [Library] finds out what a change means, and
// reads only what changed. The package does not notify clients; it calls
// [Options.Changed].
package watch

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"time"
)

// A Library is what is watched; [packs.Library] is one.
type Library interface {
	// Roots returns the configured folders, including missing ones.
	Roots() []string
	// Files returns the other inputs of Refresh, absolute. Each may exist or not.
	Files() []string
	// Dirs yields the directories in which a change may affect a pack, absolute, with
	// symlinks resolved.
	Dirs() iter.Seq[string]
	// Concerns reports whether writing a file of this name may affect a pack. It does
	// not wait for Refresh.
	Concerns(name string) bool
	// Refresh looks at some directories again, nil for all, and reports whether a
	// pack has changed.
	Refresh(ctx context.Context, dirs []string) (changed bool, err error)
}

// Options say how to watch. A field that is 0 has its default.
type Options struct {
	// Changed is called each time a pack or one of the library's files has changed.
	// The watcher does not look at anything until it returns. It runs on the
	// watcher's goroutine, and must not call [Watcher.Close], which cancels its
	// context and waits for it.
	Changed func(context.Context)
	// Unchanged is called in the same way after a look that found no change. Between
	// two looks, the folders may still have been different for a moment, for example
	// if one was moved away and back. What was read in that moment may be wrong.
	Unchanged func(context.Context)
	// Idle does one step of work that can wait, and reports whether there is more. It
	// is called when nothing has happened for IdleAfter since the last look that was
	// caused by an event or the start, or when things kept happening for a minute.
	// Between two steps, the watcher looks at what changed meanwhile; then the next
	// step waits like the first. So no edit waits for more than one step. Like
	// Changed, it runs on the watcher's goroutine, and Close cancels its context and
	// waits for it.
	Idle      func(context.Context) (more bool)
	IdleAfter time.Duration // 5 s

	// Poll looks at regular intervals even if there are events.
	Poll bool
	// Every is the time between two looks if there are no events: 2 s, and at least
	// twenty times as long as a look takes.
	Every time.Duration
	// Recheck is the time between two looks at everything if there are events, since
	// no system promises an event for each change: 30 s, and at least a hundred times
	// as long as a look takes.
	Recheck time.Duration
	// Quiet is how long there must be no event before the watcher looks, since saving
	// a file causes several: 25 ms. Longest is how long the first event can wait: 75
	// ms.
	Quiet, Longest time.Duration
	Logger         *slog.Logger // nil: no log

	mostBusy time.Duration // how long deferred work waits at most if things keep happening; a minute, except in tests
}

func (o Options) withDefaults() Options {
	o.IdleAfter = cmp.Or(o.IdleAfter, 5*time.Second)
	o.Every = cmp.Or(o.Every, 2*time.Second)
	o.Recheck = cmp.Or(o.Recheck, 30*time.Second)
	o.Quiet = cmp.Or(o.Quiet, 25*time.Millisecond)
	o.Longest = cmp.Or(o.Longest, 75*time.Millisecond)
	o.mostBusy = cmp.Or(o.mostBusy, time.Minute)
	if o.Changed == nil {
		o.Changed = func(context.Context) {}
	}
	if o.Unchanged == nil {
		o.Unchanged = func(context.Context) {}
	}
	if o.Idle == nil {
		o.Idle = func(context.Context) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// lookEvery is the time between two looks at the library's files, and at where the
// roots are. Most of what can happen to them causes events, but not when a folder far
// above is renamed, or another file system is mounted there.
const lookEvery = time.Second

// An eye notices where something may have changed. Only one goroutine uses it.
type eye interface {
	// wait returns when something may have changed. If ctx ends first, ok is false,
	// and nothing is lost: the next wait continues.
	wait(ctx context.Context) (_ news, ok bool)
	// waiting reports whether the next wait would return something now. It does not
	// wait for further events that belong to it.
	waiting() bool
	// follow makes the watched directories those that the library has now, and
	// returns the ones that are new: changes in them until now were not noticed. The
	// first time it returns none, although all are new. took is how long the look at
	// everything just before took; 0 if there was none. It stops early if ctx ends.
	// An error means that so many directories cannot be watched.
	follow(ctx context.Context, lib Library, took time.Duration) (fresh []string, err error)
	close()
}

// news is what an eye has noticed.
type news struct {
	dirs []string // in which something may have changed; nil: anywhere
	file bool     // one of the library's files changed
}

// A Watcher keeps one library up to date. It has at most two goroutines: its own,
// which looks and calls the callbacks, and, if there are events, one of the library
// fsnotify, which reads them. A third exists only while the watched directories
// change, or while the Watcher ends: fsnotify can hold the lock that both need until
// somebody reads its errors, and the goroutine that waits for the lock cannot read
// them. Close ends all of them.
type Watcher struct {
	lib    Library
	opts   Options
	events func(Options) (eye, error)
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
}

// Start begins to watch lib, and returns at once. It looks at everything once more,
// since something may have changed since lib was made.
func Start(lib Library, opts Options) *Watcher { return start(lib, opts, newNotified) }

// start is Start with a given kind of eye.
func start(lib Library, opts Options, events func(Options) (eye, error)) *Watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watcher{lib: lib, opts: opts.withDefaults(), events: events, cancel: cancel, done: make(chan struct{})}
	go w.run(ctx)
	return w
}

// Close stops watching, whatever the Watcher is doing. After it returns, no callback
// runs, and no goroutine is left.
func (w *Watcher) Close() {
	w.cancel()
	<-w.done
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	e := w.open()
	defer func() { e.close() }()

	e, _ = w.follow(ctx, e, 0)
	// Notice what happened after the library was made and before there were events.
	took, _ := w.look(ctx, news{file: true})
	e, _ = w.follow(ctx, e, took)
	now := time.Now()
	last := now.Add(w.opts.mostBusy)                 // when to call Idle at the latest
	idle := earlier(now.Add(w.opts.IdleAfter), last) // when to call Idle next; zero: Idle has nothing left to do
	more := false                                    // Idle did a step, and has more to do
	for ctx.Err() == nil {
		until := idle
		if more && e.waiting() {
			until = time.Time{}
		}
		seen, ok := wait(ctx, e, until)
		if !ok {
			if ctx.Err() != nil {
				return
			}
			if more = w.opts.Idle(ctx); !more {
				idle = time.Time{}
			}
			continue
		}
		more = false
		took, changed := w.look(ctx, seen)
		var found bool
		e, found = w.follow(ctx, e, took)
		if seen.dirs != nil || changed || found {
			now := time.Now()
			if idle.IsZero() {
				last = now.Add(w.opts.mostBusy)
			}
			idle = earlier(now.Add(w.opts.IdleAfter), last)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// wait is e.wait, but ends at the time idle, unless that is zero.
func wait(ctx context.Context, e eye, idle time.Time) (_ news, ok bool) {
	if !idle.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, idle)
		defer cancel()
	}
	return e.wait(ctx)
}

// open returns an eye with events, if the system has them.
func (w *Watcher) open() eye {
	if w.opts.Poll {
		return newPoller(w.opts)
	}
	e, err := w.events(w.opts)
	if err != nil {
		return w.poll(err)
	}
	return e
}

// poll logs that there are no events, and returns an eye that polls.
func (w *Watcher) poll(err error) eye {
	w.opts.Logger.Warn("the system cannot report changes in the folders of packs; they are scanned at intervals", "every", w.opts.Every, "err", err)
	return newPoller(w.opts)
}

// look looks at what an eye noticed, and reports what changed. took is how long a
// look at everything took, or 0 for any other look.
func (w *Watcher) look(ctx context.Context, seen news) (took time.Duration, changed bool) {
	begin := time.Now()
	changed, err := w.lib.Refresh(ctx, seen.dirs)
	if seen.dirs == nil {
		took = max(1, time.Since(begin))
	}
	if err != nil {
		if ctx.Err() == nil {
			w.opts.Logger.Warn("scanning the folders of packs failed; the packs that were found before stay in use", "err", err)
		}
		return took, false
	}
	// Other users of the library also make it look at its files. Then this look is
	// not the first to see what is in them.
	if changed || seen.file {
		w.opts.Changed(ctx)
	} else {
		w.opts.Unchanged(ctx)
	}
	return took, changed
}

// follow makes the eye watch what is there now, and looks at what the eye did not see
// before. It returns the eye to use from now on. changed reports whether it found a
// change.
func (w *Watcher) follow(ctx context.Context, e eye, took time.Duration) (now eye, changed bool) {
	// A new directory can hold directories, which hold others: as deep as a library
	// looks, and some more for those that are created meanwhile.
	for range 16 {
		fresh, err := e.follow(ctx, w.lib, took)
		if err != nil {
			e.close()
			e = w.poll(err)
			_, _ = e.follow(ctx, w.lib, 0) // a poller's follow cannot fail
			took, changed = w.look(ctx, news{file: true})
			_, _ = e.follow(ctx, w.lib, took)
			return e, changed
		}
		if len(fresh) == 0 || ctx.Err() != nil {
			break
		}
		took = 0
		_, found := w.look(ctx, news{dirs: fresh})
		changed = changed || found
	}
	return e, changed
}
