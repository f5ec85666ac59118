package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// A fake library returns what its fields say.
type fake struct {
	roots   []string
	files   []string
	dirs    iter.Seq[string]
	refresh func(ctx context.Context, dirs []string) (bool, error) // nil: nothing changed
}

func (f *fake) Roots() []string           { return f.roots }
func (f *fake) Files() []string           { return f.files }
func (f *fake) Concerns(name string) bool { return name == "SKILL.md" }
func (f *fake) Dirs() iter.Seq[string]    { return f.dirs }
func (f *fake) Refresh(ctx context.Context, dirs []string) (bool, error) {
	if f.refresh == nil {
		return false, ctx.Err()
	}
	return f.refresh(ctx, dirs)
}

func only(dirs ...string) iter.Seq[string] { return slices.Values(dirs) }

// A blind eye cannot watch what it is asked to.
type blind struct{ closed bool }

func (*blind) wait(ctx context.Context) (news, bool) { <-ctx.Done(); return news{}, false }
func (*blind) follow(context.Context, Library, time.Duration) ([]string, error) {
	return nil, &syscallError{syscall.ENOSPC}
}
func (*blind) waiting() bool { return false }
func (b *blind) close()      { b.closed = true }

type syscallError struct{ error }

// patience is how long a test waits for something that must happen.
const patience = 20 * time.Second

// If the system has no watches left, or none at all, the folders are polled, and one
// line of the log says so.
func TestPollingTakesOver(t *testing.T) {
	eyes := map[string]func(b *blind) (eye, error){
		"none at all": func(*blind) (eye, error) { return nil, syscall.EMFILE },
		"not so many": func(b *blind) (eye, error) { return b, nil },
	}
	for name, open := range eyes {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			b := &blind{}
			looks, changed := 0, make(chan struct{})
			w := start(&fake{dirs: only("/a"), refresh: func(ctx context.Context, _ []string) (bool, error) {
				if looks++; looks == 4 {
					close(changed)
				}
				return false, ctx.Err()
			}}, Options{Every: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(Options) (eye, error) { return open(b) })
			select {
			case <-changed:
			case <-time.After(patience):
				t.Error("nothing was looked at")
			}
			w.Close()
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "scanned at intervals") {
				t.Errorf("%d lines in the log, want one:\n%s", n, log.String())
			}
			if name == "not so many" && !b.closed {
				t.Error("the eye that could not was not closed")
			}
		})
	}
}

func withEvents(t *testing.T, o Options) *notified {
	t.Helper()
	e, err := newNotified(o.withDefaults())
	if err != nil {
		t.Skipf("events: %v", err)
	}
	return e.(*notified)
}

// If events were lost, everything is looked at, and watched again.
func TestLostEvents(t *testing.T) {
	n := withEvents(t, Options{})
	defer n.close()
	dir := t.TempDir()
	lib := &fake{dirs: only(dir)}
	if _, err := n.follow(t.Context(), lib, 0); err != nil {
		t.Fatal(err)
	}
	go func() { n.watcher.Errors <- errors.New("overflow") }()
	if seen, ok := n.wait(t.Context()); !ok || seen.dirs != nil {
		t.Errorf("wait = %v, %v, want everything", seen, ok)
	}
	if fresh, err := n.follow(t.Context(), lib, 0); err != nil || !slices.Equal(fresh, []string{dir}) {
		t.Errorf("follow = %v, %v, want the one directory again", fresh, err)
	}
}

