package gate

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A Permit is the approval of one request. It cannot be made outside this
// package, and a run works once.
type Permit struct {
	gate *Gate
	box  sandbox.Report // what the person was told
	req  Request
	run  string
	used atomic.Bool
}

// Digest is the pack digest that was approved. Whoever hands out content
// checks that the pack still has it.
func (p *Permit) Digest() string { return p.req.Pack.Digest }

// Covers reports whether req is still what was approved.
func (p *Permit) Covers(req Request) bool {
	level := p.box.Level
	if req.Run != nil {
		level = p.gate.Sandbox(context.Background()).Level
	}
	return req.callDigest(level) == p.req.callDigest(p.box.Level)
}

// Withhold records that what was approved was not given after all, and returns
// the denial. A run that is withheld cannot be started any more.
func (p *Permit) Withhold(reason, hint string) error {
	p.used.Store(true)
	c := &check{Gate: p.gate, box: p.box, req: p.req}
	return c.deny(reason, hint)
}

// RunID names the run in the audit log; empty unless the request is a run.
func (p *Permit) RunID() string { return p.run }

// ErrSpent is returned for a permit that has started its program already.
var ErrSpent = errors.New("this permit was used")

// Run starts exactly the program that was approved and waits for its end. The
// audit log has the run before it starts and after it ends; when the first
// cannot be written nothing starts, and when the second cannot be written the
// result is withheld.
func (p *Permit) Run(ctx context.Context) (*sandbox.Result, error) {
	if p.req.Kind != KindRun {
		return nil, &DeniedError{Reason: "this approval is not for a run"}
	}
	if p.used.Swap(true) {
		return nil, ErrSpent
	}
	g := p.gate
	if now := g.Sandbox(ctx); now.Level != p.box.Level {
		c := &check{Gate: g, box: now, req: p.req}
		return nil, c.deny(fmt.Sprintf("the sandbox level was %q when this was approved, and is %q", p.box.Level, now.Level),
			"Call again; the user will be asked about the run as it is now.")
	}
	command := p.req.Run.Command
	command.RunID = p.run
	command.Env = append(slices.Clone(command.Env), "PACKS_RUN_ID="+p.run)

	if err := g.append(p.runEntry(audit.EventRunStart)); err != nil {
		return nil, err
	}
	result, err := g.start(ctx, p.req.Run.Policy, command)
	end := p.runEntry(audit.EventRunEnd)
	if result != nil {
		code := result.ExitCode
		end.ExitCode = &code
		end.Signal, end.Cause = result.Signal, string(result.Cause)
		end.Sandbox = result.Level.String()
		end.StdoutBytes, end.StderrBytes = result.Stdout.Total, result.Stderr.Total
		end.DurationMS = result.Duration.Milliseconds()
		end.CPUMS, end.MaxRSS = result.Usage.CPU.Milliseconds(), result.Usage.MaxRSS
		for _, a := range result.Artifacts {
			end.Artifacts = append(end.Artifacts, a.Path)
		}
		for _, c := range result.Protected {
			end.Protected = append(end.Protected, c.Path+": "+c.Done)
		}
	}
	if err != nil {
		end.Error = err.Error()
	}
	if logErr := g.append(end); logErr != nil {
		return nil, logErr
	}
	return result, err
}

// start runs the program. A runner that panics has still to be recorded.
func (g *Gate) start(ctx context.Context, policy sandbox.Policy, command sandbox.Command) (result *sandbox.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			g.logger.Error("the runner panicked", "run", command.RunID, "err", r, "stack", string(debug.Stack()))
			result, err = nil, errors.New("the runner panicked; see the server's log")
		}
	}()
	return g.runner.Run(ctx, policy, command)
}

// runEntry is the common part of the two lines about a run.
func (p *Permit) runEntry(event audit.Event) audit.Entry {
	e := p.gate.entry(&p.req, p.box.Level, event)
	run := p.req.Run
	e.Run = p.run
	e.Program = run.Command.Program.Path
	e.ProgramDigest = run.Command.Program.Digest
	e.Argv = run.Logged
	e.Dir = run.Command.Dir
	e.Network = run.Policy.Network.String()
	return e
}
