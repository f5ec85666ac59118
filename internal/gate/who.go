package gate

import (
	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/deciders"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// asker returns the person for whom the call is made.
func (c *check) asker() approvers.Person { return deciders.Asker(&c.Call.Caller) }

// need returns who has to allow the call.
func (c *check) need() approvers.Need { return c.who.Need(c.Call) }

// selfDecides reports whether the person who asks may allow the call.
func (c *check) selfDecides() bool { return c.who.AskerMay(c.Call) }

// nobodyMay returns why nobody who may allow the call can be asked, or "" if somebody
// can.
func (c *check) nobodyMay() string {
	n := c.need()
	switch {
	case !n.Any():
		return ""
	case c.selfDecides() && (c.elicits() || c.byCard() || c.ask.Elsewhere() && c.remote):
		return ""
	case c.ask.Elsewhere() && n.May(approvers.Person{Operator: true}, c.asker()):
		return ""
	case c.ask.Elsewhere() && c.remote && n.Others(c.asker()):
		return ""
	}
	why := "nobody who can be asked may allow this. It may be allowed by " + n.String()
	if c.asker().String() == "" {
		why += "; the token of this call has no name, so nobody can tell who asks"
	}
	return why
}

// OperatorMay returns why the operator of the server may not allow what asker would have
// to ask for with a call of a kind, or nil if they may.
func (g *Gate) OperatorMay(kind call.Kind, pack string, asker approvers.Person) error {
	return g.who.OperatorMay(kind, pack, asker)
}

// answeredBy returns the person who gave the answer that is being applied.
func (c *check) answeredBy() approvers.Person {
	switch {
	case c.answer.By() != nil:
		return *c.answer.By()
	case c.answer.Channel == queue.ChannelPage || c.answer.Channel == queue.ChannelTerminal || c.answer.Channel == queue.ChannelCommand:
		return approvers.Person{Operator: true}
	}
	return c.asker()
}

// approver returns who answered, for the log. It is empty if the line already says
// so, or if nobody decided.
func (c *check) approver(decision string) string {
	switch {
	case c.answer == nil || decision == pendingWord:
		return ""
	case c.answer.By() != nil && c.answer.By().Name != c.Call.Caller.Person:
		return c.answer.By().String()
	case c.need().Any() && decision != queue.Deny.String():
		return c.answeredBy().String()
	}
	return ""
}

// waitingFor returns the words that tell the client's user who has to answer, and where.
func (c *check) waitingFor(code string) string {
	if c.selfDecides() {
		return c.ask.Waiting(code)
	}
	return "waiting for others: it may be allowed by " + c.need().String() + " (code " + code + ")"
}

// A View is the queue as one person may see and answer it: the calls that they may
// decide about, and their own.
type View struct {
	gate   *Gate
	person approvers.Person
}

// View returns what a person may see and answer.
func (g *Gate) View(p approvers.Person) *View { return &View{g, p} }

// sees reports whether the person may see a call.
func (v *View) sees(c *call.Call) bool { return v.gate.who.Sees(v.person, c) }

// Pending is [Gate.Pending] for the person.
func (v *View) Pending() []queue.Pending { return v.gate.queue.PendingOf(v.sees) }

// Changes is [Gate.Changes].
func (v *View) Changes() <-chan struct{} { return v.gate.Changes() }

// Decide is [Gate.Decide] for the person. The code of a call that the person may not
// see is treated as unknown.
func (v *View) Decide(code string, verdict queue.Verdict) (queue.Pending, error) {
	if c := v.gate.queue.CallOf(code); c == nil || !v.sees(c) {
		return queue.Pending{}, &queue.CodeError{Code: safetext.Line(code), Problem: queue.CodeUnknown}
	}
	by := v.person
	verdict.By = &by
	return v.gate.Decide(code, verdict)
}
