package gate

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// askerOf returns the person for whom a caller makes calls.
func askerOf(c *call.Caller) approvers.Person {
	return approvers.Person{Name: c.Person, Groups: c.Groups, Operator: c.Person == "" && c.Origin != call.OriginNetwork}
}

func (c *check) asker() approvers.Person { return askerOf(&c.Call.Caller) }

// needOf returns who has to allow a call.
func (g *Gate) needOf(c *call.Call) approvers.Need {
	if len(g.who) == 0 {
		return approvers.Need{}
	}
	return approvers.For(g.who, c.Pack.ID, string(c.Kind))
}

func (c *check) need() approvers.Need { return c.needOf(c.Call) }

// selfDecides reports whether the person who asks may allow the call. Otherwise the
// client's own form and card can only deny it, no matter who fills them in.
func (c *check) selfDecides() bool {
	n := c.need()
	return !n.Any() || n.May(c.asker(), c.asker())
}

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

// authorised reports whether the person who gave a grant may allow the request now.
func (c *check) authorised(g grants.Grant) bool {
	n := c.need()
	switch {
	case !n.Any():
		return true
	case g.By == nil:
		return false
	case g.By.Operator || c.giver == nil:
		return n.May(*g.By, c.asker())
	}
	now, known := c.giver(*g.By)
	return known && n.May(now, c.asker())
}

// OperatorMay returns why the operator of the server may not allow what asker would have
// to ask for with a call of a kind, or nil if they may.
func (g *Gate) OperatorMay(kind call.Kind, pack string, asker approvers.Person) error {
	n := approvers.For(g.who, pack, string(kind))
	if n.May(approvers.Person{Operator: true}, asker) {
		return nil
	}
	return fmt.Errorf("you may not decide about it: it may be allowed by %s", safetext.Line(n.String()))
}

// mayDecide returns why a verdict's person may not give it, or nil. The person who asks
// may always deny, and so may the operator.
func (g *Gate) mayDecide(code string, v queue.Verdict) error {
	asked := g.queue.CallOf(code)
	if asked == nil {
		return nil // the queue says what happened to it
	}
	by, asker := approvers.Person{Operator: true}, askerOf(&asked.Caller)
	if v.By != nil {
		by = *v.By
	}
	n := g.needOf(asked)
	switch {
	case n.May(by, asker), v.Decision == queue.Deny && (approvers.Need{}).May(by, asker):
		return nil
	case v.Channel == queue.ChannelApp && (!n.Any() || v.Decision == queue.Deny):
		return nil // the card in the caller's own chat
	}
	why := "another person's call"
	if n.Any() {
		why = "it may be allowed by " + safetext.Line(n.String())
	}
	return &queue.CodeError{Code: safetext.Line(code), Problem: queue.CodeForbidden, Detail: "you may not decide about it: " + why}
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
func (v *View) sees(c *call.Call) bool {
	asker := askerOf(&c.Caller)
	return v.gate.needOf(c).May(v.person, asker) || (approvers.Need{}).May(v.person, asker)
}

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
