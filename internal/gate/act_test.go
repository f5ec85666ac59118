package gate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// actCall is a call that a person makes by choosing a prompt in the client.
func actCall(kind call.Kind) call.Request {
	r := openCall()
	r.Kind, r.Method, r.Caller.Act, r.Caller.Origin = kind, "prompts/get", true, call.OriginClient
	return r
}

// If the client's word is enough, nobody is asked, whatever the client can do, and
// the log has it as the client's word on disk before anything goes on.
func TestActs(t *testing.T) {
	far := func(r *call.Request) { r.Caller.Origin = call.OriginNetwork }
	allow := func(o *Options) { o.Prompts = PromptsAllow }
	for name, c := range map[string]struct {
		req    call.Request
		option func(*Options)
	}{
		"open":                       {actCall(call.KindOpen), nil},
		"open, client cannot ask":    {with(actCall(call.KindOpen), func(r *call.Request) { r.Caller.CanAsk = false }), nil},
		"open, over HTTP, allowed":   {with(actCall(call.KindOpen), far), allow},
		"attach":                     {actCall(call.KindAttach), nil},
		"attach, over HTTP, allowed": {with(actCall(call.KindAttach), far), allow},
		"attach, a rule about open":  {with(actCall(call.KindAttach), func(r *call.Request) { r.Pack.ID = "closed" }), nil},
		"detach":                     {actCall(call.KindDetach), nil},
		"detach what is not there":   {with(actCall(call.KindDetach), func(r *call.Request) { r.Pack = call.Pack{ID: "triage"} }), nil},
		"detach, with a deny rule":   {with(actCall(call.KindDetach), func(r *call.Request) { r.Pack.ID = "denied" }), nil},
		"detach, with an ask rule":   {with(actCall(call.KindDetach), func(r *call.Request) { r.Pack.ID = "asked" }), nil},
		"detach, over HTTP":          {with(actCall(call.KindDetach), far), nil},
		"detach, prompts ask":        {actCall(call.KindDetach), func(o *Options) { o.Prompts = PromptsAsk }},
		"detach what is not trusted": {with(actCall(call.KindDetach), func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			options := []func(*Options){actRules}
			if c.option != nil {
				options = append(options, c.option)
			}
			b := newBench(t, options...)
			if got := b.outcome(c.req); got != allows {
				t.Fatalf("Check() = %s, want %s", got, allows)
			}
			e := b.log.last()
			if e.Decision != "once" || e.Channel != queue.ChannelPrompt || e.Reason != "the client says that a person chose it" || e.Kind != string(c.req.Kind) ||
				!b.log.synced[0] || len(b.log.synced) != 1 {
				t.Errorf("the log has %+v, synced %v, want one line of a prompt, on disk", e, b.log.synced)
			}
			// It counts for itself only: it allows no later call.
			later := openCall()
			later.Pack = c.req.Pack
			if c.req.Kind == call.KindOpen {
				if got := b.outcome(with(later, func(r *call.Request) { r.Caller.CanAsk = true })); got != asks {
					t.Errorf("the same without a person's act: %s, want %s", got, asks)
				}
			}
		})
	}
}

