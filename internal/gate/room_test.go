package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// narrow gives a gate that was not asked anything yet little room: this many
// questions, and this many bytes.
func (b *bench) narrow(people int, most queue.Size) {
	b.t.Helper()
	q, err := queue.New(queue.Options{Now: b.now, People: people, Most: most})
	if err != nil {
		b.t.Fatal(err)
	}
	b.queue = q
}

// asked returns how many questions of a person are shown, and how long their texts
// are.
func (b *bench) asked(person string) (n, text int) {
	for _, p := range b.Pending() {
		if p.Person == person {
			n++
			text += p.Card.Size()
		}
	}
	return n, text
}

// of is a call of a person's chat.
func of(person, chat string, n int) call.Request {
	return with(toolRun(), func(r *call.Request) {
		r.Caller.Person, r.Caller.Chat = person, person+"-"+chat
		r.Run.Command.Args = []string{fmt.Sprint(n)}
	})
}

// TestFloodOfOnePerson: whatever one person's clients do, everybody else's questions
// stay as they are, whether they wait, are carried, were left behind or were
// answered, and there is room for more of them.
func TestFloodOfOnePerson(t *testing.T) {
	for name, flood := range map[string]func(b *bench, n int){
		"calls that wait":  func(b *bench, n int) { b.outcome(of("greedy", fmt.Sprint(n%50), n)) },
		"carried":          func(b *bench, n int) { b.outcome(carrying(of("greedy", fmt.Sprint(n), n))) },
		"left behind":      func(b *bench, n int) { b.leaves(of("greedy", "1", n)) },
		"denied":           func(b *bench, n int) { b.leavesAnswered(of("greedy", fmt.Sprint(n), n), queue.Deny) },
		"allowed":          func(b *bench, n int) { b.leavesAnswered(of("greedy", "1", n), queue.Once) },
		"allowed for more": func(b *bench, n int) { b.leavesAnswered(of("greedy", "1", n), queue.Chat) },
		"of much text": func(b *bench, n int) {
			b.outcome(carrying(with(of("greedy", "1", n), func(r *call.Request) { r.Run.Command.Args = []string{strings.Repeat("x ", 2000+n)} })))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everywhere, remembers)
			b.narrow(2, queue.Size{Questions: 60, Text: 120_000})
			waits, carried := b.ask(of("honest", "1", 1)), b.ask(carrying(of("honest", "1", 2)))
			left, allowed, denied := b.left(of("honest", "1", 3)), b.left(of("honest", "1", 4)), b.left(of("honest", "1", 5))
			b.page(allowed, queue.Once)
			b.page(denied, queue.Deny)
			for n := range 200 {
				b.pass(time.Millisecond)
				flood(b, n)
				if asked, text := b.asked("greedy"); asked > 30 || text > 60_000 {
					t.Fatalf("after %d calls one person has %d questions of %d bytes, want half of the room at most", n, asked, text)
				}
			}
			for what, code := range map[string]string{"waits": waits.Code, "carried": carried.Code, "left": left, "allowed": allowed} {
				if !slices.Contains(b.codes(), code) {
					t.Errorf("%s: the question of the other person is gone", what)
				}
			}
			b.page(waits.Code, queue.Once)
			if got := b.goes(of("honest", "1", 1), b.Answered(waits)); got != allows {
				t.Errorf("the call that waits: %s", got)
			}
			if _, err := b.answer(carrying(of("honest", "1", 2)), accept(carried.State, "once")); err != nil {
				t.Errorf("the answer that the client brings: %v", err)
			}
			if got := b.outcome(of("honest", "1", 4)); got != allows {
				t.Errorf("the call that was allowed: %s", got)
			}
			if got := b.outcome(of("honest", "1", 5)); !strings.Contains(got, "the person denied it") {
				t.Errorf("the call that was denied: %s", got)
			}
			for n := range 20 {
				if got := b.outcome(of("honest", "2", 100+n)); got != asks {
					t.Fatalf("call %d of the other person: %s, want %s", n, got, asks)
				}
			}
		})
	}
}

// leaves makes a call that returns without an answer, if it is asked about.
func (b *bench) leaves(req call.Request) string {
	b.t.Helper()
	_, q, err := b.Check(b.t.Context(), req, nil)
	if err != nil || q == nil {
		return ""
	}
	return b.postpone(q).Code
}

func (b *bench) leavesAnswered(req call.Request, d queue.Decision) {
	b.t.Helper()
	if code := b.leaves(req); code != "" {
		b.page(code, d)
	}
}

