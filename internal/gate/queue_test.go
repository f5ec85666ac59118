package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// everywhere asks over every channel, as the configuration does by default.
func everywhere(o *Options) {
	o.Channels = []string{queue.ChannelElicitation, queue.ChannelPage, queue.ChannelTerminal}
}

// outside leaves out the client's form.
func outside(o *Options) { o.Channels = []string{queue.ChannelPage, queue.ChannelTerminal} }

// carrying is a request of a client that gets the question as the call's result.
func carrying(r call.Request) call.Request {
	return with(r, func(r *call.Request) { r.Caller.Carries = true })
}

// says returns a verdict from the page.
func says(d queue.Decision) queue.Verdict {
	return queue.Verdict{Decision: d, Channel: queue.ChannelPage}
}

// page decides on the page, which must work.
func (b *bench) page(code string, d queue.Decision) queue.Pending {
	b.t.Helper()
	p, err := b.Decide(code, says(d))
	if err != nil {
		b.t.Fatalf("Decide(%s, %s) = %v", code, d, err)
	}
	return p
}

// refused fails unless a verdict on the code is refused with this problem.
func (b *bench) refused(code string, v queue.Verdict, problem queue.CodeProblem, words string) {
	b.t.Helper()
	p, err := b.Decide(code, v)
	e, ok := errors.AsType[*queue.CodeError](err)
	if !ok || e.Problem != problem || !strings.Contains(err.Error(), words) {
		b.t.Errorf("Decide(%q, %s) = %v, want %s and %q in it", code, v.Decision, err, problem, words)
	}
	if diff := cmp.Diff(queue.Pending{}, p); diff != "" {
		b.t.Errorf("Decide(%q, %s) returns a call with an error (-want +got):\n%s", code, v.Decision, diff)
	}
}

// postpone makes a call return without an answer.
func (b *bench) postpone(q *Question) *PendingError {
	b.t.Helper()
	a, err := b.Postpone(q)
	p, ok := errors.AsType[*PendingError](err)
	if a != nil || !ok {
		b.t.Fatalf("Postpone() = %v, %v, want a *PendingError", a, err)
	}
	return p
}

// left makes a call that returns without an answer, and returns its code.
func (b *bench) left(req call.Request) string {
	b.t.Helper()
	return b.postpone(b.ask(req)).Code
}

// codes returns the codes of the pending calls, in the order in which they are shown.
func (b *bench) codes() []string {
	var all []string
	for _, p := range b.Gate.Pending() {
		all = append(all, p.Code)
	}
	return all
}

// lines returns the decisions in the log, starting with the one with this number:
// "once page".
func (b *bench) lines(from int) []string {
	var all []string
	for _, e := range b.log.all()[from:] {
		all = append(all, strings.TrimSpace(e.Decision+" "+e.Channel))
	}
	return all
}

// has fails unless the log has exactly these decisions, starting with the one with
// this number.
func (b *bench) has(from int, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.lines(from)); diff != "" {
		b.t.Errorf("decisions in the log differ (-want +got):\n%s", diff)
	}
}

// What people type is accepted as a code, and similar text is not.
func TestTypedCodes(t *testing.T) {
	b := newBench(t, everywhere)
	type typing func(code string) string
	for name, typed := range map[string]typing{
		"as it is":         func(c string) string { return c },
		"in lower case":    strings.ToLower,
		"without the dash": func(c string) string { return strings.ReplaceAll(c, "-", "") },
		"with spaces":      func(c string) string { return " " + c[:2] + " " + c[2:4] + " - " + c[5:] + "\n" },
	} {
		q := b.ask(toolRun())
		if _, err := b.Decide(typed(q.Code), says(queue.Once)); err != nil {
			t.Errorf("Decide(%q, %s) = %v", typed(q.Code), name, err)
		}
	}
	q := b.ask(toolRun())
	for name, typed := range map[string]typing{
		"nothing":             func(string) string { return "" },
		"a dash":              func(string) string { return "-" },
		"one character less":  func(c string) string { return c[:8] },
		"one character more":  func(c string) string { return c + "2" },
		"backwards":           func(c string) string { return c[5:] + "-" + c[:4] },
		"a star":              func(string) string { return "*" },
		"a long text":         func(c string) string { return strings.Repeat(c, 1000) },
		"the state":           func(string) string { return q.State },
		"another script":      func(c string) string { return strings.Replace(c, c[:1], "\u0410", 1) },
		"terminal characters": func(c string) string { return c + "\x1b[2J" },
	} {
		_, err := b.Decide(typed(q.Code), says(queue.Once))
		e, ok := errors.AsType[*queue.CodeError](err)
		if !ok || e.Problem != queue.CodeUnknown {
			t.Errorf("Decide(%s) = %v, want %s", name, err, queue.CodeUnknown)
			continue
		}
		checkShown(t, err.Error())
	}
	if b.Answered(q) != nil {
		t.Error("a code that was typed wrong decided about a call")
	}
}

