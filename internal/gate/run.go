package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/caches"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// Run starts exactly the program that was approved and waits for it to end. The
// audit log has the run before it starts and after it ends. If the first line
// cannot be written, nothing starts; if the second cannot be written, the result is
// withheld.
func (p *Permit) Run(ctx context.Context) (*sandbox.Result, error) {
	if p.call == nil || !p.call.Kind.Starts() { // nil: not made by Check
		return nil, &DeniedError{Reason: "this approval is not for a run"}
	}
	if len(p.call.Fields) > 0 {
		return nil, &DeniedError{Reason: "this approval is for a run with what the person filled in"}
	}
	if p.used.Swap(true) {
		return nil, ErrSpent
	}
	defer p.Close()
	g := p.gate
	if now := g.sandboxAt(ctx, p.call.Run.Place); now.Level != p.box.Level {
		c := &check{Gate: g, box: now, Case: g.caseOf(call.Freeze(p.call.Request, now.Level))}
		return nil, c.deny(fmt.Sprintf("the sandbox level was %q when this was approved, and is %q", p.box.Level, now.Level),
			"Call again; the user will be asked about the run as it is now.")
	}
	policy, release, err := p.image(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var leave func(caches.Held)
	if policy.Cache, leave, err = p.cache(ctx); err != nil {
		return nil, err
	}
	held := caches.Held{Bytes: -1}
	defer func() { leave(held) }()
	command := p.call.Run.Command
	command.RunID, command.Pack, command.Tool = p.run, p.call.Pack.ID, p.call.Run.Tool
	command.Env = append(slices.Clone(command.Env), "PACKS_RUN_ID="+p.run)
	command.Waiting, command.Ready = p.waiting, p.ready
	if policy.Cache != "" {
		command.Env = append(command.Env, "PACKS_CACHE="+policy.Cache)
	}

	if err := p.claimed(ctx); err != nil {
		return nil, err
	}
	if err := g.append(p.failures, g.author.RunStart(p.call, p.run, &policy, p.box.Together == "")); err != nil {
		return nil, err
	}
	result, err := g.start(ctx, p.call.Run.Place, policy, command)
	end := g.author.RunEnd(p.call, p.run, result, err, p.hide)
	if result != nil {
		held = caches.Held(result.Cache)
	} else if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		end.Cause = string(sandbox.CauseCancelled) // cancelled before there was a process
	}
	entries := append([]audit.Entry{end}, g.author.Changes(p.call, p.run, result)...)
	if logErr := g.append(g.log.Failures(), entries...); logErr != nil {
		g.queue.Outcome(p.run, queue.HowRunEnded(result, err)+", and could not be recorded")
		if err != nil {
			return nil, logErr // nothing was started
		}
		return nil, &DeniedError{
			Reason: "the program ran, but its end could not be recorded, so its result is withheld",
			Hint:   "Do not call again: it would run once more. Tell the user to look at the server's log; a full disk or a damaged audit file are the usual causes.",
		}
	}
	g.queue.Outcome(p.run, queue.HowRunEnded(result, err))
	return result, err
}

// claimed claims the run, so that it starts once among all replicas.
func (p *Permit) claimed(ctx context.Context) error {
	if p.gate.runs == nil {
		return nil
	}
	claimed, err := p.gate.runs.Claim(ctx, p.claim, p.gate.author.RunCut(p.call, p.run))
	switch {
	case err != nil:
		p.gate.logger.Error("a run could not be claimed; nothing was started", "run", p.run, "err", err)
		return unavailable(p.Withhold(unreachable, tryLater))
	case !claimed:
		return p.Withhold("the answer was already used for a run", "Make the call again; the user will then be asked.")
	}
	return nil
}

// Cut records a run that another replica claimed and did not end. cut is the line.
func (g *Gate) Cut(cut audit.Entry) error {
	cut.Server = g.author.Server
	g.logger.Warn("a run was cut, since its server ended first", "run", cut.Run, "pack", cut.Pack)
	return g.failed(cut, lines.Write(cut, g.log.Append))
}

// image returns the run's policy with a private copy of the pack in place of the
// pack. The copy has the approved bytes, and nobody can replace them between the
// check and their use. A loose tool's folder is not a pack; its program is checked
// like any other.
func (p *Permit) image(ctx context.Context) (policy sandbox.Policy, release func(), err error) {
	policy = p.call.Run.Policy
	pack := p.call.Pack
	if p.gate.copies == nil && pack.Partial {
		return policy, nil, p.Withhold("the pack has files that cannot be read, and there are no private copies to leave them out of",
			"Tell the user to run packs-mcp show for the pack: it names the files.")
	}
	if !p.Copies() {
		return policy, func() {}, nil
	}
	folder, release, err := p.gate.copies.Copy(ctx, pack.Dir, pack.Digest)
	if err != nil {
		level := slog.LevelWarn
		if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
			level = slog.LevelDebug // the call was cancelled; nothing is wrong
		}
		p.gate.logger.Log(ctx, level, "the pack could not be copied; nothing was started", "pack", pack.ID, "run", p.run, "err", err)
		return policy, nil, p.Withhold("the pack could not be copied as it was approved: "+safetext.Line(err.Error()),
			"Call again; the user will be asked about the pack as it is now. If it is said again, tell the user to look at the server's log.")
	}
	policy.Images = append(slices.Clone(policy.Images), sandbox.Image{At: pack.Dir, From: folder})
	return policy, release, nil
}

// cache takes the folder that the tool keeps between runs into use, and returns the
// function that gives it back. folder is "" if the tool has no cache. Its key is
// the digest of everything that a grant for the run would be bound to, so a run
// finds only what was left by runs that the same answer covers.
func (p *Permit) cache(ctx context.Context) (folder string, leave func(caches.Held), err error) {
	run, pack := p.call.Run, p.call.Pack
	if run.Cache == "" {
		return "", func(caches.Held) {}, nil
	}
	if p.gate.caches == nil {
		return "", nil, p.Withhold("this server keeps no caches, and the tool wants one", "Tell the user; the tool cannot run here.")
	}
	c, err := p.gate.caches.Take(ctx, call.DigestOf(p.call.Facts()), caches.About{
		Subject: p.call.Subject(), Version: pack.Digest + " " + run.Definition,
		Person: p.call.Caller.Person, Pack: pack.ID, Tool: run.Tool, Name: run.Cache,
	})
	if err != nil {
		p.gate.logger.Warn("the tool's cache cannot be used; nothing was started", "pack", pack.ID, "tool", run.Tool, "run", p.run, "err", err)
		return "", nil, p.Withhold(safetext.Line(err.Error()), "Tell the user what is said. Call again when it is mended.")
	}
	return c.Folder, c.Release, nil
}

// start runs the program. It recovers from a panic of the runner, so that the end
// of the run is recorded.
func (g *Gate) start(ctx context.Context, place sandbox.Place, policy sandbox.Policy, command sandbox.Command) (result *sandbox.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			g.logger.Error("the runner panicked", "run", command.RunID, "err", r, "stack", string(debug.Stack()))
			result, err = nil, errors.New("the runner panicked; see the server's log")
		}
	}()
	runner := g.at(place)
	if runner == nil {
		return nil, fmt.Errorf("there is no runner %q", place)
	}
	result, err = runner.Run(ctx, policy, command)
	if result != nil {
		result.Place = place
	}
	return result, err
}
