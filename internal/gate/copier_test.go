package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A copier remembers what it was asked for.
type copier struct {
	asked    []string
	released int
	err      error
}

func (c *copier) Copy(_ context.Context, dir, digest string) (string, func(), error) {
	c.asked = append(c.asked, dir, digest)
	if c.err != nil {
		return "", nil, c.err
	}
	return "/copies/1", func() { c.released++ }, nil
}

// A policyRunner remembers under which policy a program was started.
type policyRunner struct {
	*runner
	policy sandbox.Policy
	then   func()
}

func (r *policyRunner) Run(ctx context.Context, p sandbox.Policy, c sandbox.Command) (*sandbox.Result, error) {
	r.policy = p
	if r.then != nil {
		r.then()
	}
	return r.runner.Run(ctx, p, c)
}

// RP-04: what runs is a copy of the tree that was approved, or nothing.
func TestRunsFromACopy(t *testing.T) {
	newBenches := func(t *testing.T, c *copier) (*bench, *policyRunner) {
		b := newBench(t, func(o *Options) { o.Copies = c })
		r := &policyRunner{runner: b.runner}
		b.Gate.runner = r
		return b, r
	}
	t.Run("a pack", func(t *testing.T) {
		c := new(copier)
		b, r := newBenches(t, c)
		req := toolRun()
		r.then = func() {
			if c.released != 0 {
				t.Error("the copy is released while the program runs")
			}
		}
		if _, err := b.approve(req, queue.Once).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{req.Pack.Dir, req.Pack.Digest}; !slices.Equal(c.asked, want) {
			t.Errorf("copied %q, want %q", c.asked, want)
		}
		if diff := cmp.Diff([]sandbox.Image{{At: req.Pack.Dir, From: "/copies/1"}}, r.policy.Images); diff != "" {
			t.Errorf("images differ (-want +got):\n%s", diff)
		}
		if c.released != 1 {
			t.Errorf("the copy is released %d times, want once", c.released)
		}
	})
	t.Run("a loose tool", func(t *testing.T) {
		c := new(copier)
		b, r := newBenches(t, c)
		if _, err := b.approve(with(toolRun(), func(r *call.Request) { r.Pack.Loose = true }), queue.Once).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(c.asked) != 0 || len(r.policy.Images) != 0 {
			t.Errorf("copied %q, images %v, want none: its folder is not a pack", c.asked, r.policy.Images)
		}
	})
	t.Run("a pack that was replaced", func(t *testing.T) {
		c := &copier{err: errors.New("scripts/greet.sh differs\x1b[2J")}
		b, r := newBenches(t, c)
		permit := b.approve(toolRun(), queue.Once)
		_, err := permit.Run(t.Context())
		b.denied(err, "could not be copied as it was approved")
		checkShown(t, err.Error())
		if r.count() != 0 || !strings.Contains(b.logged.String(), "differs") {
			t.Errorf("%d runs, and the server's log is %q", r.count(), b.logged)
		}
		if _, err := permit.Run(t.Context()); !errors.Is(err, ErrSpent) {
			t.Errorf("Run() again = %v, want %v", err, ErrSpent)
		}
		for _, e := range b.log.all() {
			if e.Event != audit.EventDecision {
				t.Errorf("the log tells of a run: %+v", e)
			}
		}
	})
	t.Run("a call that was cancelled", func(t *testing.T) {
		gone := errors.New("the client is gone")
		for _, tc := range []struct {
			name  string
			err   error
			warns bool
		}{
			{"the context's error", fmt.Errorf("copying: %w", context.Canceled), false},
			{"its cause", fmt.Errorf("copying: %w", gone), false},
			{"another error at the same time", errDisk, true},
		} {
			b, r := newBenches(t, &copier{err: tc.err})
			permit := b.approve(toolRun(), queue.Once)
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(gone)
			if _, err := permit.Run(ctx); !errors.Is(err, ErrDenied) || r.count() != 0 {
				t.Errorf("%s: Run() = %v after %d runs, want a denial and none", tc.name, err, r.count())
			}
			if got := strings.Contains(b.logged.String(), "level=WARN"); got != tc.warns {
				t.Errorf("%s: the server's log is %q, want a warning: %v", tc.name, b.logged, tc.warns)
			}
		}
	})
	t.Run("a log that fails", func(t *testing.T) {
		c := new(copier)
		b, _ := newBenches(t, c)
		permit := b.approve(toolRun(), queue.Once)
		b.log.fail = func(audit.Entry) error { return errDisk }
		if _, err := permit.Run(t.Context()); !errors.Is(err, ErrDenied) || c.released != 1 {
			t.Errorf("Run() = %v, with the copy released %d times", err, c.released)
		}
	})
}

func (*policyRunner) Layers(context.Context, []string) []sandbox.Layer { return nil }
