package gate

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// goes makes the second call of a request with an answer, and returns whether it is
// allowed.
func (b *bench) goes(req call.Request, a *answers.Answer) string {
	b.t.Helper()
	if a == nil {
		b.t.Fatal("there is no answer to go on with")
	}
	if _, err := b.answer(req, a); err != nil {
		return err.Error()
	}
	return allows
}

// decline returns the answer of a person who declines.
func (b *bench) decline(q *Question) *answers.Answer {
	b.pass(personTime)
	return answers.FromForm(q.State, "decline", nil)
}

func TestAnsweredElsewhere(t *testing.T) {
	for _, c := range []struct {
		channel string
		note    string
	}{{queue.ChannelPage, ""}, {queue.ChannelTerminal, "as user ada, started by bash"}} {
		t.Run(c.channel, func(t *testing.T) {
			b := newBench(t, outside)
			q := b.ask(with(toolRun(), func(r *call.Request) { r.Caller.CanAsk = false }))
			if q.Elicit {
				t.Error("the client is to ask, which cannot")
			}
			select {
			case <-q.Decided:
				t.Fatal("Decided is closed before anybody answered")
			default:
			}
			if a := b.Answered(q); a != nil {
				t.Fatalf("Answered() = %+v before anybody answered", a)
			}
			shown, err := b.Decide(q.Code, queue.Verdict{Decision: queue.Once, Channel: c.channel, Note: c.note})
			if err != nil || shown.Waits.IsZero() || shown.Answered != queue.Once {
				t.Fatalf("Decide() = %+v, %v, want a call that waits", shown, err)
			}
			select {
			case <-q.Decided:
			default:
				t.Error("Decided is open after somebody answered")
			}
			b.has(0) // the call records the decision when it applies it
			permit, err := b.answer(with(toolRun(), func(r *call.Request) { r.Caller.CanAsk = false }), b.Answered(q))
			if err != nil {
				t.Fatal(err)
			}
			b.has(0, "once "+c.channel)
			if got := b.log.last().Reason; got != c.note {
				t.Errorf("reason = %q, want %q", got, c.note)
			}
			if _, err := permit.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if b.Answered(q) != nil || len(b.codes()) != 0 {
				t.Error("the question is still there")
			}
			if got := b.outcome(toolRun()); got != asks {
				t.Errorf("the next call: %s, want %s", got, asks)
			}
		})
	}
}

// TestTwoAnswers: the first answer counts, a denial anywhere wins, and what has
// happened cannot be undone.
func TestTwoAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		pages  []queue.Decision // the answers on the page, in this order, before the call continues
		client string           // the answer with which the call continues; empty: the page's
		want   string
		lines  []string
		always bool // a grant remains
	}{
		{"the form alone", nil, "once", allows, []string{"once elicitation"}, false},
		{"the page alone", []queue.Decision{queue.Once}, "", allows, []string{"once page"}, false},
		{"the page, then the form says more", []queue.Decision{queue.Once}, "always", allows, []string{"once page"}, false},
		{"the page says more, then the form", []queue.Decision{queue.Always}, "once", allows, []string{"always page"}, true},
		{"the page allows, the form denies", []queue.Decision{queue.Always}, "deny", "chose to deny", []string{"deny elicitation"}, false},
		{"the page allows, the form is declined", []queue.Decision{queue.Always}, "decline", "declined", []string{"deny elicitation"}, false},
		{"the page denies, the form allows", []queue.Decision{queue.Deny}, "always", "chose to deny", []string{"deny page"}, false},
		{"the page denies, the form is declined", []queue.Decision{queue.Deny}, "decline", "chose to deny", []string{"deny page"}, false},
		{"the page allows and takes it back", []queue.Decision{queue.Always, queue.Deny}, "", "chose to deny", []string{"deny page"}, false},
		{"the same, and the form allows", []queue.Decision{queue.Once, queue.Deny}, "once", "chose to deny", []string{"deny page"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := new(memory)
			b := newBench(t, everywhere, func(o *Options) { o.Grants = store })
			q := b.ask(toolRun())
			for _, d := range c.pages {
				b.page(q.Code, d)
			}
			var a *answers.Answer
			switch c.client {
			case "":
				a = b.Answered(q)
			case "decline":
				a = b.decline(q)
			default:
				a = accept(q.State, c.client)
			}
			if got := b.goes(toolRun(), a); !strings.Contains(got, c.want) {
				t.Errorf("the call: %s, want %s", got, c.want)
			}
			b.has(0, c.lines...)
			if left := len(store.grants) == 1; left != c.always {
				t.Errorf("grants = %+v, want one: %v", store.grants, c.always)
			}
			// From here on nothing can change any more.
			b.refused(q.Code, says(queue.Deny), queue.CodeAnswered, "answered before")
			if got := b.goes(toolRun(), accept(q.State, "once")); !strings.Contains(got, "used before") {
				t.Errorf("the state once more: %s", got)
			}
		})
	}
}

