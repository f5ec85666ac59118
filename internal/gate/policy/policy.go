// Package policy says how a call stands under the user's policy: whether an answer to it
// can hold for later calls, what that answer would be bound to, and which answers a person
// is offered.
//
// It decides about no call and keeps no answer. The gate does, and asks this package.
package policy

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// The policies: which calls a person is asked about when no grant and no rule
// says more.
const (
	// EveryCall asks about every call.
	EveryCall = "every-call"
	// FirstRun asks about the first run of a tool, and about later runs
	// unless the tool says that it only reads. It asks about documents, files and
	// enabling only for packs that are not trusted.
	FirstRun = "first-run"
	// Balanced asks once about a pack in a chat, if the person answers that
	// the pack may be used. It then does not ask about runs of tools that declare
	// that they only read, as far as the sandbox holds them to that; see
	// [Case.OnlyReads]. It asks about everything else.
	Balanced = "balanced"
)

// A Case is one call under a policy. It is for one decision, and not safe for concurrent
// use.
type Case struct {
	Call   *call.Call
	Policy string // one of the policies
	Always bool   // a rule says to ask each time
	Keeps  bool   // answers that hold in every chat are kept
	Copies bool   // runs start from private copies of packs

	own, use *grants.Grant // see OwnGrant and UseGrant
}

// Allowable reports whether a rule may allow the request. If the run can send data
// anywhere, the rule must name the tool.
func (c *Case) Allowable(r rules.Rule) bool {
	return !ReachesNetwork(c.Call) || r.NamesTool()
}

// OwnGrant returns the grant for calls of the request's own kind. It is made once.
func (c *Case) OwnGrant() *grants.Grant {
	if c.own == nil {
		g := grants.New(c.Call)
		c.own = &g
	}
	return c.own
}

// UseGrant returns the grant for using the request's pack. It is made once. Under
// the policy balanced it also lets some runs go unasked, which an answer under
// another policy did not say; so the grant names the policy.
func (c *Case) UseGrant() *grants.Grant {
	if c.use == nil {
		g := grants.NewUse(c.Call)
		if c.Policy == Balanced {
			g.Policy = c.Policy
		}
		c.use = &g
	}
	return c.use
}

// WouldGrant returns the grant that an answer for more than this call would make.
// When the request opens a pack, that is the grant for using the pack. The policy
// balanced asks once about a pack, so there it is the grant for using the pack
// whichever call comes first.
func (c *Case) WouldGrant() *grants.Grant {
	if c.Call.IsUse() && (c.Call.Kind == call.KindOpen || c.Policy == Balanced) {
		return c.UseGrant()
	}
	return c.OwnGrant()
}

// Related returns the grants that bear on whether the request is asked about.
func (c *Case) Related() []*grants.Grant {
	all := []*grants.Grant{c.OwnGrant()}
	if c.Call.IsUse() || c.Policy == Balanced && c.Call.Kind == call.KindRun {
		all = append(all, c.UseGrant())
	}
	return all
}

// FirstRunOnly reports whether, under the policy, one answer is enough for all runs
// of the tool until something about it changes. That includes tools that may use
// the whole network (specs/skill-md-tools.md §6.3): the person chose the policy,
// the question names the network, and the answer is bound to it.
func (c *Case) FirstRunOnly() bool {
	r := c.Call
	return c.Policy == FirstRun && !r.OnceOnly() && !c.Always && r.Kind == call.KindRun && r.Run.ReadOnly && c.rememberable()
}

// everywhere reports whether the answer "always" may be given. A run that can send
// data to other machines is asked about in each chat.
func (c *Case) everywhere() bool { return c.rememberable() && !ReachesNetwork(c.Call) }

// Counts reports whether a stored grant with the request's facts may allow it.
func (c *Case) Counts(g grants.Grant) bool {
	if g.Policy == FirstRun {
		return c.FirstRunOnly()
	}
	return c.everywhere()
}

// ReachesNetwork reports whether the run can send data to other machines. Machines on
// a list of hosts count too: they are not the user's.
func ReachesNetwork(r *call.Call) bool {
	return r.Run != nil && (r.Run.Policy.Network == sandbox.NetworkFull || r.Run.Policy.Network == sandbox.NetworkHosts)
}

// rememberable reports whether an answer can be kept: it may hold for more than
// this call, and all of its facts are valid UTF-8, so that they survive being
// stored.
func (c *Case) rememberable() bool {
	r := c.Call
	if !r.Lasting() {
		return false
	}
	return !slices.ContainsFunc(c.WouldGrant().Facts, func(f call.Fact) bool {
		return slices.ContainsFunc(f.Values, func(v string) bool { return !utf8.ValidString(v) })
	})
}

// Choices returns the answers offered, in the order that people know: this once,
// more than once, no. None is preselected.
func (c *Case) Choices() []queue.Choice {
	r := c.Call
	once := Once()
	if c.FirstRunOnly() && c.Keeps {
		once.Title, once.Lasts = "From now on: until anything changes", true
		once.Means = fmt.Sprintf("From now on: %s runs unasked while nothing about it changes (it says that it only reads).", prompt.Scope(&r.Request, r.Kind))
	}
	deny := queue.Choice{Value: queue.Deny.String(), Title: "Deny", Means: "Deny: the call does not happen."}
	if !r.Lasting() || c.Always || r.Kind == call.KindAttach { // attaching lasts until the pack is detached
		return []queue.Choice{once, deny}
	}
	kind := c.WouldGrant().Kind
	short, scope := prompt.ShortScope(&r.Request, kind), prompt.Scope(&r.Request, kind)
	if kind == call.KindUse && c.Policy == Balanced {
		short = "use it, and run what only reads" // some clients show the label alone
	}
	all := []queue.Choice{once, {
		Value: string(queue.Chat), Title: "Chat: " + short,
		Means: fmt.Sprintf("This chat: %s, %s%s.", scope, prompt.Until(&r.Request), c.spares()),
	}}
	if c.Keeps && c.everywhere() {
		all = append(all, queue.Choice{
			Value: string(queue.Always), Title: "Always: " + short,
			Means: fmt.Sprintf("Always: %s, in every client, until anything about it changes%s.", scope, c.spares()),
		})
	}
	return append(all, deny)
}

// spares returns the end of a sentence: what an answer that the pack may be used
// means for runs. It is empty for other answers.
func (c *Case) spares() string {
	switch {
	case c.WouldGrant().Kind != call.KindUse:
		return ""
	case c.Policy == Balanced:
		return "; its tools that only read then run unasked, and other runs ask"
	}
	return "; runs still ask"
}

// Once is the answer that holds for one call and no other.
func Once() queue.Choice {
	return queue.Choice{Value: string(queue.Once), Title: "Once: this exact call", Means: "Once: this exact call, one time."}
}
