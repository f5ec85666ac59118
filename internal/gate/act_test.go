package gate

import (
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// actCall is what a person does with a prompt of the client.
func actCall(kind Kind) Request {
	r := openCall()
	r.Kind, r.Method, r.Caller.Act = kind, "prompts/get", true
	return r
}

// What a person does by their own hand is not asked about, whatever the client
// can do, and is on disk before anything goes on.
func TestActs(t *testing.T) {
	for name, req := range map[string]Request{
		"open":                      actCall(KindOpen),
		"open, client cannot ask":   with(actCall(KindOpen), func(r *Request) { r.Caller.CanAsk = false }),
		"open what is not trusted":  with(actCall(KindOpen), func(r *Request) { r.Pack.Trust = TrustUntrusted }),
		"open what always asks":     with(actCall(KindOpen), func(r *Request) { r.AlwaysAsk = true }),
		"attach":                    actCall(KindAttach),
		"detach":                    actCall(KindDetach),
		"detach what is not there":  with(actCall(KindDetach), func(r *Request) { r.Pack = Pack{ID: "triage"} }),
		"open, with an ask rule":    with(actCall(KindOpen), func(r *Request) { r.Pack.ID = "asked" }),
		"detach, with a deny rule":  with(actCall(KindDetach), func(r *Request) { r.Pack.ID = "denied" }),
		"attach, a rule about open": with(actCall(KindAttach), func(r *Request) { r.Pack.ID = "closed" }),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, actRules)
			if got := b.outcome(req); got != allows {
				t.Fatalf("Check() = %s, want %s", got, allows)
			}
			e := b.log.last()
			if e.Decision != "once" || e.Channel != ChannelPrompt || e.Kind != string(req.Kind) || !b.log.synced[0] || len(b.log.synced) != 1 {
				t.Errorf("the log has %+v, synced %v, want one line of a prompt, on disk", e, b.log.synced)
			}
			// It stands for itself: no later call is allowed by it.
			later := openCall()
			later.Pack = req.Pack
			if req.Kind == KindOpen {
				if got := b.outcome(with(later, func(r *Request) { r.Caller.CanAsk = true })); got != asks {
					t.Errorf("the same without a person's act: %s, want %s", got, asks)
				}
			}
		})
	}
}

func TestActsThatAreDenied(t *testing.T) {
	for name, c := range map[string]struct {
		req    Request
		answer *Answer
		reason string
	}{
		"a rule about open":        {with(actCall(KindOpen), func(r *Request) { r.Pack.ID = "closed" }), nil, "rule"},
		"a rule about a pack":      {with(actCall(KindAttach), func(r *Request) { r.Pack.ID = "denied" }), nil, "rule"},
		"a run":                    {with(toolRun(), func(r *Request) { r.Caller.Act = true }), nil, "cannot come about"},
		"reading":                  {with(readCall(), func(r *Request) { r.Caller.Act = true }), nil, "cannot come about"},
		"enabling":                 {with(enableCall(), func(r *Request) { r.Caller.Act = true }), nil, "cannot come about"},
		"metadata":                 {with(listCall(), func(r *Request) { r.Caller.Act = true }), nil, "cannot come about"},
		"attaching by a model":     {with(actCall(KindAttach), func(r *Request) { r.Caller.Act = false }), nil, "cannot come about"},
		"detaching by a model":     {with(actCall(KindDetach), func(r *Request) { r.Caller.Act = false }), nil, "cannot come about"},
		"a pack without a digest":  {with(actCall(KindAttach), func(r *Request) { r.Pack.Digest = "" }), nil, "incomplete"},
		"a pack without a folder":  {with(actCall(KindAttach), func(r *Request) { r.Pack.Dir = "" }), nil, "incomplete"},
		"detaching nothing":        {with(actCall(KindDetach), func(r *Request) { r.Pack = Pack{} }), nil, "incomplete"},
		"an answer nobody asked":   {actCall(KindOpen), accept("", "once"), "nobody asked"},
		"an answer, to attaching":  {actCall(KindAttach), accept("x.y", "chat"), ""},
		"an answer, to detaching":  {actCall(KindDetach), accept("x.y", "chat"), ""},
		"a chat that is not there": {with(actCall(KindOpen), func(r *Request) { r.Caller.Chat = "" }), nil, "no chat"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, actRules)
			permit, q, err := b.Check(t.Context(), c.req, c.answer)
			if permit != nil || q != nil {
				t.Fatalf("Check() = %v, %v, want a denial", permit, q)
			}
			b.denied(err, c.reason)
		})
	}
	t.Run("a log that cannot be written", func(t *testing.T) {
		b := newBench(t)
		b.log.fail = func(audit.Entry) error { return errDisk }
		if permit, q, err := b.Check(t.Context(), actCall(KindOpen), nil); permit != nil || q != nil || err == nil {
			t.Errorf("Check() = %v, %v, %v, want a denial", permit, q, err)
		}
	})
	t.Run("a file of grants that is refused", func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Grants = &memory{err: errDisk} })
		_, _, err := b.Check(t.Context(), actCall(KindOpen), nil)
		b.denied(err, "cannot be trusted")
	})
}

// An answer to a question about a model's call is worth nothing for a person's
// act, and the other way round.
func TestActIsBound(t *testing.T) {
	b := newBench(t)
	q := b.ask(openCall())
	_, err := b.answer(with(openCall(), func(r *Request) { r.Caller.Act = true }), accept(q.State, "once"))
	if err == nil {
		t.Error("an answer about another call allowed an act")
	}
}

func actRules(o *Options) {
	o.Rules = []rules.Rule{
		{Effect: rules.Deny, Pack: "closed", Kinds: []string{"open"}, Where: "config.yaml:1"},
		{Effect: rules.Deny, Pack: "denied", Where: "config.yaml:2"},
		{Effect: rules.Ask, Pack: "asked", Where: "config.yaml:3"},
	}
}