// TestWhichQuestionsAreDroppedFirst: of one person's questions, those that nobody answered are
// dropped first, then those that were allowed. Denials, and calls that wait, are
// never dropped.
func TestWhichQuestionsAreDroppedFirst(t *testing.T) {
	b := newBench(t, everywhere)
	b.narrow(1, queue.Size{Questions: 4})
	denied, allowed := b.left(of("ada", "1", 1)), b.left(of("ada", "1", 2))
	b.pass(time.Second)
	b.page(denied, queue.Deny)
	b.page(allowed, queue.Once)
	waits := b.ask(of("ada", "1", 3))
	open := b.left(of("ada", "1", 4))
	for i, want := range []string{open, allowed} {
		b.ask(of("ada", "2", 5+i))
		if slices.Contains(b.codes(), want) {
			t.Fatalf("question %d did not take the place of the one that goes first", i)
		}
	}
	if got := b.outcome(of("ada", "2", 7)); !strings.Contains(got, "too many calls wait for an answer") {
		t.Errorf("one more, among a denial and calls that wait: %s", got)
	}
	if !slices.Contains(b.codes(), waits.Code) {
		t.Error("a call that waits lost its question")
	}
	if got := b.outcome(of("ada", "1", 1)); !strings.Contains(got, "the person denied it") {
		t.Errorf("the call that was denied: %s, want the denial", got)
	}
	// Its place is free now.
	if got := b.outcome(of("ada", "2", 8)); got != asks {
		t.Errorf("after the denial was told: %s, want %s", got, asks)
	}
}

// TestGreedyChatOfOnePerson: of one person's chats, the one with the most questions
// makes room, its oldest first. The others lose nothing.
func TestGreedyChatOfOnePerson(t *testing.T) {
	b := newBench(t, everywhere)
	b.narrow(1, queue.Size{Questions: 16})
	var quiet, greedy []string
	for n := range 6 {
		quiet = append(quiet, b.left(of("ada", fmt.Sprint("quiet", n), n)))
		b.pass(time.Second)
	}
	for n := range 10 {
		greedy = append(greedy, b.left(of("ada", "greedy", 100+n)))
		b.pass(time.Second)
	}
	for n := range 8 {
		greedy = append(greedy, b.left(of("ada", "greedy", 200+n)))
		b.pass(time.Second)
		want := append(slices.Clone(quiet), greedy[n+1:]...)
		if got := b.codes(); len(got) != len(want) || slices.ContainsFunc(want, func(code string) bool { return !slices.Contains(got, code) }) {
			t.Fatalf("after %d more questions these are open: %q, want %q", n+1, got, want)
		}
	}
}

// TestLongQuestionOfMany: a question that does not fit into one person's share is
// denied with a clear message, and nothing is dropped for it in vain.
func TestLongQuestionOfMany(t *testing.T) {
	b := newBench(t, everywhere)
	b.narrow(10, queue.Size{Questions: 100, Text: 20_000})
	open := b.left(of("ada", "1", 1))
	long := with(of("ada", "1", 2), func(r *call.Request) { r.Run.Command.Args = []string{strings.Repeat("x ", 2000)} })
	if got := b.outcome(long); !strings.Contains(got, "longer than the room") {
		t.Errorf("a long question: %s, want a denial that says why", got)
	}
	if !slices.Contains(b.codes(), open) {
		t.Error("another question made room for one that cannot be asked")
	}
}

// TestHeavyQuestions: what a question keeps but does not show counts too. A person
// whose calls keep much more than they show uses up their own room, and nobody
// else's.
func TestHeavyQuestions(t *testing.T) {
	pad := strings.Repeat(" ", 1<<16)
	for name, heavy := range map[string]func(*call.Request){
		"logged arguments": func(r *call.Request) { r.Logged = strictjson.Write(map[string]any{"who": "Ada" + pad}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everywhere)
			b.narrow(2, queue.Size{Kept: 4 << 20})
			honest := b.left(of("honest", "1", 1))
			const most = 2 << 20
			for n := range 40 {
				b.pass(time.Millisecond)
				if got := b.outcome(carrying(with(of("greedy", "1", n), heavy))); got != asks {
					t.Fatalf("call %d: %s, want %s", n, got, asks)
				}
				if asked, _ := b.asked("greedy"); asked*len(pad) > most {
					t.Fatalf("after %d calls %d questions are kept of them, want %d bytes at most", n+1, asked, most)
				}
			}
			if !slices.Contains(b.codes(), honest) {
				t.Error("the question of the other person is gone")
			}
			tooMuch := with(of("greedy", "1", 99), func(r *call.Request) { r.Logged = strictjson.Write(strings.Repeat(pad, 32)) })
			if got := b.outcome(tooMuch); !strings.Contains(got, "longer than the room") {
				t.Errorf("a call that is larger than a person's room: %s, want a denial", got)
			}
		})
	}
}

