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

// Probe finds the best level that works here by running a program under each, best
// first, except those in [Options.Skip]. It also removes what killed servers left
// behind. It does this once; later calls return the same Report.
func (r *Runner) Probe(ctx context.Context) sandbox.Report {
	r.probing.Lock()
	defer r.probing.Unlock()
	if r.report == nil || r.elsewhere && r.report.Level == sandbox.LevelNone {
		// The result is kept, so it must not depend on this caller's deadline.
		ctx := context.WithoutCancel(ctx)
		r.sweep()
		r.report, r.starter = r.probe(ctx)
	}
	return *r.report
}

// Close releases what the Runner keeps ready for the next run. Runs that are under
// way continue.
func (r *Runner) Close() {
	r.probing.Lock()
	defer r.probing.Unlock()
	if r.starter != nil {
		r.starter.Close()
	}
}

// best returns the level that runs get, and its starter.
func (r *Runner) best(ctx context.Context) (sandbox.Level, level.Starter) {
	l := r.Probe(ctx).Level
	r.probing.Lock()
	defer r.probing.Unlock()
	return l, r.starter
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
		report.Trials = append(report.Trials, trial)
		report.Hint = r.o.System.Hint(report)
		return report, c.Confiner
	}
	report.Trials = append(report.Trials, sandbox.Trial{Level: sandbox.LevelNone})
	report.Overlay = level.NoNamespaces
	report.Hint = r.o.System.Hint(report)
	if r.elsewhere {
		return report, refusing{report}
	}
	return report, plain.Starter{}
}

// A refusing starter starts nothing: without a level, a run elsewhere is not one here.
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