func TestPendingShowsAll(t *testing.T) {
	b := newBench(t, everywhere, remembers)
	first := with(toolRun(), func(r *call.Request) {
		r.Caller.Client, r.Caller.Person, r.Pack.ID = "evil\x1b[2J", "ada\u202e", "tri\u202eage"
		r.Fields = []call.Field{{Name: "context_url", Title: "The url"}}
	})
	start := b.time
	q := b.ask(first)
	b.pass(time.Second)
	b.left(with(openCall(), func(r *call.Request) { r.Caller.Chat = "stdio-2" }))
	b.pass(time.Second)
	b.ask(carrying(readCall()))
	all := b.Gate.Pending()
	if len(all) != 3 {
		t.Fatalf("Pending() has %d calls, want 3", len(all))
	}
	for i, want := range []struct {
		chat   string
		kind   call.Kind
		waits  time.Time
		expiry time.Time
		note   string
	}{
		{"stdio-1", call.KindRun, start.Add(45 * time.Second), start.Add(10 * time.Minute), ""},
		{"stdio-2", call.KindOpen, time.Time{}, start.Add(10*time.Minute + time.Second), "has returned"},
		{"stdio-1", call.KindRead, time.Time{}, start.Add(10*time.Minute + 2*time.Second), "client shows this question, too"},
	} {
		p := all[i]
		if p.Chat != want.chat || p.Kind != want.kind || !p.Waits.Equal(want.waits) || !p.Expires.Equal(want.expiry) {
			t.Errorf("Pending()[%d] = %s, %s, waits %v, expires %v, want %+v", i, p.Chat, p.Kind, p.Waits, p.Expires, want)
		}
		if i > 0 && !strings.Contains(p.Note, want.note) {
			t.Errorf("Pending()[%d].Note = %q, want %q in it", i, p.Note, want.note)
		}
		if !p.Asked.Equal(start.Add(time.Duration(i)*time.Second)) || p.Answered != queue.Deny {
			t.Errorf("Pending()[%d] was asked at %v with the answer %q", i, p.Asked, p.Answered)
		}
		if p.Card.Title != p.Title {
			t.Errorf("Pending()[%d] has a card about %q, want its title %q", i, p.Card.Title, p.Title)
		}
		for _, text := range []string{p.Client, p.Person, p.Pack, p.Title, p.Card.Text(promptWidth), p.Note} {
			checkShown(t, text)
		}
	}
	// The page and the terminal show what the client shows.
	p := all[0]
	if diff := cmp.Diff([]any{q.Code, q.Title, q.Card, q.Choices, q.Fields}, []any{p.Code, p.Title, p.Card, p.Choices, p.Fields}); diff != "" {
		t.Errorf("the queue shows another question than the client (-client +queue):\n%s", diff)
	}
	// A denied call is no longer shown. An allowed one is shown until it is made
	// again.
	b.page(all[1].Code, queue.Once)
	b.page(all[2].Code, queue.Deny)
	if got, want := b.codes(), []string{all[0].Code, all[1].Code}; !slices.Equal(got, want) {
		t.Errorf("Pending() = %q, want %q", got, want)
	}
	if got := b.Gate.Pending()[1]; got.Answered != queue.Once || !strings.Contains(got.Note, "Allowed") {
		t.Errorf("a call that was allowed is shown as %q, %q", got.Answered, got.Note)
	}
}

// If a reader of the queue changes the result, the queue does not change.
func TestPendingIsACopy(t *testing.T) {
	b := newBench(t, everywhere)
	q := b.ask(with(toolRun(), func(r *call.Request) { r.Fields = []call.Field{{Name: "context_url", Title: "The url"}} }))
	b.refused(q.Code, queue.Verdict{Decision: queue.Chat, Channel: queue.ChannelPage, Values: map[string]string{"context_url": "x"}}, queue.CodeInvalid, "none of the answers")
	values := map[string]string{"context_url": "https://a.example"}
	if _, err := b.Decide(q.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage, Values: values}); err != nil {
		t.Fatal(err)
	}
	values["context_url"] = "https://evil.example"
	a := b.Answered(q)
	a.Verdict.Values["context_url"] = "https://evil.example" // one reader's copy
	a = b.Answered(q)
	if got := a.Verdict.Values["context_url"]; got != "https://a.example" {
		t.Errorf("the answer has %q, want what the person filled in", got)
	}
}