// TestMorePeopleThanAnnounced: the total bound holds however many people come, and
// nobody loses anything.
func TestMorePeopleThanAnnounced(t *testing.T) {
	b := newBench(t, everywhere)
	b.narrow(1, queue.Size{Questions: 10})
	var codes []string
	for i := range 10 {
		codes = append(codes, b.left(of(fmt.Sprint("person ", i), "1", 1)))
	}
	if got := b.outcome(of("one more", "1", 1)); !strings.Contains(got, "too many calls wait") {
		t.Errorf("one more person: %s, want a denial", got)
	}
	slices.Sort(codes)
	if now := slices.Sorted(slices.Values(b.codes())); !slices.Equal(now, codes) {
		t.Errorf("the questions are %q, want all of %q", now, codes)
	}
}

// TestUnnamedToken: an "always" answer of the user at this machine does not hold for
// holders of a token on the network, or the reverse. On this machine all clients are
// one person.
func TestUnnamedToken(t *testing.T) {
	at := func(o call.Origin) call.Request {
		return with(openCall(), func(r *call.Request) { r.Caller.Origin = o })
	}
	for _, c := range []struct {
		given, used call.Origin
		want        string
	}{
		{call.OriginClient, call.OriginNetwork, asks},
		{call.OriginMachine, call.OriginNetwork, asks},
		{call.OriginNetwork, call.OriginClient, asks},
		{call.OriginNetwork, call.OriginMachine, asks},
		{call.OriginNetwork, call.OriginNetwork, allows},
		{call.OriginClient, call.OriginMachine, allows},
		{call.OriginMachine, call.OriginClient, allows},
	} {
		b := newBench(t, remembers)
		b.approve(at(c.given), queue.Always)
		another := with(at(c.used), func(r *call.Request) { r.Caller.Chat = "http-2" })
		if got := b.outcome(another); got != c.want {
			t.Errorf("given from %d, used from %d: %s, want %s", c.given, c.used, got, c.want)
		}
		// It has no name, and nothing changed.
		if c.want == asks {
			q := b.ask(another)
			if strings.Contains(textOf(q), "whoever") || strings.Contains(textOf(q), "for  ") || strings.Contains(textOf(q), "CHANGED") {
				t.Errorf("the question is\n%s", textOf(q))
			}
		}
		if e := b.log.last(); e.Caller != "" {
			t.Errorf("the log names %q", e.Caller)
		}
	}
	// A name stands for one person, wherever it is used.
	b := newBench(t, remembers)
	named := func(o call.Origin) call.Request {
		return with(at(o), func(r *call.Request) { r.Caller.Person = "ada" })
	}
	b.approve(named(call.OriginNetwork), queue.Always)
	if got := b.outcome(named(call.OriginMachine)); got != allows {
		t.Errorf("a named person, elsewhere: %s, want %s", got, allows)
	}
}

// TestRevokedBeforeTheCall: if an answer for more than one call is revoked before its
// call is made again, it does not allow that call either.
func TestRevokedBeforeTheCall(t *testing.T) {
	for name, c := range map[string]struct {
		decision queue.Decision
		option   func(*Options)
		req      call.Request
		end      func(*testing.T, *bench, *memory)
		want     string
	}{
		"always, revoked":     {queue.Always, nil, toolRun(), revoke, asks},
		"first run, revoked":  {queue.Once, func(o *Options) { o.Policy = policy.FirstRun }, with(toolRun(), func(r *call.Request) { r.Run.ReadOnly = true }), revoke, asks},
		"always, void":        {queue.Always, nil, toolRun(), voidAll, asks},
		"always, refused":     {queue.Always, nil, toolRun(), func(_ *testing.T, _ *bench, m *memory) { m.err = errDisk }, "cannot be trusted"},
		"always, still there": {queue.Always, nil, toolRun(), nil, allows},
		"for the chat":        {queue.Chat, nil, toolRun(), revoke, allows},
		"once":                {queue.Once, nil, toolRun(), revoke, allows},
		"for the chat, taken back": {queue.Chat, nil, toolRun(), func(t *testing.T, b *bench, _ *memory) {
			if err := b.book.TakeBack(&call.Caller{Chat: "stdio-1"}, b.book.Chats.Of("stdio-1")[0].Digest); err != nil {
				t.Fatal(err)
			}
		}, asks},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memory)
			options := []func(*Options){everywhere, func(o *Options) { o.Grants = store }}
			if c.option != nil {
				options = append(options, c.option)
			}
			b := newBench(t, options...)
			b.page(b.left(c.req), c.decision)
			if c.end != nil {
				c.end(t, b, store)
			}
			if got := b.outcome(c.req); !strings.Contains(got, c.want) {
				t.Errorf("the call, made again: %s, want %s", got, c.want)
			}
		})
	}
}

