package gate

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A rule that holds a run's changes does so even if a person or a grant allows the
// run. It does not affect runs that it does not match.
func TestReviewRule(t *testing.T) {
	review := func(change ...func(*rules.Rule)) rules.Rule {
		r := rules.Rule{Effect: rules.Allow, Tool: "triage/greet", Review: true, Where: "c:1"}
		for _, f := range change {
			f(&r)
		}
		return r
	}
	plain := rules.Rule{Effect: rules.Allow, Kinds: []string{"run"}, Where: "c:2"}
	ask := rules.Rule{Effect: rules.Ask, Tool: "triage/greet", Where: "c:3"}
	untrusted := with(toolRun(), func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted })
	declared := with(toolRun(), func(r *call.Request) { r.Run.Policy.Review = true })
	for _, c := range []struct {
		says  string
		rules []rules.Rule
		req   call.Request
		by    string // what the log says at the start of the run; empty: nothing is held
	}{
		{"it allows", []rules.Rule{review()}, toolRun(), "c:1"},
		{"another allows too", []rules.Rule{plain, review()}, toolRun(), "c:1"},
		{"a person is asked by another rule", []rules.Rule{review(), ask}, toolRun(), "c:1"},
		{"a person is asked about a pack that is not trusted", []rules.Rule{review()}, untrusted, "c:1"},
		{"the allowance falls short of the run", []rules.Rule{review(func(r *rules.Rule) { r.Cwd = "pack_root" })}, toolRun(), "c:1"},
		{"a broken rule", []rules.Rule{review(func(r *rules.Rule) { r.Pack = "[" })}, execRun(), "c:1"},
		{"a rule without a place", []rules.Rule{review(func(r *rules.Rule) { r.Where = "" })}, toolRun(), "a rule"},
		{"the tool says it too", []rules.Rule{review()}, declared, "c:1"},
		{"the tool alone says it", []rules.Rule{plain}, declared, "the tool or sandbox.grants"},
		{"another tool", []rules.Rule{review(func(r *rules.Rule) { r.Tool = "triage/other" })}, toolRun(), ""},
		{"a command of the model's own", []rules.Rule{review()}, execRun(), ""},
		{"no rule says it", []rules.Rule{plain}, toolRun(), ""},
	} {
		t.Run(c.says, func(t *testing.T) {
			b := newBench(t, everywhere, ruled(c.rules...))
			runner := &policyRunner{runner: b.runner}
			b.Gate.runner = runner
			permit, q, err := b.Check(t.Context(), c.req, nil)
			if q != nil {
				permit, err = b.answer(c.req, accept(q.State, "once"))
			}
			if err != nil {
				t.Fatal(err)
			}
			if !permit.Covers(c.req) {
				t.Error("the permit does not cover its own request")
			}
			if _, err := permit.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if runner.policy.Review != (c.by != "") {
				t.Errorf("the run's changes are held: %v, want %v", runner.policy.Review, c.by != "")
			}
			for _, e := range b.log.all() {
				if e.Event == audit.EventRunStart && e.Review != c.by {
					t.Errorf("the log says %q, want %q", e.Review, c.by)
				}
			}
			if c.req.Run.ReviewRule != "" {
				t.Error("the caller's request was changed")
			}
		})
	}
}

// The question says that every change waits, and an earlier answer without that no
// longer counts.
func TestReviewRuleIsAsked(t *testing.T) {
	layered := with(toolRun(), func(r *call.Request) {
		r.Run.Policy.Layers = []sandbox.Layer{{Folder: "/home/ada/src", Kind: sandbox.LayerOverlay}}
	})
	store := new(memory)
	b := newBench(t, storedIn(store), everywhere)
	b.approve(layered, queue.Always)
	b.rules = []rules.Rule{
		{Effect: rules.Allow, Tool: "triage/greet", Cwd: "pack_root", Review: true, Where: "c:1"},
	}
	q := b.ask(layered)
	for _, words := range []string{"every change waits for you", "held until seen"} {
		if !strings.Contains(unwrapped(textOf(q)), unwrapped(words)) {
			t.Errorf("the question has not %q:\n%s", words, textOf(q))
		}
	}
}

// What a person fills in can make such a rule match a run, but never the opposite.
func TestReviewRuleAndFill(t *testing.T) {
	for _, c := range []struct {
		says  string
		argv  []string
		value string
		want  bool
	}{
		{"the value matches", []string{"./scripts/greet.sh", "--page", "x*", "**"}, "xyz", true},
		{"the stand-in matches", []string{"./scripts/greet.sh", "--page", "<*>", "**"}, "xyz", true},
		{"neither does", []string{"./scripts/greet.sh", "--page", "y", "**"}, "xyz", false},
	} {
		t.Run(c.says, func(t *testing.T) {
			b := newBench(t, everywhere, ruled(rules.Rule{Effect: rules.Allow, Argv: c.argv, Review: true, Where: "c:1"}))
			runner := &policyRunner{runner: b.runner}
			b.Gate.runner = runner
			permit, err := fillIns["in the client"](b, c.value).Fill(filled(c.value))
			if err != nil {
				t.Fatal(err)
			}
			if !permit.Covers(filled(c.value)) {
				t.Error("the permit does not cover what was filled in")
			}
			if _, err := permit.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if runner.policy.Review != c.want {
				t.Errorf("the run's changes are held: %v, want %v", runner.policy.Review, c.want)
			}
		})
	}
}