// TestCodeProblems: only a valid answer to an open question decides anything; the
// error for any other says why.
func TestCodeProblems(t *testing.T) {
	b := newBench(t, everywhere, remembers)
	t.Run("unknown", func(t *testing.T) {
		b.refused("K7QM-2F9X", says(queue.Once), queue.CodeUnknown, "no call waits under the code K7QM-2F9X")
	})
	t.Run("of another server", func(t *testing.T) {
		b.refused(newBench(t, everywhere).left(toolRun()), says(queue.Once), queue.CodeUnknown, "no call waits")
	})
	t.Run("the word for a denial", func(t *testing.T) {
		q := b.ask(toolRun())
		b.refused(q.Code, says("deny"), queue.CodeInvalid, "none of the answers")
		_, err := b.answer(toolRun(), &answers.Answer{State: q.State, Verdict: &queue.Verdict{Decision: "deny"}})
		b.denied(err, "none of the choices")
	})
	t.Run("answered, while it waits", func(t *testing.T) {
		q := b.ask(toolRun())
		b.page(q.Code, queue.Once)
		b.refused(q.Code, says(queue.Once), queue.CodeAnswered, "answered before: allowed, on the page")
		b.refused(q.Code, says(queue.Chat), queue.CodeAnswered, "answered before")
		b.page(q.Code, queue.Deny) // takes it back
		b.refused(q.Code, says(queue.Once), queue.CodeAnswered, "answered before: denied, on the page")
		b.refused(q.Code, says(queue.Deny), queue.CodeAnswered, "answered before")
		if _, err := b.answer(toolRun(), b.Answered(q)); err == nil {
			t.Error("a denial that follows an answer does not count")
		}
		b.refused(q.Code, says(queue.Once), queue.CodeAnswered, "answered before: denied, on the page")
		b.refused(q.Code, says(queue.Deny), queue.CodeAnswered, "answered before")
	})
	t.Run("answered in the client", func(t *testing.T) {
		q := b.ask(toolRun())
		if _, err := b.answer(toolRun(), accept(q.State, "once")); err != nil {
			t.Fatal(err)
		}
		// The call has gone on.
		b.refused(q.Code, says(queue.Deny), queue.CodeAnswered, "answered before: allowed, in the client")
	})
	t.Run("answered, after it returned", func(t *testing.T) {
		code := b.left(openCall())
		b.page(code, queue.Once)
		b.refused(code, says(queue.Once), queue.CodeAnswered, "allowed, on the page")
		if got := b.outcome(openCall()); got != allows {
			t.Fatalf("the call made again: %s, want %s", got, allows)
		}
		b.refused(code, says(queue.Deny), queue.CodeAnswered, "the call was made")
	})
	t.Run("expired", func(t *testing.T) {
		open, decided := b.left(readCall()), b.left(with(readCall(), func(r *call.Request) { r.Path = "b.md" }))
		b.page(decided, queue.Once)
		b.pass(10*time.Minute + time.Nanosecond)
		b.refused(open, says(queue.Once), queue.CodeExpired, "nobody answered until")
		b.refused(decided, says(queue.Deny), queue.CodeExpired, "was not made again until")
	})
	t.Run("cancelled", func(t *testing.T) {
		q := b.ask(toolRun())
		_, err := b.answer(toolRun(), &answers.Answer{State: q.State, Reason: "the call was cancelled"})
		if err == nil {
			t.Fatal("a cancelled call is allowed")
		}
		q = b.ask(enableCall())
		ctx, cancel := cancelled(t)
		cancel()
		if _, _, err := b.Check(ctx, enableCall(), &answers.Answer{State: q.State}); err == nil {
			t.Fatal("a cancelled call is allowed")
		}
		b.refused(q.Code, says(queue.Once), queue.CodeWithdrawn, "the client cancelled")
	})
	t.Run("the chat ended", func(t *testing.T) {
		req := with(toolRun(), func(r *call.Request) { r.Caller.Chat = "stdio-9" })
		waits, returned := b.ask(req), b.left(req)
		other := b.ask(toolRun())
		b.EndChat("stdio-9")
		b.refused(waits.Code, says(queue.Once), queue.CodeWithdrawn, "its client closed")
		b.refused(returned, says(queue.Once), queue.CodeWithdrawn, "its client closed")
		b.page(other.Code, queue.Once)
	})
	t.Run("the call changed", func(t *testing.T) {
		q := b.ask(toolRun())
		_, err := b.answer(with(toolRun(), func(r *call.Request) { r.Pack.Digest = "ff" }), accept(q.State, "once"))
		b.denied(err, "changed since the question")
		b.refused(q.Code, says(queue.Once), queue.CodeWithdrawn, "changed since the question")
	})
	t.Run("the call cannot be made", func(t *testing.T) {
		q := b.ask(openCall())
		if err := b.Refuse(openCall(), accept(q.State, "once"), "the pack is gone"); !errors.Is(err, ErrDenied) {
			t.Fatalf("Refuse() = %v", err)
		}
		b.refused(q.Code, says(queue.Once), queue.CodeWithdrawn, "cannot be made")
	})
	t.Run("not offered", func(t *testing.T) {
		q := b.ask(with(toolRun(), func(r *call.Request) { r.AlwaysAsk = true }))
		for _, d := range []queue.Decision{queue.Chat, queue.Always, "maybe", "Once", "deny ", "run\x1b[2J"} {
			b.refused(q.Code, says(d), queue.CodeInvalid, "none of the answers that are offered")
		}
		_, err := b.Decide(q.Code, says("\x1b[2J"))
		checkShown(t, err.Error())
		b.page(q.Code, queue.Once)
	})
	t.Run("fields", func(t *testing.T) {
		q := b.ask(with(toolRun(), func(r *call.Request) {
			r.Fields = []call.Field{{Name: "context_url", Title: "The url"}, {Name: "context_file", Title: "The file"}}
		}))
		for _, c := range []struct {
			values map[string]string
			words  string
		}{
			{nil, `needs a value for "context_url"`},
			{map[string]string{"context_url": "x"}, `needs a value for "context_file"`},
			{map[string]string{"context_url": "x", "context_file": " \t\n"}, `needs a value for "context_file"`},
			{map[string]string{"context_url": "x", "context_file": strings.Repeat("a", longestValue+1)}, `for "context_file" is too long`},
			{map[string]string{"context_url": "x\x00y", "context_file": "b"}, `for "context_url" has a NUL`},
			{map[string]string{"context_url": "x", "context_file": "b", "decision": "always"}, `no field "decision"`},
			{map[string]string{"context_url": "x", "context_file": "b", "\x1b[2J": "y"}, `it has no field`},
		} {
			v := queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage, Values: c.values}
			b.refused(q.Code, v, queue.CodeInvalid, c.words)
			_, err := b.Decide(q.Code, v)
			checkShown(t, err.Error())
		}
		if b.Answered(q) != nil {
			t.Error("an invalid answer decided")
		}
		if _, err := b.Decide(q.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage,
			Values: map[string]string{"context_url": strings.Repeat("a", longestValue), "context_file": "b"}}); err != nil {
			t.Errorf("Decide(values of the largest size) = %v", err)
		}
	})
	t.Run("no values to deny", func(t *testing.T) {
		q := b.ask(with(toolRun(), func(r *call.Request) { r.Fields = []call.Field{{Name: "context_url", Title: "The url"}} }))
		b.page(q.Code, queue.Deny)
	})
}