// Folders on a network file system are polled even if there are events for the rest,
// and the log has one line for each such folder.
func TestRemoteRoot(t *testing.T) {
	var log bytes.Buffer
	n := withEvents(t, Options{Every: time.Millisecond, Recheck: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer n.close()
	far, near, gone := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "gone")
	n.local = func(dir string) bool { return dir == near }
	n.ticker.Reset(time.Millisecond)
	lib := &fake{roots: []string{far, near, gone}, dirs: only(near)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 3 {
		if _, err := n.follow(t.Context(), lib, time.Nanosecond); err != nil {
			t.Fatal(err)
		}
		if seen, ok := n.wait(ctx); !ok || seen.dirs != nil {
			t.Fatalf("wait = %v, %v, want everything", seen, ok)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "dir="+far) {
		t.Errorf("%d lines in the log, want one about %s:\n%s", n, far, log.String())
	}
	// A look that takes long is made less often.
	if _, err := n.follow(t.Context(), lib, time.Hour); err != nil {
		t.Fatal(err)
	}
	if wait := time.Until(n.next); wait < 19*time.Hour {
		t.Errorf("the next look is in %v, after one that took an hour", wait)
	}
}

// A root is created folder by folder, the first while its path is being examined.
func TestRootIsCreatedLater(t *testing.T) {
	if opensFiles {
		t.Skip("linux, windows: elsewhere, where roots come is seen by looking")
	}
	n := withEvents(t, Options{})
	defer n.close()
	n.ticker.Stop() // only events count
	there, top := t.TempDir(), t.TempDir()
	above := filepath.Join(top, "a")
	mkdir := func(dir string) {
		if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
			t.Error(err)
		}
	}
	n.local = func(string) bool { mkdir(above); return true } // called for the root that exists
	lib := &fake{roots: []string{filepath.Join(above, "b", "root"), there}, dirs: only(there)}
	for _, next := range []string{"", filepath.Join(above, "b"), filepath.Join(above, "b", "root")} {
		if _, err := n.follow(t.Context(), lib, 0); err != nil {
			t.Fatal(err)
		}
		if next != "" {
			mkdir(next)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		seen, ok := n.wait(ctx)
		cancel()
		if !ok || seen.dirs != nil {
			t.Fatalf("wait = %v, %v after %q came, want everything", seen, ok, next)
		}
	}
}

// What happens to a root or a file between examining its path and getting its events
// is not lost.
func TestChangesBeforeEvents(t *testing.T) {
	top := t.TempDir()
	root, file := filepath.Join(top, "a", "root"), filepath.Join(top, "b", "file")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(root, 0o755))
	must(os.Mkdir(filepath.Dir(file), 0o755))
	for name, c := range map[string]struct {
		change func()
		want   news
	}{
		"another root": {func() { must(os.Rename(root, root+"-aside")); must(os.Mkdir(root, 0o755)) }, news{}},
		"a file":       {func() { must(os.WriteFile(file, []byte("new"), 0o644)) }, news{dirs: []string{}, file: true}},
	} {
		n := withEvents(t, Options{Recheck: time.Hour})
		n.ticker.Stop()
		n.local = func(string) bool { c.change(); return true } // called for the root
		if _, err := n.follow(t.Context(), &fake{roots: []string{root}, files: []string{file}, dirs: only(root)}, 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		seen, ok := n.wait(ctx)
		cancel()
		if !ok || (seen.dirs == nil) != (c.want.dirs == nil) || seen.file != c.want.file {
			t.Errorf("%s: wait = %+v, %v, want %+v", name, seen, ok, c.want)
		}
		n.close()
	}
}

// A folder far above a root may be renamed, which causes no event. What others do
// beside a root is no reason to look.
func TestAboveAndBesideRoots(t *testing.T) {
	top := t.TempDir()
	parent := filepath.Join(top, "a", "b")
	root := filepath.Join(parent, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root, parent = resolved, filepath.Dir(resolved)
	}
	write := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n := withEvents(t, Options{Recheck: time.Hour})
	defer n.close()
	if _, err := n.follow(t.Context(), &fake{roots: []string{root}, dirs: only(root)}, 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	write(filepath.Join(parent, "SKILL.md")) // it would concern a pack, if there were one
	write(filepath.Join(root, "SKILL.md"))
	if seen, ok := n.wait(ctx); !ok || !slices.Contains(seen.dirs, root) || slices.Contains(seen.dirs, parent) {
		t.Errorf("wait = %q, %v, want %q without %q", seen.dirs, ok, root, parent)
	}
	n.ticker.Reset(time.Millisecond)
	if err := os.Rename(filepath.Join(top, "a"), filepath.Join(top, "x")); err != nil {
		t.Fatal(err)
	}
	if seen, ok := n.wait(ctx); !ok || seen.dirs != nil {
		t.Errorf("wait = %+v, %v after a folder above the root was renamed, want everything", seen, ok)
	}
}

// fsnotify can wait for somebody to read its error while it holds the lock needed to
// change or close it. Neither operation waits for that.
func TestErrorUnderTheLock(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("linux: the error is that of inotify_rm_watch")
	}
	for _, last := range []string{"change", "close"} {
		for range 20 {
			n := withEvents(t, Options{})
			top := t.TempDir()
			dir, away := filepath.Join(top, "dir"), filepath.Join(top, "away")
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(os.Mkdir(dir, 0o755))
			w, err := fsnotify.NewWatcher() // without a buffer, it only proceeds as far as this test lets it
			must(err)
			n.watcher.Close()
			n.watcher = w
			must(w.Add(dir))
			must(os.WriteFile(filepath.Join(dir, "x"), nil, 0o644))
			must(os.Remove(filepath.Join(dir, "x")))
			must(os.Rename(dir, away))
			must(os.Remove(away))
			for ev := range w.Events {
				if ev.Has(fsnotify.Remove) {
					break // what comes next is the error: the moved directory is gone
				}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if last == "change" {
					if _, err := n.follow(context.Background(), &fake{dirs: only(top)}, 0); err != nil {
						t.Error(err)
					}
				}
				n.close()
			}()
			select {
			case <-done:
			case <-time.After(patience):
				t.Fatalf("at the %s: still waiting for the lock", last)
			}
		}
	}
}

// Close ends a watcher, whatever it is doing.
func TestCloseAtAnything(t *testing.T) {
	dir := t.TempDir()
	// until signals that it began, and then runs until the watcher is closed.
	type until func(ctx context.Context)
	for name, set := range map[string]func(lib *fake, o *Options, until until){
		"a look": func(lib *fake, _ *Options, until until) {
			lib.refresh = func(ctx context.Context, _ []string) (bool, error) { until(ctx); return true, ctx.Err() }
		},
		"telling of a change": func(_ *fake, o *Options, until until) { o.Changed = until },
		"a look at directories that are new": func(lib *fake, _ *Options, until until) {
			lib.refresh = func(ctx context.Context, dirs []string) (bool, error) {
				if dirs == nil {
					lib.dirs = only(dir, filepath.Dir(dir))
				} else {
					until(ctx)
				}
				return false, ctx.Err()
			}
		},
		"directories without end": func(lib *fake, _ *Options, until until) {
			lib.dirs = func(yield func(string) bool) {
				ended, end := context.WithCancel(context.Background())
				end()
				until(ended)
				for yield(dir) {
				}
			}
		},
		"nothing": func(lib *fake, o *Options, until until) {
			o.IdleAfter = time.Millisecond
			o.Idle = func(context.Context) bool {
				ended, end := context.WithCancel(context.Background())
				end()
				until(ended)
				return false
			}
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			lib, o, began := &fake{dirs: only(dir)}, Options{}, make(chan struct{}, 100)
			set(lib, &o, func(ctx context.Context) {
				began <- struct{}{}
				<-ctx.Done()
			})
			w := Start(lib, o)
			select {
			case <-began:
			case <-time.After(patience):
				t.Fatal("it never came to that")
			}
			done := make(chan struct{})
			go func() { defer close(done); w.Close() }()
			select {
			case <-done:
			case <-time.After(patience):
				t.Fatal("Close does not return")
			}
		})
	}
}

// Writes only count if they may concern a pack. Creations and removals all count: it
// may be a folder.
func TestIrrelevantEventsAreIgnored(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"build.log", "SKILL.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := withEvents(t, Options{})
	defer n.close()
	if _, err := n.follow(t.Context(), &fake{roots: []string{dir}, dirs: only(dir)}, 0); err != nil {
		t.Fatal(err)
	}
	n.take()
	for _, tc := range []struct {
		name   string
		op     fsnotify.Op
		counts bool
	}{
		{"build.log", fsnotify.Write, false},
		{"build.log", fsnotify.Chmod, false},
		{"build.log", fsnotify.Write | fsnotify.Chmod, false},
		{"build.log", fsnotify.Create, true},
		{"build.log", fsnotify.Remove, true},
		{"build.log", fsnotify.Rename, true},
		{"build.log", fsnotify.Create | fsnotify.Write, true},
		{"SKILL.md", fsnotify.Write, true},
		{"SKILL.md", fsnotify.Chmod, true},
		{".", fsnotify.Chmod, true}, // the folder itself
	} {
		n.note(fsnotify.Event{Name: filepath.Join(dir, tc.name), Op: tc.op})
		if got := len(n.touched) > 0 || n.all; got != tc.counts {
			t.Errorf("%v of %s: something is to be looked at: %v, want %v", tc.op, tc.name, got, tc.counts)
		}
		n.take()
	}
}

// If a program writes all the time, the folders are only looked at now and then.
func TestBusyFoldersAreScannedNowAndThen(t *testing.T) {
	dir := t.TempDir()
	type span struct{ begin, end time.Time }
	looks := make(chan span, 1_000)
	lib := &fake{roots: []string{dir}, dirs: only(dir), refresh: func(_ context.Context, dirs []string) (bool, error) {
		begin := time.Now()
		time.Sleep(5 * time.Millisecond) // it has work to do
		if dirs != nil {
			looks <- span{begin, time.Now()}
		}
		return false, nil
	}}
	w := Start(lib, Options{Quiet: time.Nanosecond, Longest: time.Nanosecond})
	defer w.Close()
	var last span
	for n := 0; n < 6; {
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-looks:
			if rest, want := s.begin.Sub(last.end), restAfter(last.end.Sub(last.begin)); n > 0 && rest < want {
				t.Errorf("after a look of %v, the next came after %v, want %v at least", last.end.Sub(last.begin), rest, want)
			}
			last = s
			n++
		default:
		}
	}
}

// If there are more directories than can be watched, the folders are polled.
func TestMoreThanCanBeWatched(t *testing.T) {
	root := t.TempDir()
	for i := range 10 {
		dir := filepath.Join(root, fmt.Sprint(i), "a", "b")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lib, err := packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{{Dir: root}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for most := range 12 {
		n := withEvents(t, Options{})
		n.most = most + 1
		_, err := n.follow(t.Context(), lib, 0)
		n.close()
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("at most %d: %v, want that there are more", n.most, err)
		}
	}
}

// A directory that was replaced by something else is no reason to poll the others.
func TestReplacedDirectoryDoesNotCausePolling(t *testing.T) {
	dir := t.TempDir()
	file, loop := filepath.Join(dir, "file"), filepath.Join(dir, "loop")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", loop); err != nil {
		t.Skipf("symlinks: %v", err)
	}
	n := withEvents(t, Options{})
	defer n.close()
	if _, err := n.follow(t.Context(), &fake{dirs: only(dir, filepath.Join(file, "below"), filepath.Join(loop, "below"), filepath.Join(dir, "gone"))}, 0); err != nil {
		t.Errorf("follow = %v, want that the others are watched", err)
	}
	if n.watched[dir] == 0 {
		t.Error("the one that is there is not watched")
	}
}

// Many events cause one look, and an endless stream of them several.
func TestDebounce(t *testing.T) {
	dir := t.TempDir()
	n := withEvents(t, Options{Quiet: time.Hour, Longest: time.Hour})
	defer n.close()
	if _, err := n.follow(t.Context(), &fake{dirs: only(dir)}, 0); err != nil {
		t.Fatal(err)
	}
	n.take()
	events := make(chan fsnotify.Event)
	n.watcher.Events = events
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { events <- fsnotify.Event{Name: filepath.Join(dir, "SKILL.md"), Op: fsnotify.Write}; cancel() }()
		if seen, ok := n.wait(ctx); ok {
			t.Fatalf("%v is to be looked at before the events end", seen)
		}
	}
	n.opts.Quiet = time.Nanosecond
	if seen, ok := n.wait(t.Context()); !ok || !slices.Contains(seen.dirs, dir) {
		t.Fatalf("after the last: %v, %v, want %s", seen, ok, dir)
	}
	// There is never a quiet moment.
	n.opts.Quiet, n.opts.Longest = time.Hour, 5*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			select {
			case events <- fsnotify.Event{Name: filepath.Join(dir, "SKILL.md"), Op: fsnotify.Write}:
			case <-ctx.Done():
			}
		}
	}()
	if seen, ok := n.wait(ctx); !ok || !slices.Contains(seen.dirs, dir) {
		t.Errorf("events without end: %v, %v, want %s", seen, ok, dir)
	}
}

