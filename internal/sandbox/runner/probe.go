package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/plain"
)

// A probe is what was found of the levels.
type probe struct {
	done    chan struct{} // closed when the rest is set
	report  *sandbox.Report
	starter level.Starter // of report.Level
}

// Probe finds the best level that works here by running a program under each, best
// first, except those in [Options.Skip]. It also removes what killed servers left
// behind. It does this once; later calls return the same Report. Where programs are not on
// this machine and no level was found, a later call tries again. Calls at the same time
// share what one of them finds.
func (r *Runner) Probe(ctx context.Context) sandbox.Report {
	return *r.found(ctx).report
}

// found returns what Probe found.
func (r *Runner) found(ctx context.Context) *probe {
	r.mu.Lock()
	p := r.probed
	if p != nil {
		select {
		case <-p.done:
			if r.elsewhere && p.report.Level == sandbox.LevelNone {
				p = nil
			}
		default:
		}
	}
	if p != nil {
		r.mu.Unlock()
		<-p.done
		return p
	}
	p = &probe{done: make(chan struct{})}
	r.probed = p
	r.mu.Unlock()
	defer close(p.done)
	r.sweep()
	// The result is kept, so it must not depend on this caller's deadline.
	p.report, p.starter = r.probe(context.WithoutCancel(ctx))
	return p
}

// Close releases what the Runner keeps ready for the next run. Runs that are under
// way continue.
func (r *Runner) Close() {
	r.mu.Lock()
	p := r.probed
	r.mu.Unlock()
	if p == nil {
		return
	}
	if <-p.done; p.starter != nil {
		p.starter.Close()
	}
}

// best returns the level that runs get, and its starter.
func (r *Runner) best(ctx context.Context) (sandbox.Level, level.Starter) {
	p := r.found(ctx)
	return p.report.Level, p.starter
}

// probe tries this system's candidates, best first, until one works.
func (r *Runner) probe(ctx context.Context) (*sandbox.Report, level.Starter) {
	report := &sandbox.Report{}
	for _, c := range r.o.System.Candidates(r.o.Logger) {
		trial := sandbox.Trial{Level: c.Level, Means: c.Means, Gaps: c.Gaps}
		begin := time.Now()
		err := c.Err
		switch {
		case slices.Contains(r.o.Skip, c.Level):
			err = level.ErrSkipped
		case err == nil:
			err = c.Confiner.Try(ctx)
		}
		trial.Took = time.Since(begin)
		if err != nil {
			if c.Confiner != nil {
				c.Confiner.Close()
			}
			trial.Means, trial.Gaps, trial.Problem = nil, nil, err.Error()
			report.Trials = append(report.Trials, trial)
			continue
		}
		found := c.Confiner.Find(ctx)
		trial.Gaps = slices.Concat(trial.Gaps, found.Gaps)
		report.Level, report.NetworkEnforced = c.Level, c.Network
		report.Loopback, report.Overlay = found.Loopback, found.Overlay
		if r.o.Together != (sandbox.Together{}) {
			if err := c.Confiner.Bound(ctx, r.o.Together); err != nil {
				report.Together = err.Error()
			} else {
				trial.Means = append(slices.Clone(trial.Means), "a control group for each run")
			}
		}
		report.Trials = append(report.Trials, trial)
		report.Hint = r.o.System.Hint(report)
		return report, c.Confiner
	}
	report.Trials = append(report.Trials, sandbox.Trial{Level: sandbox.LevelNone})
	report.Overlay = level.NoNamespaces
	if r.o.Together != (sandbox.Together{}) {
		report.Together = "nothing confines runs here"
	}
	report.Hint = r.o.System.Hint(report)
	if r.elsewhere {
		return report, refusing{report}
	}
	return report, plain.Starter{}
}

// A refusing starter starts nothing: if no level works elsewhere, the run must not
// happen on this machine instead.
type refusing struct{ report *sandbox.Report }

func (refusing) TempDir() string { return "/tmp" }

func (refusing) Places() bool { return true }

func (refusing) Overlays(string, sandbox.Look) (sandbox.Look, string) {
	return sandbox.Look{}, level.NoNamespaces
}

func (refusing) Close() {}

func (r refusing) Start(*level.Launch) (level.Process, error) {
	return nil, &sandbox.ConfineError{Level: sandbox.LevelFull, Step: "finding a place for the run", Err: errors.New(r.report.Problem())}
}
