package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// claimed is a store's claims of runs.
type claimed struct {
	bench   *bench
	ids     []string
	cut     audit.Entry     // of the last claim
	started map[string]bool // :: run → its claim has not ended
	ended   int
	err     error
}

func (c *claimed) Entry(question string, cut audit.Entry) ([]byte, error) {
	return fmt.Appendf(nil, "claim of %s for %s", cut.Run, question), nil
}

func (c *claimed) Took(string, string, uint64) {}

func (c *claimed) Claim(_ context.Context, id string, cut audit.Entry) (bool, error) {
	if c.err != nil || slices.Contains(c.ids, id) {
		return false, c.err
	}
	c.ids, c.cut, c.started = append(c.ids, id), cut, map[string]bool{cut.Run: true}
	return true, nil
}

func (c *claimed) End(run string) {
	if !c.started[run] {
		return
	}
	delete(c.started, run)
	c.ended++
	if e := c.bench.log.last(); e.Event != audit.EventRunEnd {
		c.bench.t.Errorf("the claim ends when the last line is %s", e.Event)
	}
}

// A run starts only if it was claimed, and its claim ends when the log has its end.
func TestRunIsClaimed(t *testing.T) {
	claims := new(claimed)
	b := newBench(t, everywhere, func(o *Options) { o.Runs = claims })
	claims.bench = b
	permit := b.approve(toolRun(), queue.Once)
	b.runner.before = func() {
		if len(claims.ids) != 1 || claims.ended != 0 || b.log.last().Event != audit.EventRunStart {
			t.Errorf("at the start of the run there are the claims %q, of which %d ended, and the line %s", claims.ids, claims.ended, b.log.last().Event)
		}
	}
	if _, err := permit.Run(t.Context()); err != nil || claims.ended != 1 {
		t.Fatalf("Run = %v, with %d ended claims", err, claims.ended)
	}
	if c := claims.cut; c.Event != audit.EventRunEnd || c.Cause != "cut" || c.Run != permit.RunID() || c.Pack != "triage" || c.Chat != "stdio-1" || !strings.Contains(c.Error, "the server test ended") {
		t.Errorf("the line for others is %+v", c)
	}
	if err := b.Cut(claims.cut); err != nil || b.log.last().Run != permit.RunID() || b.log.last().Server != "test" {
		t.Errorf("Cut = %v, with the line %+v", err, b.log.last())
	}
}

// Two permits that rest on one answer, which two replicas took, are claims of one run; and
// a question that is asked again stays the same.
func TestRunsOfOneAnswer(t *testing.T) {
	claims := new(claimed)
	b := newBench(t, everywhere, func(o *Options) { o.Runs = claims })
	claims.bench = b
	code := b.left(toolRun())
	if again := b.left(toolRun()); again != code {
		t.Fatalf("the question %s is asked again as %s", code, again)
	}
	b.page(code, queue.Once)
	permit, _, err := b.Check(t.Context(), toolRun(), nil)
	if err != nil || permit == nil {
		t.Fatal(err)
	}
	other := &Permit{gate: permit.gate, box: permit.box, call: permit.call, run: newRunID(), claim: permit.claim}
	if _, err := permit.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Run(t.Context()); !errors.Is(err, ErrDenied) || b.runner.count() != 1 {
		t.Errorf("the other run = %v, and %d started", err, b.runner.count())
	}
	b.denied(&DeniedError{Reason: "the answer was already used for a run"}, "the answer was already used for a run")
	if len(claims.ids) != 1 || claims.ids[0] == permit.RunID() {
		t.Errorf("the claims are %q, of the run %s", claims.ids, permit.RunID())
	}
}

// A store that does not answer starts nothing.
func TestRunWithoutClaims(t *testing.T) {
	claims := &claimed{err: errors.New("no answer in time")}
	b := newBench(t, everywhere, func(o *Options) { o.Runs = claims })
	claims.bench = b
	_, err := b.approve(toolRun(), queue.Once).Run(t.Context())
	if denied, ok := errors.AsType[*DeniedError](err); !ok || !denied.Unavailable || b.runner.count() != 0 {
		t.Errorf("Run = %v, and %d started", err, b.runner.count())
	}
	b.denied(err, unreachable)
}