func revoke(t *testing.T, _ *bench, m *memory) {
	if err := m.Update(func([]grants.Grant) ([]grants.Grant, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
}

func voidAll(t *testing.T, b *bench, m *memory) {
	// Another call finds the pack changed; then the pack is as before again.
	b.outcome(with(toolRun(), func(r *call.Request) { r.Pack.Digest = "sha256:ff" }))
	if m.grants[0].Void == nil {
		t.Fatal("the grant is not void")
	}
}

// TestInvalidAnswers: a state that is made up, spent, too old or of another call is
// the client's mistake, and is distinguished from what changed meanwhile.
func TestInvalidAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		req     func(call.Request) call.Request
		answer  func(*bench, *Question) *answers.Answer
		invalid bool
	}{
		"made up":          {nil, func(*bench, *Question) *answers.Answer { return accept("x.y", "once") }, true},
		"tampered":         {nil, func(_ *bench, q *Question) *answers.Answer { return accept(q.State+"-", "once") }, true},
		"no state":         {nil, func(*bench, *Question) *answers.Answer { return accept("", "once") }, false},
		"expired":          {nil, func(b *bench, q *Question) *answers.Answer { b.pass(time.Hour); return accept(q.State, "once") }, true},
		"of an ended chat": {nil, func(b *bench, q *Question) *answers.Answer { b.EndChat("stdio-1"); return accept(q.State, "once") }, true},
		"of another server": {nil, func(b *bench, _ *Question) *answers.Answer {
			return accept(newBench(b.t).ask(openCall()).State, "once")
		}, true},
		"another chat":   {func(r call.Request) call.Request { r.Caller.Chat = "2"; return r }, nil, true},
		"another person": {func(r call.Request) call.Request { r.Caller.Person = "grace"; return r }, nil, true},
		"another method": {func(r call.Request) call.Request { r.Method = "resources/read"; return r }, nil, true},
		"other arguments": {func(r call.Request) call.Request {
			r.Arguments = call.ParseArguments([]byte(`{"pack_id":"triage","arguments":"x"}`))
			return r
		}, nil, true},
		"another kind":       {func(call.Request) call.Request { return readCall() }, nil, true},
		"a prompt":           {func(r call.Request) call.Request { r.Caller.Act = true; return r }, nil, true},
		"the pack changed":   {func(r call.Request) call.Request { r.Pack.Digest = "sha256:ff"; return r }, nil, false},
		"it is less trusted": {func(r call.Request) call.Request { r.Pack.Trust = call.TrustUntrusted; return r }, nil, false},
		"a no":               {nil, func(_ *bench, q *Question) *answers.Answer { return accept(q.State, "deny") }, false},
		"nonsense":           {nil, func(_ *bench, q *Question) *answers.Answer { return accept(q.State, "perhaps") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			q, req := b.ask(openCall()), openCall()
			answer := accept(q.State, "once")
			if c.answer != nil {
				answer = c.answer(b, q)
			}
			if c.req != nil {
				req = c.req(req)
			}
			_, err := b.answer(req, answer)
			b.denied(err, "")
			e, ok := errors.AsType[*DeniedError](err)
			if !ok || e.Invalid != c.invalid {
				t.Errorf("error = %+v, want one that is invalid: %v", err, c.invalid)
			}
		})
	}
	b := newBench(t)
	for state, invalid := range map[string]bool{"": false, "x.y": true, b.ask(openCall()).State: false} {
		e, ok := errors.AsType[*DeniedError](b.Refuse(call.Request{Caller: openCall().Caller, Method: "m"}, accept(state, "once"), "it is gone"))
		if !ok || e.Invalid != invalid {
			t.Errorf("Refuse(%.5q) = %+v, want one that is invalid: %v", state, e, invalid)
		}
	}
}