// Everything is looked at again, even without events.
func TestRecheck(t *testing.T) {
	dir := t.TempDir()
	looks := make(chan struct{}, 100)
	w := Start(&fake{dirs: only(dir), refresh: func(_ context.Context, dirs []string) (bool, error) {
		if dirs == nil {
			looks <- struct{}{}
		}
		return false, nil
	}}, Options{Recheck: time.Millisecond})
	defer w.Close()
	for i := range 3 { // the first is the look at the start
		select {
		case <-looks:
		case <-time.After(patience):
			t.Fatalf("%d looks at everything", i)
		}
	}
}

// What happens during a step of deferred work is looked at before the next step.
func TestNothingWaitsForMoreThanAStep(t *testing.T) {
	var did []string
	lib := &fake{dirs: only(), refresh: func(_ context.Context, dirs []string) (bool, error) {
		if dirs != nil {
			did = append(did, "look")
		}
		return false, nil
	}}
	e := make(scripted, 10)
	ended := make(chan struct{})
	steps := 0
	w := start(lib, Options{IdleAfter: time.Millisecond, Idle: func(context.Context) (more bool) {
		did = append(did, "step")
		switch steps++; steps {
		case 2, 4:
			e <- news{dirs: []string{"x"}}
		case 5:
			close(ended)
			return false
		}
		return true
	}}, func(Options) (eye, error) { return e, nil })
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the steps do not go on")
	}
	w.Close()
	if want := []string{"step", "step", "look", "step", "step", "look", "step"}; !slices.Equal(did, want) {
		t.Errorf("it did %q, want %q", did, want)
	}
}

