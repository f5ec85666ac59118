package gate

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// inChat makes a gate ask on cards in the chat only.
func inChat(o *Options) { o.Channels = []string{queue.ChannelApp} }

// cardCall is a call from a client that shows cards and cannot ask.
func cardCall(of call.Request) call.Request {
	return with(of, func(r *call.Request) { r.Caller.CanAsk, r.Caller.Cards = false, true })
}

// leftOnCard asks about a call, which returns at once, as in the server.
func (b *bench) leftOnCard(req call.Request) {
	b.t.Helper()
	q := b.ask(req)
	if !q.InChat || q.Elicit || q.Wait != 0 {
		b.t.Fatalf("the question is asked with InChat %v, Elicit %v, Wait %v, want a card at once", q.InChat, q.Elicit, q.Wait)
	}
	a, err := b.Postpone(q)
	if pending, ok := errors.AsType[*PendingError](err); !ok || !pending.InChat || a != nil {
		b.t.Fatalf("Postpone() = %v, %v, want it to be pending on the card", a, err)
	}
}

// only returns the one question on a chat's card.
func (b *bench) only(c call.Caller) ChatQuestion {
	b.t.Helper()
	all := b.InChat(c)
	if len(all) != 1 {
		b.t.Fatalf("InChat() has %d questions, want one", len(all))
	}
	return all[0]
}

func values(choices []queue.Choice) string {
	var all []string
	for _, c := range choices {
		all = append(all, c.Value)
	}
	return strings.Join(all, " ")
}

func TestInChat(t *testing.T) {
	req := cardCall(toolRun())
	for _, decision := range []string{"once", "deny"} {
		b := newBench(t, inChat, remembers)
		b.leftOnCard(req)
		q := b.only(req.Caller)
		if got := values(q.Choices); got != "once deny" || q.Limit != "" || q.See != "" {
			t.Errorf("the card offers %q, limit %q, see %q, want once and deny alone", got, q.Limit, q.See)
		}
		if !b.DecideInChat(req.Caller, q.Secret, decision) {
			t.Fatalf("DecideInChat(%q) does not count", decision)
		}
		if e := b.log.last(); e.Decision != decision || e.Channel != queue.ChannelApp {
			t.Errorf("the log has %s by %q, want %s by app", e.Decision, e.Channel, decision)
		}
		want := allows
		if decision == "deny" {
			want = "denied: the person denied it at "
		}
		if got := b.outcome(req); !strings.HasPrefix(got, want) {
			t.Errorf("after %q the call has the outcome %q, want %q", decision, got, want)
		}
		// The answer was used, and nothing is kept: this is another question.
		if b.DecideInChat(req.Caller, q.Secret, "once") {
			t.Error("an answer counts twice")
		}
		b.leftOnCard(req)
		if again := b.only(req.Caller); again.Secret == q.Secret {
			t.Error("another question has the same secret")
		}
	}
}

// Nobody is asked on a card unless they chose that and their client cannot ask.
func TestShowsInChat(t *testing.T) {
	shows := call.Caller{Chat: "c", Cards: true}
	asks := call.Caller{Chat: "c", Cards: true, CanAsk: true}
	for _, c := range []struct {
		channels []string
		caller   call.Caller
		want     bool
	}{
		{[]string{queue.ChannelApp}, shows, true},
		{[]string{queue.ChannelElicitation, queue.ChannelPage, queue.ChannelTerminal}, shows, false},
		{nil, shows, false},
		{[]string{queue.ChannelApp}, call.Caller{Chat: "c"}, false},
		{[]string{queue.ChannelElicitation, queue.ChannelApp}, asks, false},
		{[]string{queue.ChannelElicitation, queue.ChannelApp}, shows, true},
		{[]string{queue.ChannelApp}, asks, true},
	} {
		b := newBench(t, func(o *Options) { o.Channels = c.channels })
		if got := b.ShowsInChat(c.caller); got != c.want {
			t.Errorf("ShowsInChat(%+v) with %v = %v, want %v", c.caller, c.channels, got, c.want)
		}
		if !c.want && (b.InChat(c.caller) != nil || b.DecideInChat(c.caller, "x", "once")) {
			t.Errorf("%+v with %v has a card", c.caller, c.channels)
		}
	}
}