// TestChangesMissNothing: a reader that takes the channel, then reads, and waits for
// the channel before reading again, sees the last state.
func TestChangesMissNothing(t *testing.T) {
	b := newBench(t, everywhere)
	const each, writers = 20, 4
	var (
		wg   sync.WaitGroup
		done atomic.Bool
	)
	read := make(chan int)
	go func() {
		for {
			changed := b.Changes()
			finished := done.Load()
			n := len(b.History())
			if n == each*writers || finished {
				read <- n
				return
			}
			<-changed
		}
	}()
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				req := with(toolRun(), func(r *call.Request) { r.Caller.Call = fmt.Sprint(i, j) })
				_, q, err := b.Check(t.Context(), req, nil)
				if err != nil {
					t.Errorf("Check() = %v", err)
					return
				}
				if _, err := b.Decide(q.Code, says(queue.Once)); err != nil {
					t.Errorf("Decide() = %v", err)
				}
				if _, _, err := b.Check(t.Context(), req, b.Answered(q)); err != nil {
					t.Errorf("Check() = %v", err)
				}
			}
		})
	}
	wg.Wait()
	select {
	case n := <-read:
		if n != each*writers {
			t.Errorf("the reader saw %d decisions, want %d", n, each*writers)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the reader waits for a change that it missed")
	}
}