// A scripted eye returns what is put into it, and nothing if it has no time.
type scripted chan news

func (e scripted) wait(ctx context.Context) (news, bool) {
	if ctx.Err() != nil {
		return news{}, false
	}
	select {
	case seen := <-e:
		return seen, true
	case <-ctx.Done():
		return news{}, false
	}
}
func (scripted) follow(context.Context, Library, time.Duration) ([]string, error) { return nil, nil }
func (e scripted) waiting() bool                                                  { return len(e) > 0 }
func (scripted) close()                                                           {}

// waiting does not wait, and loses nothing.
func TestWaiting(t *testing.T) {
	top := t.TempDir()
	dir, file := filepath.Join(top, "packs"), filepath.Join(top, "attached.json")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lib := &fake{roots: []string{dir}, files: []string{file}, dirs: only(dir)}
	touch := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	events := func(n *notified, all ...fsnotify.Event) {
		ch := make(chan fsnotify.Event, len(all)+1)
		for _, ev := range all {
			ch <- ev
		}
		n.watcher.Events = ch
	}
	entry := fsnotify.Event{Name: filepath.Join(dir, "SKILL.md"), Op: fsnotify.Write}
	for name, tc := range map[string]struct {
		put  func(n *notified)
		want bool
	}{
		"nothing":                      {func(n *notified) { events(n) }, false},
		"an edit":                      {func(n *notified) { events(n, entry) }, true},
		"what concerns nobody":         {func(n *notified) { events(n, fsnotify.Event{Name: filepath.Join(top, "x"), Op: fsnotify.Write}) }, false},
		"an edit behind it":            {func(n *notified) { events(n, fsnotify.Event{Name: filepath.Join(top, "x"), Op: fsnotify.Write}, entry) }, true},
		"an edit that was noted":       {func(n *notified) { events(n); n.note(entry) }, true},
		"events that were lost":        {func(n *notified) { events(n); n.watcher.Errors = failing(fsnotify.ErrEventOverflow) }, true},
		"a look at everything":         {func(n *notified) { events(n); n.recheck = past() }, true},
		"a file, without an event":     {func(n *notified) { events(n); touch(file); n.ticker = ticked() }, true},
		"no file, and it is looked at": {func(n *notified) { events(n); n.ticker = ticked() }, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			_ = os.Remove(file)
			n := withEvents(t, Options{Recheck: time.Hour, Quiet: time.Nanosecond})
			defer n.close()
			n.ticker.Stop()
			if _, err := n.follow(t.Context(), lib, 0); err != nil {
				t.Fatal(err)
			}
			own, errs := n.watcher.Events, n.watcher.Errors
			defer func() { n.watcher.Events, n.watcher.Errors = own, errs }()
			tc.put(n)
			for range 2 {
				if got := n.waiting(); got != tc.want {
					t.Fatalf("waiting = %v, want %v", got, tc.want)
				}
			}
			if !tc.want {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if seen, ok := n.wait(ctx); !ok {
				t.Errorf("wait = %v, %v, want what was waiting", seen, ok)
			}
		})
	}
	t.Run("poll", func(t *testing.T) {
		_ = os.Remove(file)
		p := newPoller(Options{Every: time.Hour})
		defer p.close()
		_, _ = p.follow(t.Context(), lib, 0)
		if p.waiting() {
			t.Error("something waits, and nothing happened")
		}
		touch(file)
		p.ticker = ticked()
		if !p.waiting() {
			t.Fatal("a file that came does not wait")
		}
		if seen, ok := p.wait(t.Context()); !ok || !seen.file || seen.dirs == nil {
			t.Errorf("wait = %v, %v, want the file", seen, ok)
		}
		p.timer = past()
		if !p.waiting() {
			t.Fatal("a look at everything does not wait")
		}
		if seen, ok := p.wait(t.Context()); !ok || seen.file || seen.dirs != nil || p.waiting() {
			t.Errorf("wait = %v, %v, want everything, and nothing after it", seen, ok)
		}
	})
}