// A card cannot allow what only a person may allow: the page or the terminal decides.
func TestCardLimits(t *testing.T) {
	for name, change := range map[string]func(*call.Request){
		"untrusted": func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted },
		"always":    func(r *call.Request) { r.AlwaysAsk = true },
		"network":   func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull },
		"a value":   func(r *call.Request) { r.Fields = []call.Field{{Name: "url", Title: "Address"}} },
		"a rule":    func(r *call.Request) { r.Run.Tool = "asked" },
	} {
		t.Run(name, func(t *testing.T) {
			asked := []rules.Rule{{Effect: rules.Ask, Tool: "triage/asked", Where: "config.yaml:1"}}
			req := cardCall(with(toolRun(), change))
			b := newBench(t, func(o *Options) { o.Channels, o.Rules = []string{queue.ChannelApp, queue.ChannelTerminal}, asked })
			q := b.ask(req)
			if q.InChat || q.Wait == 0 {
				t.Errorf("InChat %v, Wait %v, want it to wait for the terminal", q.InChat, q.Wait)
			}
			shown := b.only(req.Caller)
			if values(shown.Choices) != "deny" || shown.Limit == "" || shown.See != "packs-mcp approvals show "+shown.Code {
				t.Errorf("the card offers %q, limit %q, see %q, want only deny, why, and where else", values(shown.Choices), shown.Limit, shown.See)
			}
			if b.DecideInChat(req.Caller, shown.Secret, "once") {
				t.Error("the card allows it")
			}
			if got := b.goes(req, b.Answered(q)); got != "denied: "+answers.NobodyDecided {
				t.Errorf("outcome = %q, want that nobody decided it", got)
			}
			// Without another channel nobody can be asked at all.
			alone := newBench(t, inChat, func(o *Options) { o.Rules = asked })
			if got := alone.outcome(req); !strings.Contains(got, "the card in the chat cannot allow this") {
				t.Errorf("without another channel: %q", got)
			}
		})
	}
}

// What a card allows holds for one call, even where "once" means more elsewhere.
func TestCardKeepsNothing(t *testing.T) {
	b := newBench(t, inChat, remembers, func(o *Options) { o.Policy = policy.FirstRun })
	req := cardCall(with(toolRun(), func(r *call.Request) { r.Run.ReadOnly = true }))
	for range 2 {
		b.leftOnCard(req)
		q := b.only(req.Caller)
		if q.Choices[0].Lasts || strings.Contains(q.Choices[0].Title, "From now on") {
			t.Errorf("the card offers %+v, want what holds once", q.Choices[0])
		}
		if !b.DecideInChat(req.Caller, q.Secret, "once") {
			t.Fatal("it does not count")
		}
		if got := b.outcome(req); got != allows {
			t.Fatal(got)
		}
	}
	for _, word := range []string{"chat", "always", "ONCE", "", "yes"} {
		b.leftOnCard(req)
		if b.DecideInChat(req.Caller, b.only(req.Caller).Secret, word) {
			t.Errorf("%q counts", word)
		}
		if got := b.outcome(req); got != "denied: "+answers.NobodyDecided {
			t.Errorf("after %q: %q, want it denied", word, got)
		}
	}
	if grants, err := b.book.Store.Load(); len(grants) > 0 || err != nil || len(b.ChatGrants()) > 0 {
		t.Errorf("kept: %v, %v, %v", grants, err, b.ChatGrants())
	}
}

// A model that answers by itself does not know the secret. Its answer denies what
// waits, and after the third there are no more cards.
func TestWrongSecret(t *testing.T) {
	req := cardCall(toolRun())
	open := cardCall(openCall())
	b := newBench(t, inChat)
	for n, forge := range []func(ChatQuestion) string{
		func(q ChatQuestion) string { return q.Code }, // this the model knows
		func(q ChatQuestion) string { return q.Secret[:len(q.Secret)-1] },
		func(ChatQuestion) string { return "" },
	} {
		b.leftOnCard(req)
		b.leftOnCard(open)
		all := b.InChat(req.Caller)
		if len(all) != 2 {
			t.Fatalf("InChat() has %d questions, want 2", len(all))
		}
		before := len(b.log.all())
		if b.DecideInChat(req.Caller, forge(all[0]), "once") {
			t.Fatal("a wrong secret counts")
		}
		var kinds []string
		for _, e := range b.log.all()[before:] {
			kinds = append(kinds, string(e.Event)+" "+e.Decision+" "+e.Channel)
			if !strings.Contains(e.Reason, "wrong code") {
				t.Errorf("the log says %q, want why", e.Reason)
			}
		}
		if want := []string{"refusal  ", "decision deny app", "decision deny app"}; !slices.Equal(kinds, want) {
			t.Errorf("the log has %q, want %q", kinds, want)
		}
		if shows := b.ShowsInChat(req.Caller); shows != (n < maxWrong-1) {
			t.Errorf("after %d wrong answers there are cards: %v", n+1, shows)
		}
		for _, r := range []call.Request{req, open} {
			if got := b.outcome(r); got != "denied: "+answers.NobodyDecided {
				t.Errorf("outcome = %q, want that nobody decided it", got)
			}
		}
	}
	if got := b.outcome(req); !strings.Contains(got, "nobody could be asked") {
		t.Errorf("without cards: %q", got)
	}
	// Another chat is not affected, and a new one starts again.
	other := cardCall(with(toolRun(), func(r *call.Request) { r.Caller.Chat = "stdio-2" }))
	b.leftOnCard(other)
	b.EndChat(req.Caller.Chat)
	b.leftOnCard(req)
	// A secret is only valid in its own chat.
	if b.DecideInChat(other.Caller, b.only(req.Caller).Secret, "once") {
		t.Error("the secret of another chat counts")
	}
	if got := b.outcome(other); got != "denied: "+answers.NobodyDecided {
		t.Errorf("outcome = %q, want it denied", got)
	}
	if !b.DecideInChat(req.Caller, b.only(req.Caller).Secret, "once") {
		t.Error("the answer to another chat's question does not count any more")
	}
}

