package deciders_test

import (
	"fmt"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/deciders"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// bySRE lets the group sre allow calls, but not the person who asks.
func bySRE() deciders.Deciders {
	return deciders.Deciders{Rules: []approvers.Rule{{
		Who: []approvers.Who{{Kind: approvers.Group, Name: "sre"}}, NotSelf: true, Where: "config.yaml:7",
	}}}
}

// asked is a call of a person over the network.
func asked(person string) *call.Call {
	return call.Freeze(call.Request{Kind: call.KindOpen, Pack: call.Pack{ID: "triage"}, Caller: call.Caller{Person: person, Origin: call.OriginNetwork}}, 0)
}

// The person who asks may deny a call that others have to allow.
func Example() {
	d := bySRE()
	for _, v := range []queue.Verdict{
		{Decision: queue.Once, By: &approvers.Person{Name: "grace", Groups: []string{"sre"}}},
		{Decision: queue.Once, By: &approvers.Person{Name: "ada"}},
		{Decision: queue.Deny, By: &approvers.Person{Name: "ada"}},
	} {
		fmt.Println(v.By, v.Decision, d.Allow(asked("ada"), "AB12", v) == nil)
	}
	// Output:
	// grace once true
	// ada once false
	// ada deny true
}

// A kept answer counts for as long as the person who gave it may give it.
func TestGiverMay(t *testing.T) {
	d := bySRE()
	grace := approvers.Person{Name: "grace", Groups: []string{"sre"}}
	if c := asked("ada"); !d.GiverMay(c, grants.Grant{By: &grace}) || d.GiverMay(c, grants.Grant{}) || d.GiverMay(asked("grace"), grants.Grant{By: &grace}) {
		t.Error("want only the answer of somebody in the group, who does not ask")
	}
	for name, giver := range map[string]func(approvers.Person) (approvers.Person, bool){
		"she has left the group": func(p approvers.Person) (approvers.Person, bool) { return approvers.Person{Name: p.Name}, true },
		"she is gone":            func(p approvers.Person) (approvers.Person, bool) { return p, false },
	} {
		d.Giver = giver
		if d.GiverMay(asked("ada"), grants.Grant{By: &grace}) {
			t.Errorf("%s, and her answer counts", name)
		}
	}
}

// Without rules, people decide about their own calls, and see no others.
func TestNoRules(t *testing.T) {
	var d deciders.Deciders
	c := asked("ada")
	if !d.AskerMay(c) || !d.Sees(approvers.Person{Name: "ada"}, c) || d.Sees(approvers.Person{Name: "grace"}, c) {
		t.Error("want that ada alone sees her call, and decides")
	}
	if err := d.Allow(c, "AB12", queue.Verdict{Decision: queue.Deny, By: &approvers.Person{Name: "grace"}}); err == nil {
		t.Error("grace denied ada's call")
	}
	if err := d.OperatorMay(call.KindAttach, "triage", approvers.Person{Name: "ada"}); err != nil {
		t.Errorf("the operator may not: %v", err)
	}
}