// Every step of a call is a change that is reported to those who show the queue.
func TestChanges(t *testing.T) {
	b := newBench(t, everywhere)
	var q *Question
	var permit *Permit
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"a question", func() { q = b.ask(toolRun()) }},
		{"its call returns", func() { b.postpone(q) }},
		{"the call is made again", func() { q = b.ask(toolRun()) }},
		{"it is allowed", func() { b.page(q.Code, queue.Once) }},
		{"the call goes on", func() { permit, _ = b.answer(toolRun(), b.Answered(q)) }},
		{"its run ends", func() { _, _ = permit.Run(t.Context()) }},
		{"a denial", func() { b.outcome(with(openCall(), func(r *call.Request) { r.Kind = "x" })) }},
		{"a question of another chat", func() { b.ask(with(openCall(), func(r *call.Request) { r.Caller.Chat = "stdio-2" })) }},
		{"that chat ends", func() { b.EndChat("stdio-2") }},
	} {
		changed := b.Changes()
		select {
		case <-changed:
			t.Fatalf("before %s: there is a change already", step.name)
		default:
		}
		step.do()
		select {
		case <-changed:
		default:
			t.Errorf("%s: no change is told", step.name)
		}
	}
	if permit == nil {
		t.Fatal("no permit")
	}
}

// TestQueueMakesRoom: a chat that asks and never waits loses only its own questions,
// and a call that waits never loses its question.
func TestQueueMakesRoom(t *testing.T) {
	const most = 40
	b := newBench(t, everywhere)
	b.narrow(1, queue.Size{Questions: most})
	of := func(chat string) call.Request {
		return carrying(with(openCall(), func(r *call.Request) { r.Caller.Chat = chat }))
	}
	waits := b.ask(toolRun())
	honest := b.ask(of("honest"))
	first := b.ask(of("greedy"))
	b.pass(time.Millisecond)
	for range most - 4 {
		b.ask(of("greedy"))
	}
	last := b.ask(of("greedy"))
	if n := len(b.codes()); n != most {
		t.Fatalf("%d calls are pending, want %d", n, most)
	}
	late := b.ask(of("late"))
	if n := len(b.codes()); n != most {
		t.Errorf("%d calls are pending, want at most %d", n, most)
	}
	b.refused(first.Code, says(queue.Once), queue.CodeWithdrawn, "too many questions were open")
	_, err := b.answer(of("greedy"), accept(first.State, "once"))
	b.denied(err, "") // a question that nobody can see cannot be answered
	for name, q := range map[string]*Question{"waits": waits, "honest": honest, "late": late, "greedy, the last": last} {
		if !slices.Contains(b.codes(), q.Code) {
			t.Errorf("%s: its question is gone", name)
		}
	}
}

// A queue full of calls that wait takes no other.
func TestQueueIsFull(t *testing.T) {
	const most = 40
	b := newBench(t, everywhere)
	b.narrow(1, queue.Size{Questions: most})
	waits := b.ask(openCall())
	for range most - 1 {
		b.ask(openCall())
	}
	if got := b.outcome(openCall()); !strings.Contains(got, "too many calls wait for an answer") {
		t.Errorf("one call more: %s, want a denial", got)
	}
	b.denied(&DeniedError{Reason: b.log.last().Reason}, "too many calls wait")
	b.page(waits.Code, queue.Once) // still answered when its call continues
	b.pass(11 * time.Minute)
	if got := b.outcome(openCall()); got != asks {
		t.Errorf("when all have expired: %s, want %s", got, asks)
	}
}

// The queue remembers as much as a person looks at, and no more.
func TestQueueForgets(t *testing.T) {
	b := newBench(t, everywhere)
	const most = 200
	first := b.ask(openCall())
	if _, err := b.answer(openCall(), accept(first.State, "once")); err != nil {
		t.Fatal(err)
	}
	for range most {
		if _, err := b.answer(openCall(), accept(b.ask(openCall()).State, "deny")); err == nil {
			t.Fatal("deny allows")
		}
	}
	past := b.History()
	if len(past) != most || past[0].Decision != "deny" || past[most-1].Decision != "deny" {
		t.Errorf("%d decisions are remembered, want the newest %d", len(past), most)
	}
	b.refused(first.Code, says(queue.Once), queue.CodeUnknown, "no call waits")
}

func cancelled(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