// failing returns a channel with an error.
func failing(err error) chan error {
	ch := make(chan error, 1)
	ch <- err
	return ch
}

// due returns a timer's channel whose time has come.
func due() <-chan time.Time {
	ch := make(chan time.Time, 1)
	ch <- time.Now()
	return ch
}

// past returns a timer that has run out.
func past() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.C = due()
	return t
}

// ticked returns a ticker that has ticked.
func ticked() *time.Ticker {
	t := time.NewTicker(time.Hour)
	t.C = due()
	return t
}

// Idle is called even if something happens all the time. So are its further steps,
// with looks between them.
func TestIdleIsCalledUnderConstantLoad(t *testing.T) {
	dir := t.TempDir()
	idle := make(chan struct{}, 100)
	looks, steps := 0, 0
	lib := &fake{dirs: only(dir), refresh: func(context.Context, []string) (bool, error) { looks++; return true, nil }}
	w := start(lib, Options{Idle: func(context.Context) (more bool) {
		if looks == 0 {
			t.Error("two steps, and no look between them")
		}
		looks = 0
		select {
		case idle <- struct{}{}:
		default:
		}
		steps++
		return steps%3 != 0
	}, mostBusy: time.Millisecond, IdleAfter: time.Hour}, func(Options) (eye, error) { return busy{}, nil })
	defer w.Close()
	for range 7 {
		select {
		case <-idle:
		case <-time.After(patience):
			t.Fatal("it was never idle")
		}
	}
}