// A wrong answer takes back what was allowed but not used yet.
func TestWrongSecretTakesBack(t *testing.T) {
	req := cardCall(toolRun())
	b := newBench(t, inChat)
	b.leftOnCard(req)
	if !b.DecideInChat(req.Caller, b.only(req.Caller).Secret, "once") {
		t.Fatal("it does not count")
	}
	b.DecideInChat(req.Caller, "guess", "once")
	if got := b.outcome(req); got != "denied: "+answers.NobodyDecided {
		t.Errorf("outcome = %q, want it denied", got)
	}
}

// Two tabs show the same question: the first answer counts, and a denial takes it
// back as long as it has not been used.
func TestTwoTabs(t *testing.T) {
	req := cardCall(toolRun())
	b := newBench(t, inChat)
	b.leftOnCard(req)
	one, two := b.only(req.Caller), b.only(req.Caller)
	if one.Secret != two.Secret {
		t.Error("a card that is shown again has another secret: the first one would be a wrong answer")
	}
	if !b.DecideInChat(req.Caller, one.Secret, "once") || b.DecideInChat(req.Caller, two.Secret, "once") {
		t.Error("want the first answer to count, and the second not")
	}
	if !b.DecideInChat(req.Caller, two.Secret, "deny") {
		t.Error("a denial does not count")
	}
	if got := b.outcome(req); !strings.HasPrefix(got, "denied: the person denied it") {
		t.Errorf("outcome = %q, want it denied", got)
	}
	if !b.ShowsInChat(req.Caller) {
		t.Error("late answers of the card count as wrong ones")
	}

	// If both come at the same time, one of them counts.
	b.leftOnCard(req)
	secret := b.only(req.Caller).Secret
	var wg sync.WaitGroup
	counted := make(chan bool, 20)
	for range cap(counted) {
		wg.Go(func() { counted <- b.DecideInChat(req.Caller, secret, "once") })
	}
	wg.Wait()
	close(counted)
	n := 0
	for yes := range counted {
		if yes {
			n++
		}
	}
	if n != 1 || b.outcome(req) != allows || b.outcome(req) != asks {
		t.Errorf("%d answers count, want one, for one call", n)
	}
}

// An answer that comes too late has no effect, and does not count as a wrong one.
func TestCardExpires(t *testing.T) {
	req := cardCall(toolRun())
	b := newBench(t, inChat)
	b.leftOnCard(req)
	secret := b.only(req.Caller).Secret
	b.pass(10*time.Minute + time.Second)
	if b.DecideInChat(req.Caller, secret, "once") || b.InChat(req.Caller) != nil {
		t.Error("an answer after its time counts")
	}
	if !b.ShowsInChat(req.Caller) {
		t.Error("an old answer closed the cards")
	}
}

// A model that calls again and again, and never waits, does not make the log grow.
func TestCardsFillNoLog(t *testing.T) {
	req := cardCall(toolRun())
	b := newBench(t, inChat)
	for range linesOfChat + 50 {
		b.leftOnCard(req)
	}
	if n := len(b.log.all()); n != linesOfChat {
		t.Errorf("%d lines for calls that returned at once, want %d", n, linesOfChat)
	}
	b.Close()
	if e := b.log.last(); e.Count != 50 || !strings.Contains(e.Reason, "approval_pending 50") {
		t.Errorf("last line = %+v, want the others counted", e)
	}
}

// If the log cannot be written, nothing is allowed.
func TestCardUnrecorded(t *testing.T) {
	req := cardCall(toolRun())
	b := newBench(t, inChat)
	b.leftOnCard(req)
	b.log.fail = func(audit.Entry) error { return errors.New("disk full") }
	if b.DecideInChat(req.Caller, b.only(req.Caller).Secret, "once") {
		t.Error("an answer counts that is in no log")
	}
	b.log.fail = nil
	if got := b.outcome(req); got != asks {
		t.Errorf("outcome = %q, want another question", got)
	}
}
