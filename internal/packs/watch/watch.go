// Package watch sees to it that a library of packs follows what people do to
// the folders while the program runs: by the system's own notifications, and by
// looking again and again where these are not to be had.
//
// It knows directories and no packs: what a change means is found out by the
// [Library], which reads only what changed. It tells no client anything; it
// calls [Options.Changed].
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
	// Roots are the folders that were configured, those that are not there too.
	Roots() []string
	// Files are what Refresh looks at besides, absolute: each may come and go.
	Files() []string
	// Dirs are the directories in which a change may concern a pack, absolute,
	// with symlinks resolved.
	Dirs() iter.Seq[string]
	// Concerns reports whether what is written to a file of this name may concern a
	// pack. It does not wait for Refresh.
	Concerns(name string) bool
	// Refresh looks again at some of them, nil for all, and reports whether
	// something of a pack is different now.
	Refresh(ctx context.Context, dirs []string) (changed bool, err error)
}

// Options say how to watch. A field that is 0 has its default.
type Options struct {
	// Changed is called each time when something of a pack is different, or one of
	// the library's files, and nothing is looked at until it returns. It runs on the
	// watcher's goroutine, and must not call [Watcher.Close], which ends its context
	// and waits for it.
	Changed func(context.Context)
	// Unchanged is called after a look that found nothing different, in the same way.
	// Between two looks, the folders may have been different for a moment: one was
	// moved away and back. What was read then may be wrong now.
	Unchanged func(context.Context)
	// Idle is called when nothing happened for IdleAfter since the last look that
	// an event, or the start, was the reason of, and when something happened all the
	// time for a minute. It is the time for work that can wait, of which it does one
	// step, and reports whether there are more. Between two steps, what happened
	// meanwhile is looked at; then the next waits as the first did. So no edit waits
	// for more than one step. Like Changed, it runs on the watcher's goroutine, and
	// Close ends its context and waits for it.
	Idle      func(context.Context) (more bool)
	IdleAfter time.Duration // 5 s

	// Poll looks again and again also where events are to be had.
	Poll bool
	// Every is the time between two looks when there are no events; 2 s, and
	// never less than twenty times of what a look takes.
	Every time.Duration
	// Recheck is the time between two looks at everything when there are events:
	// no system promises that it has one for each change; 30 s, and never less than
	// a hundred times of what a look takes.
	Recheck time.Duration
	// Quiet is how long there must be no event before what came is looked at: who
	// saves a file makes several; 25 ms. Longest is how long the first event waits
	// at most; 75 ms.
	Quiet, Longest time.Duration
	Logger         *slog.Logger // nil: no log

	mostBusy time.Duration // how long what can wait does wait, at most; a minute, but in tests
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

// lookEvery is the time between two looks at the library's files, and at where
// the roots are. Events tell of most that can happen to either, and not when a
// folder far above it is renamed, or another file system is mounted there.
const lookEvery = time.Second

// An eye says where something may have changed. It is used by one goroutine.
type eye interface {
	// wait returns when something may have changed. When ctx ends first, ok is
	// false, and nothing is lost: the next wait goes on.
	wait(ctx context.Context) (_ news, ok bool)
	// waiting reports whether something is there by now that the next wait returns,
	// without waiting for more of it than belongs together.
	waiting() bool
	// follow makes the directories that the library has by now those that are
	// watched, and returns those that were not before: what happened in them
	// meanwhile was not seen. The first time it returns none, though that is so of
	// all. took is how long it took to look at everything, if that was done just
	// before; otherwise 0. When ctx ends, it leaves off. The error is that it cannot
	// watch so many.
	follow(ctx context.Context, lib Library, took time.Duration) (fresh []string, err error)
	close()
}

// news are what an eye has seen.
type news struct {
	dirs []string // in which something may have changed; nil: anywhere
	file bool     // one of the library's files changed
}

// A Watcher is one library that is watched. It has two goroutines at most: one
// of its own, which looks and calls everybody, and where there are events, one
// of the library fsnotify, which reads them. There is a third for no longer than it takes
// to change which directories are watched, or to end: fsnotify can hold the lock that either
// needs until somebody reads an error of its own, and who waits for the lock cannot.
// Close ends all of them.
type Watcher struct {
	lib    Library
	opts   Options
	events func(Options) (eye, error)
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
}

// Start begins to watch lib, which it looks through once more: something may
// have changed since it was made. It returns at once.
func Start(lib Library, opts Options) *Watcher { return start(lib, opts, newNotified) }

// start is Start with the eye to begin with.
func start(lib Library, opts Options, events func(Options) (eye, error)) *Watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watcher{lib: lib, opts: opts.withDefaults(), events: events, cancel: cancel, done: make(chan struct{})}
	go w.run(ctx)
	return w
}

// Close stops watching, whatever it is at. When it returns, nothing is called any
// more, and no goroutine is left.
func (w *Watcher) Close() {
	w.cancel()
	<-w.done
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	e := w.open()
	defer func() { e.close() }()

	e, _ = w.follow(ctx, e, 0)
	// What happened since the library was made, before there were events, is seen now.
	took, _ := w.look(ctx, news{file: true})
	e, _ = w.follow(ctx, e, took)
	now := time.Now()
	last := now.Add(w.opts.mostBusy)                 // when to be idle whatever happens
	idle := earlier(now.Add(w.opts.IdleAfter), last) // when to be idle; zero when it was
	more := false                                    // it is, and did a step of some
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

// wait is that of the eye, until the time when to be idle, unless that is zero.
func wait(ctx context.Context, e eye, idle time.Time) (_ news, ok bool) {
	if !idle.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, idle)
		defer cancel()
	}
	return e.wait(ctx)
}

// open returns events where they are to be had.
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

// poll says, once, that there are no events, and returns what there is instead.
func (w *Watcher) poll(err error) eye {
	w.opts.Logger.Warn("the folders of packs are looked at from time to time, since the system tells of no changes in them", "every", w.opts.Every, "err", err)
	return newPoller(w.opts)
}

// look looks at what an eye saw, and tells of what is different. took is how long
// a look at everything took; of any other it is 0.
func (w *Watcher) look(ctx context.Context, seen news) (took time.Duration, changed bool) {
	begin := time.Now()
	changed, err := w.lib.Refresh(ctx, seen.dirs)
	if seen.dirs == nil {
		took = max(1, time.Since(begin))
	}
	if err != nil {
		if ctx.Err() == nil {
			w.opts.Logger.Warn("the folders of packs could not be looked at; what was found before counts", "err", err)
		}
		return took, false
	}
	// Who uses the library makes it look at its files too, and then this was not the
	// first to see what is in them.
	if changed || seen.file {
		w.opts.Changed(ctx)
	} else {
		w.opts.Unchanged(ctx)
	}
	return took, changed
}

// follow makes the eye see what is there now, and looks at what it did not see.
// The eye may be another one afterwards. changed is whether something was found.
func (w *Watcher) follow(ctx context.Context, e eye, took time.Duration) (now eye, changed bool) {
	// A directory can come with others in it, which come with others: as deep as
	// a library looks, and some more for those that come meanwhile.
	for range 16 {
		fresh, err := e.follow(ctx, w.lib, took)
		if err != nil {
			e.close()
			e = w.poll(err)
			_, _ = e.follow(ctx, w.lib, 0) // of a poller, it cannot fail
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
