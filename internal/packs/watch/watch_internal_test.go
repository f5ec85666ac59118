package watch

import (
	"bytes"
	"context"
	"errors"
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
)

// A fake library is as its fields say.
type fake struct {
	roots   []string
	dirs    iter.Seq[string]
	refresh func(ctx context.Context, dirs []string) (bool, error) // nil: nothing changed
}

func (f *fake) Roots() []string        { return f.roots }
func (f *fake) Files() []string        { return nil }
func (f *fake) Dirs() iter.Seq[string] { return f.dirs }
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
func (b *blind) close() { b.closed = true }

type syscallError struct{ error }

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// When the system has no watches left, or none at all, the folders are looked at,
// and one line of the log says so.
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
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "from time to time") {
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

// Events that were lost make everything be looked at, and watched anew.
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

// What is on the file system of a network is looked at though there are events
// for the rest, and the log says so in one line for each such folder.
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
	// A look that takes long is not made as often.
	if _, err := n.follow(t.Context(), lib, time.Hour); err != nil {
		t.Fatal(err)
	}
	if wait := time.Until(n.next); wait < 19*time.Hour {
		t.Errorf("the next look is in %v, after one that took an hour", wait)
	}
}

// A root comes folder by folder, and the first of them while it is looked for.
func TestRootThatComes(t *testing.T) {
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
	n.local = func(string) bool { mkdir(above); return true } // asked of the root that is there
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

// fsnotify can wait for somebody to read its error while it holds the lock that
// changing or closing it takes. Neither waits for that.
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
			w, err := fsnotify.NewWatcher() // without a buffer, it goes no further than this test lets it
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
					break // what comes next is the error: the directory that moved is gone
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

// Close ends a watcher at whatever it is.
func TestCloseAtAnything(t *testing.T) {
	dir := t.TempDir()
	// until says that it began, and then goes on until the watcher is closed.
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
			o.Idle = func() { ended, end := context.WithCancel(context.Background()); end(); until(ended) }
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
