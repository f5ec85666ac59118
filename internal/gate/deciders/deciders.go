// Package deciders says who may decide about a call: over any channel, and by an earlier
// answer that is kept.
//
// It finds nobody and asks nobody, and it does not look at what was decided; package gate
// does. Where no rule of the configuration is about a call, the person who asks and the
// operator of the server may decide.
package deciders

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Deciders are the people who may decide about calls.
type Deciders struct {
	Rules []approvers.Rule
	// Giver returns who a person that gave a kept answer is today, with the groups that
	// they are in now, or false if they are nobody any more. The operator is not looked
	// up. nil: everybody is who they were.
	Giver func(approvers.Person) (approvers.Person, bool)
}

// Asker returns the person for whom a caller makes calls.
func Asker(c *call.Caller) approvers.Person {
	return approvers.Person{Name: c.Person, Groups: c.Groups, Operator: c.Person == "" && c.Origin != call.OriginNetwork}
}

// Need returns who has to allow a call.
func (d *Deciders) Need(c *call.Call) approvers.Need {
	return approvers.For(d.Rules, c.Pack.ID, string(c.Kind))
}

// AskerMay reports whether the person who asks may allow the call. Otherwise the
// client's own form and card can only deny it, no matter who fills them in.
func (d *Deciders) AskerMay(c *call.Call) bool {
	n := d.Need(c)
	return !n.Any() || n.May(Asker(&c.Caller), Asker(&c.Caller))
}

// GiverMay reports whether the person who gave a grant may allow the call now.
func (d *Deciders) GiverMay(c *call.Call, g grants.Grant) bool {
	n, asker := d.Need(c), Asker(&c.Caller)
	switch {
	case !n.Any():
		return true
	case g.By == nil:
		return false
	case g.By.Operator || d.Giver == nil:
		return n.May(*g.By, asker)
	}
	now, known := d.Giver(*g.By)
	return known && n.May(now, asker)
}

// OperatorMay returns why the operator of the server may not allow what asker would have
// to ask for with a call of a kind, or nil if they may.
func (d *Deciders) OperatorMay(kind call.Kind, pack string, asker approvers.Person) error {
	n := approvers.For(d.Rules, pack, string(kind))
	if n.May(approvers.Person{Operator: true}, asker) {
		return nil
	}
	return fmt.Errorf("you may not decide about it: it may be allowed by %s", safetext.Line(n.String()))
}

// Allow returns why the person of a verdict may not give it about the call with this
// code, or nil. The person who asks may always deny, and so may the operator. The error
// is a [*queue.CodeError].
func (d *Deciders) Allow(c *call.Call, code string, v queue.Verdict) error {
	by, asker := approvers.Person{Operator: true}, Asker(&c.Caller)
	if v.By != nil {
		by = *v.By
	}
	n := d.Need(c)
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

// Sees reports whether a person may see a call that waits: they may allow or deny it.
func (d *Deciders) Sees(p approvers.Person, c *call.Call) bool {
	asker := Asker(&c.Caller)
	return d.Need(c).May(p, asker) || (approvers.Need{}).May(p, asker)
}