// AP-06: twenty calls of one command at once are one question, and an answer on the
// page allows one of them.
func TestOneCallTwentyTimes(t *testing.T) {
	b := newBench(t, outside)
	questions := make(chan *Question, 20)
	var wg sync.WaitGroup
	for range cap(questions) {
		wg.Go(func() {
			_, q, err := b.Check(t.Context(), toolRun(), nil)
			if err != nil && !errors.Is(err, ErrDenied) {
				t.Errorf("Check() = %v", err)
			}
			if q != nil {
				questions <- q
			}
		})
	}
	wg.Wait()
	close(questions)
	codes := b.codes()
	if len(codes) != 1 {
		t.Fatalf("%d calls are pending, want 1", len(codes))
	}
	b.page(codes[0], queue.Once)
	allowed := 0
	for q := range questions {
		a := b.Answered(q)
		if a == nil { // another call has taken its question
			<-q.Taken
			_, err := b.Postpone(q)
			if p, ok := errors.AsType[*PendingError](err); !ok || p.Code != codes[0] || !strings.Contains(p.Hint, "made again") {
				t.Errorf("Postpone() = %v, want that another call waits", err)
			}
			continue
		}
		permit, _, err := b.Check(t.Context(), toolRun(), a)
		if err != nil {
			t.Errorf("Check() = %v", err)
			continue
		}
		allowed++
		_, _ = permit.Run(t.Context())
	}
	if n := b.runner.count(); allowed != 1 || n != 1 {
		t.Errorf("%d permits and %d runs, want one", allowed, n)
	}
}

// Twenty calls at once are twenty questions, and each answer on the page allows one.
func TestTwentyCallsOnThePage(t *testing.T) {
	b := newBench(t, outside)
	questions := make([]*Question, 20)
	var wg sync.WaitGroup
	for i := range questions {
		wg.Go(func() {
			_, q, err := b.Check(t.Context(), numbered(i), nil)
			if err != nil {
				t.Errorf("Check() = %v", err)
			}
			questions[i] = q
		})
	}
	wg.Wait()
	if n := len(b.codes()); n != 20 || t.Failed() {
		t.Fatalf("%d calls are pending, want 20", n)
	}
	for i, q := range questions {
		wg.Go(func() {
			d := []queue.Decision{queue.Once, queue.Deny}[i%2]
			if _, err := b.Decide(q.Code, says(d)); err != nil {
				t.Errorf("Decide() = %v", err)
				return
			}
			permit, _, err := b.Check(t.Context(), numbered(i), b.Answered(q))
			if (err == nil) != (d == queue.Once) {
				t.Errorf("after %s: Check() = %v", d, err)
			}
			if permit != nil {
				_, _ = permit.Run(t.Context())
			}
		})
	}
	wg.Wait()
	if n := b.runner.count(); n != 10 {
		t.Errorf("%d runs, want 10", n)
	}
	if n := len(b.codes()); n != 0 {
		t.Errorf("%d calls are still pending", n)
	}
	decisions := make(map[string]int)
	for _, e := range b.log.all() {
		if e.Event == audit.EventDecision {
			decisions[e.Decision]++
		}
	}
	if decisions["once"] != 10 || decisions["deny"] != 10 || len(decisions) != 2 {
		t.Errorf("decisions = %v, want 10 of each", decisions)
	}
}

// TestPendingCall: a call that nobody answered returns, and the answer then holds for
// the same call, once.
func TestPendingCall(t *testing.T) {
	b := newBench(t, everywhere)
	p := b.postpone(b.ask(toolRun()))
	if want := b.time.Add(10 * time.Minute); !p.Expires.Equal(want) || !errors.Is(p, ErrDenied) {
		t.Errorf("Postpone() = %+v, want a denial for now, until %v", p, want)
	}
	for _, words := range []string{p.Code, "same call again", "Tell the user"} {
		if !strings.Contains(p.Error()+p.Hint, words) {
			t.Errorf("Postpone() = %q, %q, want %q in it", p.Error(), p.Hint, words)
		}
	}
	b.has(0, "pending")
	b.pass(time.Minute)
	shown := b.page(p.Code, queue.Once)
	if !shown.Waits.IsZero() || !shown.Expires.Equal(b.time.Add(10*time.Minute)) {
		t.Errorf("Decide() = %+v, want an answer that holds for ten minutes", shown)
	}
	b.has(0, "pending", "once page")
	if got := b.log.last().Reason; !strings.Contains(got, "it is allowed when it is made again before") {
		t.Errorf("reason = %q", got)
	}
	b.pass(9 * time.Minute)
	permit, q, err := b.Check(t.Context(), toolRun(), nil)
	if permit == nil || q != nil || err != nil {
		t.Fatalf("the call made again = %v, %v, %v, want a permit", permit, q, err)
	}
	b.has(0, "pending", "once page", "once page")
	if e := b.log.last(); e.Run != permit.RunID() || !strings.Contains(e.Reason, "before the call was made again") {
		t.Errorf("last line = %+v", e)
	}
	if got := b.outcome(toolRun()); got != asks {
		t.Errorf("a second retry: %s, want %s", got, asks)
	}
}

