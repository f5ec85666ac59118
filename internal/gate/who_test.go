package gate

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// bySRE lets the group sre allow runs, but not the person who asks.
func bySRE(o *Options) {
	everywhere(o)
	remembers(o)
	o.Remote = true
	o.Approvers = []approvers.Rule{{
		Kinds: []string{"run", "exec"}, Who: []approvers.Who{{Kind: approvers.Group, Name: "sre"}}, NotSelf: true, Where: "config.yaml:7",
	}}
}

// personRun is a request of a person over the network, who is in these groups.
func personRun(person string, groups ...string) call.Request {
	return with(toolRun(), func(r *call.Request) {
		r.Caller.Person, r.Caller.Groups, r.Caller.Origin = person, groups, call.OriginNetwork
	})
}

// by is a verdict of a person who is in these groups.
func by(d queue.Decision, person string, groups ...string) queue.Verdict {
	v := says(d)
	v.By = &approvers.Person{Name: person, Groups: groups}
	return v
}

// People whom the configuration does not name cannot decide, over any channel. Those
// whom it names can, and the log says who did.
func TestApprovers(t *testing.T) {
	b := newBench(t, bySRE)
	req := personRun("ada")
	q := b.ask(req)
	if q.Elicit {
		t.Error("the client is to ask the person who asks, who may not allow it")
	}
	if !strings.Contains(q.Waiting, "group sre") || !strings.Contains(q.Form, "may allow: group sre, not the person who asks (config.yaml:7)") {
		t.Errorf("the question does not say who may allow it: %q, %q", q.Waiting, q.Form)
	}
	for name, v := range map[string]queue.Verdict{
		"the person who asks":               by(queue.Once, "ada"),
		"the same, in the group":            by(queue.Once, "ada", "sre"),
		"somebody without groups":           by(queue.Once, "grace"),
		"somebody in another group":         by(queue.Once, "grace", "SRE", "group:sre"),
		"somebody who is called the group":  by(queue.Once, "sre"),
		"nobody in particular, in a group":  by(queue.Once, "", "sre"),
		"the operator":                      says(queue.Once),
		"somebody who denies":               by(queue.Deny, "grace"),
		"somebody who allows it for always": by(queue.Always, "grace"),
		"the card of the chat":              {Decision: queue.Once, Channel: queue.ChannelApp, By: &approvers.Person{Name: "ada"}},
	} {
		b.refused(q.Code, v, queue.CodeForbidden, "you may not decide about it")
		if b.Answered(q) != nil {
			t.Fatalf("%s decided", name)
		}
	}
	if _, err := b.Decide(q.Code, by(queue.Once, "grace", "dev", "sre")); err != nil {
		t.Fatalf("Decide() by the group = %v", err)
	}
	permit, err := b.answer(req, b.Answered(q))
	if err != nil || permit == nil {
		t.Fatalf("Check() = %v, want a permit", err)
	}
	if e := b.log.last(); e.Approver != "grace" || e.Caller != "ada" || e.Decision != "once" {
		t.Errorf("the log has the approver %q of a call of %q, %s", e.Approver, e.Caller, e.Decision)
	}
}

// An answer in the client's own form counts as that of the person who asks, even if
// somebody else sent the form. It ends the question, and nothing runs.
func TestApproversForm(t *testing.T) {
	for name, req := range map[string]call.Request{"older": personRun("ada", "sre"), "newer": carrying(personRun("ada", "sre"))} {
		b := newBench(t, bySRE)
		for _, d := range []string{"once", "chat", "always"} {
			_, err := b.answer(req, accept(b.ask(req).State, d))
			b.denied(err, "the answer came from the person who asks")
		}
		if len(b.codes()) > 0 || b.outcome(req) != asks {
			t.Errorf("%s: %q are open, and then the call is %q", name, b.codes(), b.outcome(req))
		}
	}
}

// The groups in the answer's token count, and not those in the question's.
func TestApproversTokenWithoutGroups(t *testing.T) {
	b := newBench(t, bySRE, func(o *Options) { o.Approvers[0].NotSelf = false })
	asked := carrying(personRun("ada", "sre"))
	q := b.ask(asked)
	if !q.Elicit {
		t.Fatal("who may allow the call is not asked in their client")
	}
	_, err := b.answer(carrying(personRun("ada")), accept(q.State, "once"))
	b.denied(err, "the answer came from the person who asks")
	if _, err := b.answer(asked, accept(b.ask(asked).State, "once")); err != nil {
		t.Errorf("with the group: %v", err)
	}
	if e := b.log.last(); e.Approver != "ada" {
		t.Errorf("the log has the approver %q", e.Approver)
	}
}

// A call by a token without a name may come from anybody, so nobody is known to be
// another person, and nobody is asked.
func TestApproversOfNobody(t *testing.T) {
	b := newBench(t, bySRE)
	_, _, err := b.Check(t.Context(), personRun(""), nil)
	b.denied(err, "the token of this call has no name")
	if len(b.codes()) > 0 {
		t.Errorf("%q wait for people who could not allow them", b.codes())
	}
}

