package watch

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A still library says that something changed at its third look.
type still struct{ looks int }

func (*still) Roots() []string        { return nil }
func (*still) Dirs() iter.Seq[string] { return slices.Values([]string{"/a"}) }
func (s *still) Refresh(ctx context.Context, dirs []string) (bool, error) {
	s.looks++
	return s.looks == 3, ctx.Err()
}

// A blind eye cannot watch what it is asked to.
type blind struct{ closed bool }

func (*blind) wait(ctx context.Context) ([]string, bool) { <-ctx.Done(); return nil, false }
func (*blind) follow(Library, time.Duration) ([]string, error) {
	return nil, &syscallError{syscall.ENOSPC}
}
func (b *blind) close() { b.closed = true }

type syscallError struct{ error }

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
			changed := make(chan struct{}, 1)
			w := start(&still{}, Options{
				Every: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Changed: func(context.Context) { changed <- struct{}{} },
			}, func(Options) (eye, error) { return open(b) })
			select {
			case <-changed:
			case <-time.After(20 * time.Second):
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

// Events that were lost make everything be looked at, and watched anew.
func TestLostEvents(t *testing.T) {
	e, err := newNotified(Options{}.withDefaults())
	if err != nil {
		t.Skipf("events: %v", err)
	}
	n := e.(*notified)
	defer n.close()
	lib := &dirs{t.TempDir()}
	if _, err := n.follow(lib, 0); err != nil {
		t.Fatal(err)
	}
	go func() { n.watcher.Errors <- errors.New("overflow") }()
	if dirs, ok := n.wait(t.Context()); !ok || dirs != nil {
		t.Errorf("wait = %v, %v, want everything", dirs, ok)
	}
	if fresh, err := n.follow(lib, 0); err != nil || !slices.Equal(fresh, []string{lib.dir}) {
		t.Errorf("follow = %v, %v, want the one directory again", fresh, err)
	}
}

type dirs struct{ dir string }

func (*dirs) Roots() []string                                 { return nil }
func (d *dirs) Dirs() iter.Seq[string]                        { return slices.Values([]string{d.dir}) }
func (*dirs) Refresh(context.Context, []string) (bool, error) { return false, nil }