// Any other call is another question, and does not use up the answer.
func TestHeldForTheSameCall(t *testing.T) {
	for name, change := range map[string]func(*call.Request){
		"other arguments":             func(r *call.Request) { r.Run.Command.Args = []string{"Eve"} },
		"a changed pack (RP-01)":      func(r *call.Request) { r.Pack.Digest = "ff" },
		"another chat (AP-07)":        func(r *call.Request) { r.Caller.Chat = "stdio-2" },
		"another person":              func(r *call.Request) { r.Caller.Person = "grace" },
		"another value of a variable": func(r *call.Request) { r.Run.Command.Env[1] = "MODE=rude" },
		"other bytes of the program":  func(r *call.Request) { r.Run.Command.Program.Digest = "ff" },
		"less trust":                  func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted },
		"more network":                func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everywhere)
			b.page(b.left(toolRun()), queue.Once)
			if got := b.outcome(with(toolRun(), change)); got != asks {
				t.Errorf("%s: %s, want %s", name, got, asks)
			}
			if got := b.outcome(toolRun()); got != allows {
				t.Errorf("then the very call: %s, want %s", got, allows)
			}
		})
	}
	t.Run("another sandbox level", func(t *testing.T) {
		b := newBench(t, everywhere)
		b.page(b.left(toolRun()), queue.Once)
		b.runner.setLevel(sandbox.LevelFull)
		if got := b.outcome(toolRun()); got != asks {
			t.Errorf("at another level: %s, want %s", got, asks)
		}
	})
	t.Run("the chat ended", func(t *testing.T) {
		b := newBench(t, everywhere)
		b.page(b.left(toolRun()), queue.Once)
		b.EndChat(toolRun().Caller.Chat)
		if got := b.outcome(toolRun()); got != asks {
			t.Errorf("in the next chat of that id: %s, want %s", got, asks)
		}
	})
	t.Run("another client of the chat", func(t *testing.T) {
		b := newBench(t, everywhere)
		b.page(b.left(toolRun()), queue.Once)
		req := with(toolRun(), func(r *call.Request) { r.Caller.Call, r.Caller.CanAsk, r.Caller.Carries = "call-9", false, true })
		if got := b.outcome(req); got != allows {
			t.Errorf("the same call, sent differently: %s, want %s", got, allows)
		}
	})
}

// What was left behind expires, decided or not.
func TestLeftCallsExpire(t *testing.T) {
	for _, decided := range []queue.Decision{"nobody", queue.Once, queue.Deny} {
		b := newBench(t, everywhere)
		code := b.left(toolRun())
		if decided != "nobody" {
			b.pass(9 * time.Minute)
			b.page(code, decided)
		}
		b.pass(10 * time.Minute)
		if decided == "nobody" && len(b.codes()) != 1 {
			t.Error("it expired early")
		}
		b.pass(time.Nanosecond)
		if n := len(b.codes()); n != 0 {
			t.Errorf("%s: %d calls are pending after ten minutes", decided, n)
		}
		if got := b.outcome(toolRun()); got != asks {
			t.Errorf("%s: after ten minutes: %s, want %s", decided, got, asks)
		}
		if got := b.codes(); len(got) != 1 || got[0] == code {
			t.Errorf("%s: codes = %q, want another than %q", decided, got, code)
		}
	}
}

// A retry that comes before the answer waits for it, under the same code.
func TestRetryWaits(t *testing.T) {
	b := newBench(t, everywhere)
	code := b.left(toolRun())
	b.pass(time.Minute)
	q := b.ask(toolRun())
	if q.Code != code {
		t.Errorf("the retry has the code %s, want %s", q.Code, code)
	}
	p := b.Gate.Pending()
	if len(p) != 1 || !p[0].Waits.Equal(b.time.Add(45*time.Second)) || !p[0].Expires.Equal(b.time.Add(10*time.Minute)) || !p[0].Asked.Equal(b.time.Add(-time.Minute)) {
		t.Errorf("Pending() = %+v, want one call that waits", p)
	}
	// A third equal call does not take the question away.
	other := b.ask(toolRun())
	if other.Code == code {
		t.Errorf("two calls wait under the code %s", code)
	}
	b.page(code, queue.Once)
	if got := b.goes(toolRun(), b.Answered(q)); got != allows {
		t.Errorf("the retry: %s, want %s", got, allows)
	}
	if b.Answered(other) != nil {
		t.Error("one answer was for two calls")
	}
	b.has(0, "pending", "once page")
}

// Of equal calls that were left behind, one that was answered takes precedence, and a
// denial even more so.
func TestRetryOfSeveral(t *testing.T) {
	for range 10 { // the order of codes is random
		b := newBench(t, everywhere)
		var questions []*Question
		for range 5 {
			questions = append(questions, b.ask(toolRun()))
			b.pass(time.Second)
		}
		for _, q := range questions {
			b.postpone(q)
		}
		b.page(questions[3].Code, queue.Once)
		b.page(questions[4].Code, queue.Deny)
		for i, want := range []string{"the person denied it", allows} {
			if got := b.outcome(toolRun()); !strings.Contains(got, want) {
				t.Fatalf("retry %d: %s, want %s", i+1, got, want)
			}
		}
		for i := range 3 {
			if got, want := b.ask(toolRun()).Code, questions[i].Code; got != want {
				t.Fatalf("an open question is asked again under %s, want the oldest, %s", got, want)
			}
		}
	}
}

