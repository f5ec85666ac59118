package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A candidate is one way of having a level on this system. There may be more
// than one of a level; better ones come first.
type candidate struct {
	level   sandbox.Level
	starter starter
	means   []string // see Trial
	gaps    []string // see Trial
	network bool     // see Report.NetworkEnforced
	alone   bool     // see Report.Loopback
	err     error    // it cannot work, so it is not even tried
}

// errSkipped is why a level of Options.Skip was not tried.
var errSkipped = errors.New("left out by configuration")

// probe tries what this system has, best first, until something works.
func (r *Runner) probe(ctx context.Context) (*sandbox.Report, starter) {
	report := &sandbox.Report{}
	for _, c := range candidates(r.o) {
		trial := sandbox.Trial{Level: c.level, Means: c.means, Gaps: c.gaps}
		begin := time.Now()
		err := c.err
		switch {
		case slices.Contains(r.o.Skip, c.level):
			err = errSkipped
		case err == nil:
			err = try(ctx, c.starter)
		}
		trial.Took = time.Since(begin)
		if err != nil {
			if c.starter != nil {
				c.starter.close()
			}
			trial.Means, trial.Gaps, trial.Problem = nil, nil, err.Error()
			report.Trials = append(report.Trials, trial)
			continue
		}
		if found, ok := c.starter.(interface{ gaps() []string }); ok {
			trial.Gaps = slices.Concat(trial.Gaps, found.gaps())
		}
		report.Level, report.NetworkEnforced = c.level, c.network
		report.Loopback = c.alone && tryLoopback(ctx, c.starter) == nil
		report.Overlay = tryOverlay(ctx, c.starter)
		report.Trials = append(report.Trials, trial)
		report.Hint = hint(report)
		return report, c.starter
	}
	report.Trials = append(report.Trials, sandbox.Trial{Level: sandbox.LevelNone})
	report.Overlay = noNamespaces
	report.Hint = hint(report)
	return report, plainStarter{}
}