// The asker and the operator can always deny.
func TestApproversDenial(t *testing.T) {
	for name, v := range map[string]queue.Verdict{
		"who asks": by(queue.Deny, "ada"), "operator": says(queue.Deny), "approver": by(queue.Deny, "grace", "sre"),
	} {
		b := newBench(t, bySRE)
		req := personRun("ada")
		q := b.ask(req)
		if _, err := b.Decide(q.Code, v); err != nil {
			t.Fatalf("%s: Decide() = %v", name, err)
		}
		_, err := b.answer(req, b.Answered(q))
		b.denied(err, answers.ChoseToDeny)
		want := map[string]string{"who asks": "", "operator": "", "approver": "grace"}[name]
		if e := b.log.last(); e.Approver != want {
			t.Errorf("%s: the log has the approver %q, want %q", name, e.Approver, want)
		}
	}
}

// A call that nobody could allow is denied at once, and the denial says who could.
func TestApproversNobody(t *testing.T) {
	person := func(name string) []approvers.Who { return []approvers.Who{{Kind: approvers.Named, Name: name}} }
	for name, x := range map[string]struct {
		change func(*Options)
		req    call.Request
	}{
		"nobody else can be asked here": {func(o *Options) { o.Remote = false }, personRun("ada")},
		"no channel but the client's":   {func(o *Options) { o.Channels = []string{queue.ChannelElicitation} }, personRun("ada")},
		"only the person who asks":      {func(o *Options) { o.Approvers[0].Who = person("ada") }, personRun("ada")},
		"no two rules have one in common": {func(o *Options) {
			o.Approvers[0].Who = person("grace")
			o.Approvers = append(o.Approvers, approvers.Rule{Who: person("eve"), Where: "config.yaml:9"})
		}, personRun("ada")},
		"the operator asks": {func(o *Options) {
			o.Approvers[0].Who, o.Remote = []approvers.Who{{Kind: approvers.Operator}}, false
		}, with(toolRun(), func(r *call.Request) { r.Caller.Origin = call.OriginClient })},
	} {
		b := newBench(t, bySRE, x.change)
		if got := b.outcome(x.req); !strings.Contains(got, "nobody who can be asked may allow this. It may be allowed by") || !strings.Contains(got, "config.yaml:7") {
			t.Errorf("%s: %q", name, got)
		}
		if len(b.codes()) > 0 {
			t.Errorf("%s: a question waits: %q", name, b.codes())
		}
	}
}