func TestDeniedLate(t *testing.T) {
	for name, before := range map[string][]queue.Decision{"at once": nil, "after it was allowed": {queue.Always}, "after it was allowed for the chat": {queue.Chat}} {
		t.Run(name, func(t *testing.T) {
			store := new(memory)
			b := newBench(t, everywhere, func(o *Options) { o.Grants = store })
			code := b.left(toolRun())
			for _, d := range before {
				b.page(code, d)
			}
			shown := b.page(code, queue.Deny)
			if shown.Answered != queue.Deny {
				t.Errorf("Decide() = %+v", shown)
			}
			if n := len(store.grants) + len(b.book.Chats.Of("stdio-1")); n != 0 {
				t.Errorf("%d grants are kept after a denial", n)
			}
			if n := len(b.codes()); n != 0 {
				t.Errorf("%d calls are shown after a denial", n)
			}
			_, _, err := b.Check(t.Context(), toolRun(), nil)
			b.denied(err, "the person denied it at")
			if got := b.outcome(toolRun()); got != asks {
				t.Errorf("a second retry: %s, want %s", got, asks)
			}
			if got := b.lines(0); got[len(got)-2] != "deny page" || got[len(got)-1] != "deny page" || len(got) != 3+len(before) {
				t.Errorf("lines = %q, want the denial and that of the retry at the end", got)
			}
		})
	}
}

// A denial does not take back a grant that existed before.
func TestDenialLeavesOtherGrants(t *testing.T) {
	store := new(memory)
	b := newBench(t, everywhere, func(o *Options) { o.Grants = store })
	b.approve(openCall(), queue.Always)
	b.approve(toolRun(), queue.Chat)
	other := with(toolRun(), func(r *call.Request) { r.Run.Tool = "close" })
	code := b.left(other)
	b.page(code, queue.Always)
	b.page(code, queue.Deny)
	if len(store.grants) != 1 || b.outcome(openCall()) != allows || b.outcome(toolRun()) != allows {
		t.Errorf("grants = %+v, want those of other answers", store.grants)
	}
}

// TestAnsweredLateForMore: "for this chat" and "always" hold at once, even before the
// call is made again.
func TestAnsweredLateForMore(t *testing.T) {
	for _, d := range []queue.Decision{queue.Chat, queue.Always} {
		store := new(memory)
		b := newBench(t, everywhere, func(o *Options) { o.Grants = store })
		b.page(b.left(toolRun()), d)
		b.has(0, "pending", d.String()+" page")
		grant := b.log.last().Grant
		if grant == "" {
			t.Errorf("%s: the line of the answer names no grant", d)
		}
		like := with(toolRun(), func(r *call.Request) { r.Run.Command.Args = []string{"Bob"} })
		if got := b.outcome(like); got != allows {
			t.Errorf("%s: the like of it: %s, want %s", d, got, allows)
		}
		for i := range 3 {
			if got := b.outcome(toolRun()); got != allows {
				t.Errorf("%s, retry %d: %s, want %s", d, i+1, got, allows)
			}
		}
		b.has(2, d.String()+" grant", "once page", d.String()+" grant", d.String()+" grant")
		if b.log.last().Grant != grant {
			t.Errorf("%s: the grant is %q, then %q", d, grant, b.log.last().Grant)
		}
	}
}

// A question that was left behind is not asked again if an answer to another call
// covers it meanwhile.
func TestCoveredMeanwhile(t *testing.T) {
	b := newBench(t, everywhere)
	code := b.left(toolRun())
	b.approve(with(toolRun(), func(r *call.Request) { r.Run.Command.Args = []string{"Bob"} }), queue.Chat)
	if got := b.outcome(toolRun()); got != allows {
		t.Errorf("the retry: %s, want %s", got, allows)
	}
	b.refused(code, says(queue.Deny), queue.CodeWithdrawn, "an answer to another call covers it")
	// A denial of the exact call takes precedence over what covers it.
	b = newBench(t, everywhere)
	b.page(b.left(toolRun()), queue.Deny)
	b.approve(with(toolRun(), func(r *call.Request) { r.Run.Command.Args = []string{"Bob"} }), queue.Chat)
	_, _, err := b.Check(t.Context(), toolRun(), nil)
	b.denied(err, "the person denied it")
}