// TestActsThatAsk: the client's word is not enough if a person must see, or wants to
// see, more. Then the call is handled like a model's, and so are its answers.
func TestActsThatAsk(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*call.Request)
		option func(*Options)
		says   string // in the question
		once   bool   // an answer can only be for this call
	}{
		"over HTTP":                    {func(r *call.Request) { r.Caller.Origin = call.OriginNetwork }, nil, "a person chose it", false},
		"over HTTP, from here":         {func(r *call.Request) { r.Caller.Origin = call.OriginMachine }, nil, "a person chose it", false},
		"over HTTP, by a named person": {func(r *call.Request) { r.Caller.Origin, r.Caller.Person = call.OriginNetwork, "ada" }, nil, `"ada"`, false},
		"prompts ask":                  {nil, func(o *Options) { o.Prompts = PromptsAsk }, "a person chose it", false},
		"a rule asks":                  {func(r *call.Request) { r.Pack.ID = "asked" }, nil, "a person chose it", true},
		"what is not trusted":          {func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted }, nil, "CAUTION: not trusted", true},
		"what nobody vouched for":      {func(r *call.Request) { r.Pack.Trust = "" }, nil, "CAUTION: not trusted", true},
		"what always asks":             {func(r *call.Request) { r.AlwaysAsk = true }, nil, "a person chose it", true},
		"hidden characters":            {func(r *call.Request) { r.Hidden = "3 invisible characters" }, nil, "CAUTION      the text has 3 invisible characters", false},
	} {
		for _, kind := range []call.Kind{call.KindOpen, call.KindAttach} {
			for _, mode := range []string{PromptsAuto, PromptsAllow} {
				if mode == PromptsAllow && (c.option != nil || strings.HasPrefix(name, "over HTTP")) {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, %s", name, kind, mode), func(t *testing.T) {
					b := newBench(t, actRules, everywhere, remembers, func(o *Options) { o.Prompts = mode }, func(o *Options) {
						if c.option != nil {
							c.option(o)
						}
					})
					req := actCall(kind)
					if c.change != nil {
						c.change(&req)
					}
					q := b.ask(req)
					for _, want := range []string{c.says, "the client says that a person chose it"} {
						if !strings.Contains(textOf(q), want) {
							t.Errorf("the question is\n%s\nwant %q in it", textOf(q), want)
						}
					}
					offered := 4
					if c.once || kind == call.KindAttach {
						offered = 2
					}
					if len(q.Choices) != offered {
						t.Errorf("%d answers are offered, want %d: %v", len(q.Choices), offered, q.Choices)
					}
					if _, err := b.answer(req, accept(q.State, "once")); err != nil {
						t.Errorf("the answer once: %v", err)
					}
					if e := b.log.last(); e.Channel != queue.ChannelElicitation || e.Decision != "once" || strings.Contains(e.Reason, "chose") {
						t.Errorf("the log has %+v, want a person's answer", e)
					}
					_, err := b.answer(req, accept(b.ask(req).State, "deny"))
					b.denied(err, "chose to deny")
				})
			}
		}
	}
	t.Run("an answer for the chat holds for both", func(t *testing.T) {
		b := newBench(t)
		far := with(actCall(call.KindOpen), func(r *call.Request) { r.Caller.Origin = call.OriginMachine })
		b.approve(far, queue.Chat)
		model := with(openCall(), func(r *call.Request) { r.Caller.Origin = call.OriginMachine })
		if got := b.outcome(far) + ", " + b.outcome(model); got != allows+", "+allows {
			t.Errorf("the prompt and the model's call: %s", got)
		}
	})
	t.Run("a rule allows", func(t *testing.T) {
		b := newBench(t, func(o *Options) {
			o.Rules = []rules.Rule{{Effect: rules.Allow, Kinds: []string{"open", "attach"}, Where: "config.yaml:1"}}
		})
		for _, kind := range []call.Kind{call.KindOpen, call.KindAttach} {
			far := with(actCall(kind), func(r *call.Request) { r.Caller.Origin = call.OriginNetwork })
			if got := b.outcome(far); got != allows || b.log.last().Channel != queue.ChannelRule {
				t.Errorf("%s: %s by %s, want it allowed by the rule", kind, got, b.log.last().Channel)
			}
			far.Pack.Trust = call.TrustUntrusted
			if got := b.outcome(far); got != asks {
				t.Errorf("%s of what is not trusted: %s, want %s", kind, got, asks)
			}
		}
	})
	t.Run("an unknown word", func(t *testing.T) {
		if _, err := New(Options{Runner: new(runner), Log: new(recorder), Prompts: "yes"}); err == nil {
			t.Error("New() takes an unknown word for prompts")
		}
	})
}

func TestActsThatAreDenied(t *testing.T) {
	for name, c := range map[string]struct {
		req    call.Request
		answer *answers.Answer
		reason string
	}{
		"a rule about open":        {with(actCall(call.KindOpen), func(r *call.Request) { r.Pack.ID = "closed" }), nil, "rule"},
		"a rule about a pack":      {with(actCall(call.KindAttach), func(r *call.Request) { r.Pack.ID = "denied" }), nil, "rule"},
		"a run":                    {with(toolRun(), func(r *call.Request) { r.Caller.Act = true }), nil, "cannot be made"},
		"reading":                  {with(readCall(), func(r *call.Request) { r.Caller.Act = true }), nil, "cannot be made"},
		"enabling":                 {with(enableCall(), func(r *call.Request) { r.Caller.Act = true }), nil, "cannot be made"},
		"metadata":                 {with(listCall(), func(r *call.Request) { r.Caller.Act = true }), nil, "cannot be made"},
		"attaching by a model":     {with(actCall(call.KindAttach), func(r *call.Request) { r.Caller.Act = false }), nil, "cannot be made"},
		"detaching by a model":     {with(actCall(call.KindDetach), func(r *call.Request) { r.Caller.Act = false }), nil, "cannot be made"},
		"a pack without a digest":  {with(actCall(call.KindAttach), func(r *call.Request) { r.Pack.Digest = "" }), nil, "incomplete"},
		"a pack without a folder":  {with(actCall(call.KindAttach), func(r *call.Request) { r.Pack.Dir = "" }), nil, "incomplete"},
		"detaching nothing":        {with(actCall(call.KindDetach), func(r *call.Request) { r.Pack = call.Pack{} }), nil, "incomplete"},
		"an answer nobody asked":   {actCall(call.KindOpen), accept("", "once"), "nobody asked"},
		"an answer, to attaching":  {actCall(call.KindAttach), accept("x.y", "chat"), ""},
		"an answer, to detaching":  {actCall(call.KindDetach), accept("x.y", "chat"), ""},
		"a chat that is not there": {with(actCall(call.KindOpen), func(r *call.Request) { r.Caller.Chat = "" }), nil, "no chat"},
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
		if permit, q, err := b.Check(t.Context(), actCall(call.KindOpen), nil); permit != nil || q != nil || err == nil {
			t.Errorf("Check() = %v, %v, %v, want a denial", permit, q, err)
		}
	})
	t.Run("a file of grants that is refused", func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Grants = &memory{err: errDisk} })
		_, _, err := b.Check(t.Context(), actCall(call.KindOpen), nil)
		b.denied(err, "cannot be trusted")
	})
}

// An answer to a question about a model's call does not count for a person's act, and
// the reverse.
func TestActIsBound(t *testing.T) {
	b := newBench(t)
	q := b.ask(openCall())
	_, err := b.answer(with(openCall(), func(r *call.Request) { r.Caller.Act = true }), accept(q.State, "once"))
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
