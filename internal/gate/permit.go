package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/caches"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// A Permit is the approval of one request. It cannot be made outside this
// package, and a run works once.
type Permit struct {
	gate *Gate
	box  sandbox.Report // what the person was told
	call *call.Call
	run  string
	// claim identifies the answer, or else the decision, that the run rests on: no two
	// runs rest on one.
	claim string
	used  atomic.Bool
	// byGrant says that an earlier answer allowed it. Everything that answer is
	// bound to must still be the same.
	byGrant bool
	// failures is the log's failure count when the decision was recorded. The
	// record may have been lazy, so a higher count later means that it may be lost.
	failures int
	// values are what the person filled in.
	values  map[string]string
	hide    func(string) string                // see Hide
	waiting func(changes.Holder) (over func()) // see Waiting
	ready   func() error                       // see Ready
}

// Hide sets a function that removes secret values from what the log keeps of the
// program's output. Call it before Run.
func (p *Permit) Hide(hide func(string) string) { p.hide = hide }

// Waiting sets a function that is called when the run has to wait for its turn in
// folders that another run may change. The function it returns is called when the
// wait is over. Call Waiting before Run.
func (p *Permit) Waiting(waiting func(changes.Holder) (over func())) { p.waiting = waiting }

// Ready sets a function that is called when the run has its turn in folders that
// another run may change. If it returns an error, the program is not started. Call
// Ready before Run.
func (p *Permit) Ready(ready func() error) { p.ready = ready }

// A Copier makes private copies of packs. It is copies.Store.
type Copier interface {
	// Copy returns a folder that holds exactly the tree with this digest, made from
	// the pack's folder dir. Only this user can change it. It stays until release
	// is called. An error means that the pack is not, or no longer, that tree, or
	// that it cannot be copied.
	Copy(ctx context.Context, dir, digest string) (folder string, release func(), err error)
}

// Values returns what the person filled in, by the names of the request's Fields.
func (p *Permit) Values() map[string]string { return maps.Clone(p.values) }

// Fill takes the request with the person's values in place of the stand-ins, and
// returns the permit for it. Only those arguments, variables and input of the
// program may differ that hold the name of a field. Without Fields it returns the
// permit itself.
func (p *Permit) Fill(req call.Request) (*Permit, error) {
	if len(p.call.Fields) == 0 {
		return p, nil
	}
	req = req.WithReview(p.reviewRule()) // what was filled in cannot lift the review
	same := len(req.Fields) == 0 && req.Caller.Chat == p.call.Caller.Chat && req.Subject() == p.call.Subject() &&
		p.call.IsLike(&req, p.box.Level) && req.Arguments.Canonical() == p.call.Arguments.Canonical() &&
		p.call.Run != nil && req.Run != nil && filledIn(p.call.Fields, p.call.Run, req.Run)
	if !same || p.used.Swap(true) {
		return nil, p.Withhold("something about the call changed after it was allowed", "Call again; the user will be asked about it as it is now.")
	}
	// The rules have not seen what was filled in yet.
	c := &check{Gate: p.gate, box: p.box, Case: p.gate.caseOf(call.Freeze(req, p.box.Level))}
	if verdict := c.rule(); verdict.Effect == rules.Deny {
		c.ruled = verdict.Rule.Where
		return nil, c.denyBy(queue.ChannelRule, fmt.Sprintf("a rule of the user's forbids what was filled in: %s, %s", verdict.Rule.Where, verdict.Rule), "Ask the user.", "")
	}
	return &Permit{gate: p.gate, box: p.box, call: call.Freeze(p.gate.reviewed(req), p.box.Level), run: p.run, claim: p.claim}, nil
}

// reviewRule returns where the rule is written that holds the run's changes for
// review, or "".
func (p *Permit) reviewRule() string {
	if p.call.Run == nil {
		return ""
	}
	return p.call.Run.ReviewRule
}

// filledIn reports whether putting values in the places of fields can have turned
// then into now. It does not check how a value is written: a URL and JSON spell
// values in their own ways.
func filledIn(fields []call.Field, then, now *call.Run) bool {
	same := func(then, now string) bool {
		return then == now || slices.ContainsFunc(fields, func(f call.Field) bool { return f.Name != "" && strings.Contains(then, f.Name) })
	}
	return slices.EqualFunc(then.Command.Args, now.Command.Args, same) &&
		slices.EqualFunc(then.Command.Env, now.Command.Env, same) &&
		slices.EqualFunc(then.Env, now.Env, same) &&
		same(string(then.Command.Stdin), string(now.Command.Stdin))
}