// TestClientDeclines: after a garbled answer the question stays open on the other
// channels, but not after a person's choice.
func TestClientDeclines(t *testing.T) {
	for name, c := range map[string]struct {
		answer answers.Answer
		open   bool
	}{
		"declined":         {*answers.FromForm("", "decline", nil), false},
		"cancelled":        {*answers.FromForm("", "cancel", nil), false},
		"malformed":        {*answers.FromForm("", "accept", "once"), true},
		"an unknown value": {*answers.FromForm("", "accept", map[string]any{"decision": "yes"}), true},
		"denied":           {*answers.FromForm("", "accept", map[string]any{"decision": "deny"}), false},
	} {
		for _, req := range []call.Request{toolRun(), carrying(toolRun())} {
			t.Run(fmt.Sprint(name, ", carried ", req.Caller.Carries), func(t *testing.T) {
				b := newBench(t, everywhere)
				q := b.ask(req)
				b.pass(personTime)
				a := c.answer
				a.State, a.Channel = q.State, queue.ChannelElicitation
				_, err := b.answer(req, &a)
				b.denied(err, "")
				b.has(0, "deny elicitation")
				d, ok := errors.AsType[*DeniedError](err)
				if !ok {
					t.Fatalf("Check() = %v, want a denial", err)
				}
				if !c.open {
					if d.Code != "" || len(b.codes()) != 0 {
						t.Errorf("a denial leaves the code %q behind", d.Code)
					}
					b.refused(q.Code, says(queue.Once), queue.CodeAnswered, "denied, in the client")
					return
				}
				if d.Code != q.Code || !strings.Contains(d.Hint, q.Code) {
					t.Errorf("code = %q, hint = %q, want %q in both", d.Code, d.Hint, q.Code)
				}
				if p := b.Gate.Pending(); len(p) != 1 || !strings.Contains(p[0].Note, "of no use") || !p[0].Waits.IsZero() {
					t.Errorf("Pending() = %+v, want the question, and that the answer was garbled", p)
				}
				b.page(d.Code, queue.Once)
				if got := b.outcome(req); got != allows {
					t.Errorf("the call made again: %s, want %s", got, allows)
				}
				b.has(0, "deny elicitation", "once page", "once page")
			})
		}
	}
	t.Run("nowhere else", func(t *testing.T) {
		b := newBench(t)
		_, err := b.answer(toolRun(), b.decline(b.ask(toolRun())))
		if d, ok := errors.AsType[*DeniedError](err); !ok || d.Code != "" || len(b.codes()) != 0 {
			t.Errorf("Check() = %+v, want a denial without a code", err)
		}
	})
	t.Run("when that cannot be recorded", func(t *testing.T) {
		b := newBench(t, everywhere)
		q := b.ask(toolRun())
		b.log.fail = func(audit.Entry) error { return errDisk }
		_, err := b.answer(toolRun(), b.decline(q))
		if d, ok := errors.AsType[*DeniedError](err); !ok || d.Code != "" {
			t.Errorf("Check() = %+v, want the log's failure, and no code", err)
		}
	})
}

// TestCarried: while a client of the newer protocol has the question, it can be
// answered elsewhere, but only once.
func TestCarried(t *testing.T) {
	req := carrying(toolRun())
	for _, c := range []struct {
		name   string
		page   []queue.Decision
		answer string // the client's answer, with the first call's state
		want   string
		grants int
		lines  []string
	}{
		{"the client alone", nil, "once", allows, 0, []string{"once elicitation"}},
		{"the page first", []queue.Decision{queue.Once}, "once", allows, 0, []string{"once page", "once page"}},
		{"the page says more", []queue.Decision{queue.Always}, "once", allows, 1, []string{"always page", "once page"}},
		{"the client says more", []queue.Decision{queue.Once}, "always", allows, 0, []string{"once page", "once page"}},
		{"the page denies", []queue.Decision{queue.Deny}, "always", "the person chose to deny|the person denied it", 0, []string{"deny page", "deny page"}},
		{"the page takes back", []queue.Decision{queue.Always, queue.Deny}, "once", "the person chose to deny|the person denied it", 0, []string{"always page", "deny page", "deny page"}},
		{"the client denies", []queue.Decision{queue.Always}, "deny", "chose to deny", 0, []string{"always page", "deny elicitation"}},
		{"the client declines", []queue.Decision{queue.Chat}, "decline", "declined", 0, []string{"chat page", "deny elicitation"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := new(memory)
			b := newBench(t, everywhere, func(o *Options) { o.Grants = store })
			q := b.ask(req)
			if !q.Elicit {
				t.Error("the client is not to ask")
			}
			for _, d := range c.page {
				b.page(q.Code, d)
			}
			a := accept(q.State, c.answer)
			if c.answer == "decline" {
				a = b.decline(q)
			}
			got, matches := b.goes(req, a), false
			for want := range strings.SplitSeq(c.want, "|") {
				matches = matches || strings.Contains(got, want)
			}
			if !matches {
				t.Errorf("the call: %s, want %s", got, c.want)
			}
			b.has(0, c.lines...)
			if n := len(store.grants) + len(b.book.Chats.Of("stdio-1")); n != c.grants {
				t.Errorf("%d grants are kept, want %d", n, c.grants)
			}
			if c.grants == 0 {
				if got := b.outcome(req); got != asks {
					t.Errorf("the next call: %s, want %s", got, asks)
				}
			}
		})
	}
	// The call is made again, without its state, after the page answered: it gets the
	// answer, and the old state is worthless.
	for _, d := range []queue.Decision{queue.Once, queue.Deny} {
		t.Run("called again after "+d.String(), func(t *testing.T) {
			b := newBench(t, everywhere)
			q := b.ask(req)
			b.page(q.Code, d)
			if got, want := b.outcome(req), map[queue.Decision]string{queue.Once: allows, queue.Deny: "denied: the person denied it at "}[d]; !strings.HasPrefix(got, want) {
				t.Errorf("the call made anew: %s, want %s", got, want)
			}
			_, err := b.answer(req, accept(q.State, "once"))
			b.denied(err, "used before")
		})
	}
	t.Run("made twice", func(t *testing.T) {
		b := newBench(t, everywhere)
		one, two := b.ask(req), b.ask(req)
		b.page(one.Code, queue.Deny)
		for _, q := range []*Question{one, two} {
			a := accept(q.State, "once")
			if got := b.goes(req, a); q == one && got == allows {
				t.Error("a call was allowed under a code that was denied")
			}
		}
		if n := len(b.codes()); n != 0 {
			t.Errorf("%d calls are pending, want none", n)
		}
	})
	// Two equal questions, one answer on the page, no form: one call is allowed.
	t.Run("made three times", func(t *testing.T) {
		b := newBench(t, everywhere)
		b.ask(req)
		q := b.ask(req)
		b.page(q.Code, queue.Once)
		if got := []string{b.outcome(req), b.outcome(req)}; got[0] != allows || got[1] != asks {
			t.Errorf("two calls after one answer: %q", got)
		}
	})
}

