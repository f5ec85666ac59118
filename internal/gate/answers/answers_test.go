package answers_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A client's form allows what it was asked about, and nothing that was not offered.
func Example() {
	offered := []queue.Choice{{Value: "once"}, {Value: "deny"}}
	for _, word := range []string{"once", "always", "deny"} {
		d := answers.FromForm("state", "accept", map[string]any{"decision": word}).Decide(offered, nil)
		fmt.Printf("%s: %q\n", d.Decision, d.Reason)
	}
	// Output:
	// once: ""
	// deny: "the answer was malformed: \"decision\" is none of the choices"
	// deny: "the person chose to deny"
}

func TestFields(t *testing.T) {
	offered := []queue.Choice{{Value: "once"}, {Value: "deny"}}
	fields := []call.Field{{Name: "token"}}
	form := func(rest map[string]any) *answers.Answer {
		rest["decision"] = "once"
		return answers.FromForm("state", "accept", rest)
	}
	d := form(map[string]any{"token": "t", "other": "o"}).Decide(offered, fields)
	if want := map[string]string{"token": "t"}; d.Decision != queue.Once || !maps.Equal(d.Values, want) {
		t.Errorf("with a value too many: %v %v, want once with %v", d.Decision, d.Values, want)
	}
	for name, a := range map[string]*answers.Answer{
		"no value":       form(map[string]any{}),
		"an empty value": form(map[string]any{"token": " "}),
		"not a text":     form(map[string]any{"token": 1.0}),
	} {
		if d := a.Decide(offered, fields); d.Decision != queue.Deny || d.Explicit || d.Values != nil {
			t.Errorf("%s: %+v, want a denial that no person chose", name, d)
		}
	}
}

// An answer from elsewhere says who gave it; a client's form cannot.
func TestBy(t *testing.T) {
	ada := approvers.Person{Name: "ada"}
	r := &queue.Ruling{Verdict: queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage, By: &ada, Values: map[string]string{"token": "t"}}}
	a := answers.FromRuling(r, "state")
	if by := a.By(); by == nil || by.Name != "ada" || a.Channel != queue.ChannelPage || a.State != "state" {
		t.Errorf("%+v, want ada's answer on the page", a)
	}
	a.Verdict.Values["token"] = "changed"
	if r.Values["token"] != "t" {
		t.Error("a change of the answer changed the ruling")
	}
	if by := answers.FromForm("state", "accept", map[string]any{"decision": "once", "by": "ada"}).By(); by != nil {
		t.Errorf("a form says that %v filled it in", by)
	}
}
