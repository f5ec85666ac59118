package gate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
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

// Copies reports whether the run starts from a private copy of the pack, which is
// compared with what was approved. Otherwise nothing compares the pack's bytes
// after the decision.
func (p *Permit) Copies() bool {
	return p.call != nil && p.gate.copies != nil && !p.call.Pack.Loose && p.call.Pack.Dir != ""
}