// TestPostponeWithoutAQuestion: if the question ended while the call waited, that is
// a denial, and is logged.
func TestPostponeWithoutAQuestion(t *testing.T) {
	for name, end := range map[string]func(*bench, *Question){
		"the chat ended": func(b *bench, _ *Question) { b.EndChat("stdio-1") },
		"it expired":     func(b *bench, _ *Question) { b.pass(11 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everywhere)
			q := b.ask(toolRun())
			end(b, q)
			a, err := b.Postpone(q)
			if a == nil || err != nil {
				t.Fatalf("Postpone() = %v, %v, want an answer that denies", a, err)
			}
			_, err = b.answer(toolRun(), a)
			b.denied(err, "")
			b.has(0, "deny")
		})
	}
	t.Run("answered at the same moment", func(t *testing.T) {
		b := newBench(t, everywhere)
		q := b.ask(toolRun())
		b.page(q.Code, queue.Once)
		a, err := b.Postpone(q)
		if a == nil || err != nil {
			t.Fatalf("Postpone() = %v, %v, want the answer", a, err)
		}
		if got := b.goes(toolRun(), a); got != allows {
			t.Errorf("the call: %s, want %s", got, allows)
		}
		b.has(0, "once page")
	})
	t.Run("elicitation alone", func(t *testing.T) {
		b := newBench(t)
		q := b.ask(toolRun())
		a, err := b.Postpone(q)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.answer(toolRun(), a)
		b.denied(err, "nobody answered within 45s")
		b.has(0, "deny elicitation")
	})
}

// What cannot be recorded does not hold.
func TestLateAnswerThatCannotBeRecorded(t *testing.T) {
	for _, d := range []queue.Decision{queue.Once, queue.Chat, queue.Always, queue.Deny} {
		store := new(memory)
		b := newBench(t, everywhere, func(o *Options) { o.Grants = store })
		code := b.left(toolRun())
		b.log.fail = func(audit.Entry) error { return errDisk }
		if p, err := b.Decide(code, says(d)); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "cannot be written") {
			t.Errorf("Decide(%s) = %+v, %v, want a denial", d, p, err)
		}
		b.log.fail = nil
		if n := len(store.grants) + len(b.book.Chats.Of("stdio-1")); n != 0 {
			t.Errorf("%s: %d grants are kept", d, n)
		}
		b.has(0, "pending")
		if got := b.outcome(toolRun()); got != asks {
			t.Errorf("%s: the call made again: %s, want %s", d, got, asks)
		}
	}
	b := newBench(t, everywhere)
	q := b.ask(toolRun())
	b.log.fail = func(audit.Entry) error { return errDisk }
	a, err := b.Postpone(q)
	if _, pending := errors.AsType[*PendingError](err); a != nil || pending || !errors.Is(err, ErrDenied) {
		t.Errorf("Postpone() = %v, %v, want a denial", a, err)
	}
	b.log.fail = nil
	b.refused(q.Code, says(queue.Once), queue.CodeWithdrawn, "could not be recorded")
}

// A question that ends for any reason disappears everywhere.
func TestEndedQuestionsDisappearEverywhere(t *testing.T) {
	for name, end := range map[string]func(b *bench, q *Question){
		"weak sandbox": func(b *bench, q *Question) {
			b.require = sandbox.LevelFull
			_, _ = b.answer(toolRun(), accept(q.State, "once"))
		},
		"incomplete": func(b *bench, q *Question) {
			_, _ = b.answer(with(toolRun(), func(r *call.Request) { r.Pack.Digest = "" }), accept(q.State, "once"))
		},
		"allowed": func(b *bench, q *Question) { _, _ = b.answer(toolRun(), accept(q.State, "once")) },
		"denied":  func(b *bench, q *Question) { _, _ = b.answer(toolRun(), accept(q.State, "deny")) },
		"log fails": func(b *bench, q *Question) {
			b.log.fail = func(audit.Entry) error { return errDisk }
			_, _ = b.answer(toolRun(), accept(q.State, "once"))
		},
		"refused": func(b *bench, q *Question) { _ = b.Refuse(toolRun(), accept(q.State, "once"), "gone") },
		"changed": func(b *bench, q *Question) {
			_, _ = b.answer(with(toolRun(), func(r *call.Request) { r.Path = "x" }), accept(q.State, "once"))
		},
		"cancelled": func(b *bench, q *Question) {
			ctx, cancel := cancelled(b.t)
			cancel()
			_, _, _ = b.Check(ctx, toolRun(), accept(q.State, "once"))
		},
		"chat ended": func(b *bench, q *Question) { b.EndChat("stdio-1") },
		"expired":    func(b *bench, q *Question) { b.pass(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everywhere)
			q := b.ask(toolRun())
			end(b, q)
			if codes := b.codes(); len(codes) != 0 || b.Answered(q) != nil {
				t.Errorf("calls are pending: %q", codes)
			}
			b.log.fail = nil
			_, err := b.answer(toolRun(), accept(q.State, "once"))
			if !errors.Is(err, ErrDenied) {
				t.Errorf("the state once more = %v, want a denial", err)
			}
		})
	}
}