// A kept answer counts as long as the person who gave it may allow the call. An
// answer from before there were approvers does not count, nor does one from somebody
// who is no longer an approver.
func TestApproversGrants(t *testing.T) {
	kept := new(memory)
	with := func(o *Options) { bySRE(o); o.Grants = kept }
	before := newBench(t, everywhere, func(o *Options) { o.Grants = kept })
	before.approve(personRun("ada"), queue.Always)
	if got := before.outcome(personRun("ada")); got != allows {
		t.Fatalf("without approvers the call is %q", got)
	}
	b := newBench(t, with)
	q := b.ask(personRun("ada"))
	if _, err := b.Decide(q.Code, by(queue.Always, "grace", "sre")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.answer(personRun("ada"), b.Answered(q)); err != nil {
		t.Fatal(err)
	}
	if got := b.outcome(personRun("ada")); got != allows {
		t.Errorf("after an answer of the group the call is %q", got)
	}
	if got := b.outcome(personRun("eve")); got != asks {
		t.Errorf("another person's call is %q", got)
	}
	after := newBench(t, with, func(o *Options) { o.Approvers[0].Who[0].Name = "security" })
	if got := after.outcome(personRun("ada")); got != asks {
		t.Errorf("when the group may not allow it any more, the call is %q", got)
	}
}

// A kept answer counts in the groups that the person who gave it is in today, and not at
// all when they are nobody any more.
func TestApproversGrantsToday(t *testing.T) {
	kept := new(memory)
	today := map[string][]string{"grace": {"sre"}}
	b := newBench(t, bySRE, func(o *Options) {
		o.Grants = kept
		o.Giver = func(p approvers.Person) (approvers.Person, bool) {
			groups, ok := today[p.Name]
			p.Groups = groups
			return p, ok
		}
	})
	for _, keep := range []queue.Decision{queue.Chat, queue.Always} {
		today["grace"] = []string{"sre"}
		req := personRun("ada")
		if keep == queue.Always {
			req = personRun("eve")
		}
		q := b.ask(req)
		if _, err := b.Decide(q.Code, by(keep, "grace", "sre")); err != nil {
			t.Fatal(err)
		}
		if _, err := b.answer(req, b.Answered(q)); err != nil {
			t.Fatal(err)
		}
		if got := b.outcome(req); got != allows {
			t.Errorf("%s: while the giver is in the group, the call is %q", keep, got)
		}
		today["grace"] = []string{"dev"}
		if got := b.outcome(req); got != asks {
			t.Errorf("%s: when the giver left the group, the call is %q", keep, got)
		}
		delete(today, "grace")
		if got := b.outcome(req); got != asks {
			t.Errorf("%s: when the giver is nobody any more, the call is %q", keep, got)
		}
	}
}

// The operator's page attaches packs only where the rules let the operator.
func TestOperatorMay(t *testing.T) {
	operator, group := []approvers.Who{{Kind: approvers.Operator}}, []approvers.Who{{Kind: approvers.Group, Name: "sre"}}
	for name, x := range map[string]struct {
		rules []approvers.Rule
		asker approvers.Person
		want  bool
	}{
		"no rule":                      {nil, approvers.Person{Name: "ada"}, true},
		"about another kind":           {[]approvers.Rule{{Kinds: []string{"run"}, Who: group}}, approvers.Person{Name: "ada"}, true},
		"about another pack":           {[]approvers.Rule{{Packs: []string{"other"}, Who: group}}, approvers.Person{Name: "ada"}, true},
		"a group":                      {[]approvers.Rule{{Kinds: []string{"attach"}, Who: group}}, approvers.Person{Name: "ada"}, false},
		"the operator":                 {[]approvers.Rule{{Kinds: []string{"attach"}, Who: operator}}, approvers.Person{Name: "ada"}, true},
		"the operator, for nobody":     {[]approvers.Rule{{Who: operator, NotSelf: true}}, approvers.Person{}, false},
		"the operator, for themselves": {[]approvers.Rule{{Who: operator, NotSelf: true}}, approvers.Person{Operator: true}, false},
	} {
		b := newBench(t, everywhere, func(o *Options) { o.Approvers = x.rules })
		if err := b.OperatorMay(call.KindAttach, "triage", x.asker); (err == nil) != x.want {
			t.Errorf("%s: %v, want allowed = %t", name, err, x.want)
		}
	}
}

// An answer about opening a pack does not cover what others have to decide about.
func TestApproversOfAnotherKind(t *testing.T) {
	b := newBench(t, bySRE, func(o *Options) { o.Approvers[0].Kinds = []string{"enable"} })
	opens := func(k call.Kind) call.Request {
		return with(personRun("ada"), func(r *call.Request) {
			r.Kind, r.Run, r.Workspace = k, nil, ""
			if k == call.KindEnable {
				r.Tools = []string{"greet"}
			}
		})
	}
	b.approve(opens(call.KindOpen), queue.Chat)
	if got := b.outcome(opens(call.KindOpen)); got != allows {
		t.Errorf("opening it again is %q", got)
	}
	if got := b.outcome(opens(call.KindEnable)); got != asks {
		t.Errorf("enabling its tools is %q", got)
	}
}

// A prompt that a person chose also counts as the asker's own answer.
func TestApproversPrompt(t *testing.T) {
	open := with(personRun("ada"), func(r *call.Request) {
		r.Kind, r.Run, r.Workspace, r.Caller.Act = call.KindOpen, nil, "", true
	})
	for kinds, want := range map[string]string{"open": asks, "run": allows} {
		b := newBench(t, bySRE, func(o *Options) { o.Approvers[0].Kinds, o.Prompts = []string{kinds}, PromptsAllow })
		if got := b.outcome(open); got != want {
			t.Errorf("with approvers for %s, a prompt is %q, want %q", kinds, got, want)
		}
	}
}

// Without rules nothing changes: the operator decides, and so does the client's form.
func TestWithoutApprovers(t *testing.T) {
	b := newBench(t, everywhere)
	q := b.ask(personRun("ada"))
	if !q.Elicit || strings.Contains(q.Form, "may allow") {
		t.Errorf("the question is %+v", q)
	}
	b.refused(q.Code, by(queue.Once, "grace", "sre"), queue.CodeForbidden, "another person's call")
	b.page(q.Code, queue.Once)
	if _, err := b.answer(personRun("ada"), b.Answered(q)); err != nil {
		t.Errorf("Check() = %v", err)
	}
	if e := b.log.last(); e.Approver != "" {
		t.Errorf("the log has the approver %q", e.Approver)
	}
}

// A person who may only answer cannot make calls.
func TestUsers(t *testing.T) {
	b := newBench(t, everywhere, func(o *Options) { o.Users = []approvers.Who{{Kind: approvers.Group, Name: "engineering"}} })
	for _, req := range []call.Request{personRun("ada", "sre"), personRun("engineering"), with(personRun("ada"), func(r *call.Request) { r.Kind, r.Run = call.KindList, nil })} {
		if got := b.outcome(req); !strings.Contains(got, "roles.use does not name them") {
			t.Errorf("a call of %q in %q is %q", req.Caller.Person, req.Caller.Groups, got)
		}
	}
	if got := b.outcome(personRun("ada", "engineering")); got != asks {
		t.Errorf("a call of a user is %q", got)
	}
}