// Digest returns the pack digest that was approved. Code that hands out content
// checks that the pack still has it.
func (p *Permit) Digest() string {
	if p.call == nil {
		return "" // not made by Check
	}
	return p.call.Pack.Digest
}

// Covers reports whether req is still what was approved.
func (p *Permit) Covers(req call.Request) bool {
	req = p.gate.reviewed(req.WithReview(p.reviewRule()))
	level := p.box.Level
	if req.Run != nil {
		level = p.gate.sandboxAt(context.Background(), req.Run.Place).Level
	}
	return p.call.Is(&req, level) && (!p.byGrant || p.call.IsLike(&req, level))
}

// Withhold records that what was approved was not given after all, and returns the
// denial. A withheld run can no longer be started.
func (p *Permit) Withhold(reason, hint string) error {
	p.used.Store(true)
	c := &check{Gate: p.gate, box: p.box, Case: p.gate.caseOf(p.call)}
	return c.deny(reason, hint)
}

// WithholdOver is Withhold for a run that would be over a limit of its person, or of a
// group.
func (p *Permit) WithholdOver(reason, hint string) error {
	p.used.Store(true)
	c := &check{Gate: p.gate, box: p.box, Case: p.gate.caseOf(p.call)}
	return c.deniedOver(reason, hint)
}

// ByGrant reports whether an earlier answer allowed the call. Everything that
// answer is bound to must still be the same.
func (p *Permit) ByGrant() bool { return p.byGrant }

// RunID returns the run's id in the audit log, or "" if the request is not a run.
func (p *Permit) RunID() string { return p.run }

// ErrSpent is returned if the permit has already been used.
var ErrSpent = errors.New("this permit was used")

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
		g.queue.Outcome(p.run, outcome(result, err)+", and could not be recorded")
		if err != nil {
			return nil, logErr // nothing was started
		}
		return nil, &DeniedError{
			Reason: "the program ran, but its end could not be recorded, so its result is withheld",
			Hint:   "Do not call again: it would run once more. Tell the user to look at the server's log; a full disk or a damaged audit file are the usual causes.",
		}
	}
	g.queue.Outcome(p.run, outcome(result, err))
	return result, err
}

// Close says that the permit is not used any more. A run that did not start is then not
// claimed any more, and its answer is spent. Call it when the work of the call is done.
func (p *Permit) Close() {
	if p.run != "" && p.gate.runs != nil {
		p.gate.runs.End(p.run)
	}
}

// claim returns what takes the place of the question whose answer is taken. It is nil if
// the call is no run, or this server is alone.
func (c *check) claim() queue.Claim {
	if c.runs == nil || !c.Call.Kind.Starts() || !c.queue.Shared() {
		return nil
	}
	c.run = newRunID()
	return func(question string) ([]byte, error) { return c.runs.Entry(question, c.author.RunCut(c.Call, c.run)) }
}

// took notes the question whose answer the call took.
func (c *check) took(e *queue.Entry) {
	c.asked = e.ID()
	if c.run != "" {
		key, rev := c.queue.Place(e)
		c.runs.Took(c.run, key, rev)
	}
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
		denied := p.Withhold(unreachable, tryLater)
		if e, ok := errors.AsType[*DeniedError](denied); ok {
			e.Unavailable = true
		}
		return denied
	case !claimed:
		return p.Withhold("the answer was already used for a run", "Make the call again; the user will then be asked.")
	}
	return nil
}

// Cut records a run that another replica claimed and did not end. cut is the line.
func (g *Gate) Cut(cut audit.Entry) error {
	cut.Server = g.server
	g.logger.Warn("a run was cut, since its server ended first", "run", cut.Run, "pack", cut.Pack)
	return g.failed(cut, lines.Write(cut, g.log.Append))
}

// Copies reports whether the run starts from a private copy of the pack, which is
// compared with what was approved. Otherwise nothing compares the pack's bytes
// after the decision.
func (p *Permit) Copies() bool {
	return p.call != nil && p.gate.copies != nil && !p.call.Pack.Loose && p.call.Pack.Dir != ""
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

// outcome says how a run ended, in words for people.
func outcome(result *sandbox.Result, err error) string {
	switch {
	case err != nil || result == nil:
		return "was not started"
	case result.Cause != sandbox.CauseExit:
		return "stopped: " + string(result.Cause)
	case result.Signal != "":
		return "ended by " + result.Signal
	default:
		return fmt.Sprintf("exit code %d", result.ExitCode)
	}
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