// Without elicitation in the configuration it is not tried, whatever the client can
// do.
func TestElicitationLeftOut(t *testing.T) {
	for _, req := range []call.Request{toolRun(), carrying(toolRun())} {
		b := newBench(t, outside)
		q := b.ask(req)
		if q.Elicit {
			t.Error("the client is asked, although elicitation is no channel")
		}
		if p := b.Gate.Pending(); len(p) != 1 || p[0].Waits.IsZero() {
			t.Errorf("Pending() = %+v, want a call that waits", p)
		}
		b.page(q.Code, queue.Once)
		if got := b.goes(req, b.Answered(q)); got != allows {
			t.Errorf("the call: %s, want %s", got, allows)
		}
	}
}

// slowly is a slow store.
type slowly struct{ memory }

func (s *slowly) Update(change func([]grants.Grant) ([]grants.Grant, error)) error {
	for range 200 {
		runtime.Gosched()
	}
	return s.memory.Update(change)
}

// A denial at the same moment as an answer that holds for more leaves nothing behind,
// wherever the two come from.
func TestAlwaysAndDenyAtOnce(t *testing.T) {
	for range 100 {
		for name, deny := range map[string]func(b *bench, q *Question) bool{
			"on the page": func(b *bench, q *Question) bool {
				_, err := b.Decide(q.Code, says(queue.Deny))
				return err == nil
			},
			"in the client": func(b *bench, q *Question) bool {
				_, _, err := b.Check(b.t.Context(), carrying(toolRun()), accept(q.State, "deny"))
				return err != nil && strings.Contains(err.Error(), "chose to deny")
			},
		} {
			store := new(slowly)
			b := newBench(t, everywhere, func(o *Options) { o.Grants = store })
			q := b.ask(carrying(toolRun()))
			var (
				wg     sync.WaitGroup
				denied bool
			)
			wg.Go(func() { _, _ = b.Decide(q.Code, says(queue.Always)) })
			wg.Go(func() { denied = deny(b, q) })
			wg.Wait()
			if !denied {
				t.Fatalf("%s: the denial did not count: %q", name, b.lines(0))
			}
			if len(store.grants) != 0 {
				t.Fatalf("%s: denied, and a grant is kept: %q", name, b.lines(0))
			}
		}
	}
}

// One question allows one call, in whatever order its answers arrive.
func TestAnswersCross(t *testing.T) {
	req := carrying(toolRun())
	for range 100 {
		b := newBench(t, everywhere)
		q := b.ask(req)
		b.page(q.Code, queue.Once)
		var (
			wg sync.WaitGroup
			mu sync.Mutex
			n  int
		)
		for _, a := range []*answers.Answer{nil, accept(q.State, "once")} {
			wg.Go(func() {
				if permit, _, _ := b.Check(t.Context(), req, a); permit != nil {
					mu.Lock()
					n++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if n != 1 {
			t.Fatalf("%d permits came of one question: %q", n, b.lines(0))
		}
	}
}

// numbered is one of many calls of a tool.
func numbered(i int) call.Request {
	return with(toolRun(), func(r *call.Request) { r.Run.Command.Args = []string{strconv.Itoa(i)} })
}

// slow is a client that waits a little longer than others.
func slow(r call.Request, wait time.Duration) call.Request {
	r.Caller.Wait = wait
	return r
}

// A call waits as long as its client is known to wait, unless the user configured a
// time.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		name               string
		set, pending, know time.Duration
		want               time.Duration
	}{
		{"an unknown client", 0, 10 * time.Minute, 0, 45 * time.Second},
		{"a known one", 0, 10 * time.Minute, 4 * time.Minute, 4 * time.Minute},
		{"set", 20 * time.Second, 10 * time.Minute, 4 * time.Minute, 20 * time.Second},
		{"set to more", 9 * time.Minute, 10 * time.Minute, 0, 9 * time.Minute},
		{"questions that soon expire", 0, time.Minute, 4 * time.Minute, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, outside, func(o *Options) { o.Wait, o.Pending = c.set, c.pending })
			q := b.ask(slow(toolRun(), c.know))
			if p := b.Gate.Pending()[0]; q.Wait != c.want || !p.Waits.Equal(b.time.Add(c.want)) {
				t.Errorf("the call waits %v, until %v; want %v", q.Wait, p.Waits, c.want)
			}
		})
	}
}