// A busy eye always has news.
type busy struct{}

func (busy) wait(ctx context.Context) (news, bool) {
	if ctx.Err() != nil {
		return news{}, false
	}
	return news{dirs: []string{"x"}}, true
}
func (busy) follow(context.Context, Library, time.Duration) ([]string, error) { return nil, nil }
func (busy) waiting() bool                                                    { return true }
func (busy) close()                                                           {}

// What a look at new directories finds is watched too, even if no event reported it.
func TestDirectoriesInNewOnes(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b", "c")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	n := withEvents(t, Options{})
	defer n.close()
	lib := &fake{dirs: only(root)}
	follow := func(want ...string) {
		t.Helper()
		if fresh, err := n.follow(t.Context(), lib, 0); err != nil || !slices.Equal(fresh, want) {
			t.Fatalf("follow = %q, %v, want %q", fresh, err, want)
		}
	}
	follow()
	known := []string{root}
	n.note(fsnotify.Event{Name: filepath.Join(root, "a"), Op: fsnotify.Create})
	for _, next := range []string{filepath.Join(root, "a"), filepath.Join(root, "a", "b"), deep} {
		known = append(known, next)
		lib.dirs = only(known...)
		follow(next)
	}
	follow()
	// A directory that becomes readable.
	closed := filepath.Join(root, "closed")
	if err := os.Mkdir(closed, 0o755); err != nil {
		t.Fatal(err)
	}
	n.take()
	n.note(fsnotify.Event{Name: closed, Op: fsnotify.Chmod})
	if !n.touched[closed] {
		t.Error("a folder whose permissions changed is not looked at")
	}
	lib.dirs = only(append(known, closed)...)
	follow(closed)
}