// TestDeclinesByItself: after an answer that no person can have given, the question
// stays open on the page and in the terminal, as for a client that cannot ask.
func TestDeclinesByItself(t *testing.T) {
	for name, c := range map[string]struct {
		answer answers.Answer
		after  time.Duration
		why    string
	}{
		"declined":      {*answers.FromForm("", "decline", nil), time.Millisecond, "the client declined by itself"},
		"cancelled":     {*answers.FromForm("", "cancel", nil), personTime - 1, "the client declined by itself"},
		"could not ask": {answers.Answer{Reason: "the client could not show the question", Failed: true}, time.Hour, "could not show the question"},
	} {
		for _, req := range []call.Request{toolRun(), carrying(toolRun())} {
			t.Run(fmt.Sprint(name, ", carried ", req.Caller.Carries), func(t *testing.T) {
				b := newBench(t, everywhere, func(o *Options) { o.Pending = 24 * time.Hour })
				q := b.ask(req)
				declined := func(q *Question) *Question {
					t.Helper()
					b.pass(c.after)
					a := c.answer
					a.State, a.Channel = q.State, queue.ChannelElicitation
					permit, again, err := b.Check(t.Context(), req, &a)
					if permit != nil || err != nil || again == nil || again.Elicit || again.Code != q.Code {
						t.Fatalf("Check() = %v, %+v, %v; want the same question, for elsewhere", permit, again, err)
					}
					return again
				}
				again := declined(q)
				b.has(0, "pending elicitation")
				if e := b.log.all()[0]; !strings.Contains(e.Reason, c.why) {
					t.Errorf("the log says %q, want %q", e.Reason, c.why)
				}
				p := b.Gate.Pending()
				if len(p) != 1 || !strings.Contains(p[0].Note, c.why) || !p[0].Waits.Equal(b.time.Add(again.Wait)) {
					t.Fatalf("Pending() = %+v, want the question, that a call waits for it, and %q", p, c.why)
				}
				// The client's form is worthless now.
				_, err := b.answer(req, accept(q.State, "once"))
				b.denied(err, "used before")
				// So is an answer of the client with the new state, which it never
				// received.
				b.page(again.Code, queue.Once)
				if got := b.goes(req, b.Answered(again)); got != allows {
					t.Errorf("the call: %s, want %s", got, allows)
				}

				// If a person denies it there, it is denied.
				again = declined(b.ask(req))
				b.page(again.Code, queue.Deny)
				_, err = b.answer(req, b.Answered(again))
				b.denied(err, "the person chose to deny")
				if codes := b.codes(); len(codes) != 0 {
					t.Errorf("the codes %q are left", codes)
				}

				// It waits like any other question, and the next equal call takes it.
				again = declined(b.ask(req))
				if _, err := b.Postpone(again); !errors.Is(err, ErrDenied) {
					t.Fatalf("Postpone() = %v", err)
				}
				if next := b.ask(req); next.Code != again.Code || !next.Elicit {
					t.Errorf("the call made again asks %+v, want the question %s, in the client too", next, again.Code)
				}
			})
		}
	}
	t.Run("answered elsewhere first", func(t *testing.T) {
		for _, req := range []call.Request{toolRun(), carrying(toolRun())} {
			b := newBench(t, everywhere)
			q := b.ask(req)
			b.page(q.Code, queue.Once)
			permit, again, err := b.Check(t.Context(), req, answers.FromForm(q.State, "decline", nil))
			if permit != nil || err != nil || again == nil {
				t.Fatalf("Check() = %v, %+v, %v", permit, again, err)
			}
			<-again.Decided
			if got := b.goes(req, b.Answered(again)); got != allows {
				t.Errorf("the call: %s, want %s: the person's answer counts, not the client's", got, allows)
			}
		}
	})
	t.Run("nowhere else", func(t *testing.T) {
		b := newBench(t)
		_, err := b.answer(toolRun(), answers.FromForm(b.ask(toolRun()).State, "decline", nil))
		b.denied(err, "the client declined by itself")
		if d, ok := errors.AsType[*DeniedError](err); !ok || d.Code != "" || !strings.Contains(d.Hint, "approval.channels") || len(b.codes()) != 0 {
			t.Errorf("Check() = %+v, want a denial without a code, and what to do", d)
		}
	})
	t.Run("when that cannot be recorded", func(t *testing.T) {
		b := newBench(t, everywhere)
		q := b.ask(toolRun())
		b.log.fail = func(audit.Entry) error { return errDisk }
		_, err := b.answer(toolRun(), answers.FromForm(q.State, "decline", nil))
		if d, ok := errors.AsType[*DeniedError](err); !ok || d.Code != "" || len(b.codes()) != 0 {
			t.Errorf("Check() = %+v, want the log's failure, and nothing left", err)
		}
	})
	t.Run("while its chat ends", func(t *testing.T) {
		b := newBench(t, everywhere)
		q := b.ask(toolRun())
		b.log.fail = func(audit.Entry) error {
			b.EndChat(toolRun().Caller.Chat)
			return nil
		}
		_, _, err := b.Check(t.Context(), toolRun(), answers.FromForm(q.State, "decline", nil))
		if lines := b.log.all(); err != nil || len(lines) != 1 || len(b.codes()) != 0 {
			t.Errorf("Check() = %v, and the log has %+v; want one line, and no question left", err, lines)
		}
	})
	// A client cannot gain time: a denial after that is final, on every channel.
	t.Run("a moment later", func(t *testing.T) {
		for _, action := range []string{"decline", "cancel"} {
			b := newBench(t, everywhere)
			q := b.ask(toolRun())
			b.pass(personTime)
			_, err := b.answer(toolRun(), answers.FromForm(q.State, action, nil))
			if d, ok := errors.AsType[*DeniedError](err); !ok || d.Code != "" || len(b.codes()) != 0 {
				t.Errorf("%s: Check() = %+v, want a denial that leaves nothing", action, err)
			}
			b.refused(q.Code, says(queue.Once), queue.CodeAnswered, "denied, in the client")
		}
	})
}
