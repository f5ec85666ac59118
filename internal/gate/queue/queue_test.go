package queue

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A bench is a queue with a clock that a test can set.
type bench struct {
	*Queue
	t    *testing.T
	time time.Time
}

func newBench(t *testing.T, people int, most Size) *bench {
	t.Helper()
	b := &bench{t: t, time: time.Unix(1_800_000_000, 0)}
	q, err := New(Options{Now: func() time.Time { return b.time }, People: people, Most: most})
	if err != nil {
		t.Fatal(err)
	}
	b.Queue = q
	return b
}

// aRequest is a call of a person's chat.
func aRequest(person, chat string, n int) call.Request {
	return call.Request{
		Caller: call.Caller{Person: person, Chat: person + "-" + chat}, Kind: call.KindRun, Method: "capability_packs_call_tool",
		Pack:      call.Pack{ID: "triage", Dir: "/packs/triage", Trust: call.TrustUser, Digest: "sha256:ab"},
		Arguments: call.ParseArguments([]byte(`{"who":"Ada"}`)),
		Run:       &call.Run{Tool: "greet", Command: sandbox.Command{Args: []string{fmt.Sprint(n)}}},
	}
}

func aCall(person, chat string, n int) *call.Call { return call.Freeze(aRequest(person, chat, n), 0) }

// wait is how long questions of these tests can be answered.
const wait = 10 * time.Minute

// ask does what the gate does with a call: it takes the answer to an earlier one, or
// asks. If there is an error, nothing was asked.
func (b *bench) ask(c *call.Call, holder Holder) (*Ticket, *Ruling, error) {
	var waits time.Time
	if holder == HeldByCall {
		waits = b.time.Add(time.Minute)
	}
	left, answer, err := b.Again(c, holder, waits, nil)
	switch {
	case err != nil:
		return nil, nil, err
	case answer != nil:
		return nil, answer, nil
	case left != nil:
		ticket, err := b.Renew(left, holder, waits, b.time.Add(wait), "")
		return ticket, nil, err
	}
	ticket, err := b.Add(&Entry{Call: c}, Pending{
		Chat: c.Caller.Chat, Person: c.Caller.Person, Card: prompt.Card{Command: strings.Repeat("a line\n", 50) + strings.Join(c.Run.Command.Args, " ")},
		Choices: []Choice{{Value: "once"}, {Value: "deny"}}, Asked: b.time, Waits: waits, Expires: b.time.Add(wait),
	}, holder)
	return ticket, nil, err
}

// asked is ask for a call that must be asked about.
func (b *bench) asked(c *call.Call, holder Holder) *Ticket {
	b.t.Helper()
	ticket, answer, err := b.ask(c, holder)
	if ticket == nil || err != nil {
		b.t.Fatalf("asking: %v, %v, %v, want a ticket", ticket, answer, err)
	}
	return ticket
}

// rule decides as the gate does, and settles the ruling if no call waits for it.
func (b *bench) rule(code string, d Decision) {
	b.t.Helper()
	r, err := b.Rule(code, Verdict{Decision: d, Channel: ChannelPage}, wait)
	if err != nil {
		b.t.Fatalf("Rule(%s, %s) = %v", code, d, err)
	}
	if r.Late() {
		r.Settle("", nil)
	}
}

// others returns the questions of everybody but one person, with what was decided.
func (b *bench) others(person string) (all []string) {
	defer b.lock()()
	for code, e := range b.entries {
		if e.person() != person {
			all = append(all, fmt.Sprint(code, " ", e.ruling != nil, " ", e.shown.Answered))
		}
	}
	slices.Sort(all)
	return all
}

// bounded fails unless the queue's accounts are right and its bounds hold.
func (b *bench) bounded() {
	b.t.Helper()
	defer b.lock()()
	var all Size
	for _, e := range b.entries {
		all = all.plus(e.size)
		if used := b.used(e.person()); !used.within(b.share) {
			b.t.Fatalf("%q uses %+v of %+v", e.person(), used, b.share)
		}
	}
	if all != b.all || !all.within(b.most) {
		b.t.Fatalf("the questions take up %+v, written down as %+v, of %+v", all, b.all, b.most)
	}
}

// TestRoomAtRandom: people act at random, in any order. A question ends only because
// of its own person or its age, no denial is asked about again, and the bounds hold.
func TestRoomAtRandom(t *testing.T) {
	people := []string{"ada", "grace", "", "greedy"}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		b := newBench(t, len(people), Size{24, 40_000, 60_000})
		type denial struct {
			chat string
			end  time.Time
		}
		denied := make(map[string]denial) // :: exact call → until when it is denied
		for step := range 1000 {
			who := people[r.IntN(len(people))]
			if r.IntN(2) == 0 {
				who = "greedy"
			}
			req := aRequest(who, fmt.Sprint(r.IntN(3)), r.IntN(12))
			if r.IntN(6) == 0 {
				req.Run.Command.Args = append(req.Run.Command.Args, strings.Repeat("long ", r.IntN(1500)))
			}
			c, holder := call.Freeze(req, 0), HeldByCall
			if r.IntN(2) == 0 {
				holder = HeldByClient
			}
			b.time = b.time.Add(time.Millisecond)
			before := b.others(who)
			switch what := r.IntN(10); {
			case what < 8:
				ticket, answer, err := b.ask(c, holder)
				if until, ok := denied[c.Digest()]; ok {
					delete(denied, c.Digest()) // reported once
					if !b.time.After(until.end) && (answer == nil || answer.Decision != Deny) {
						t.Fatalf("seed %d, step %d: a call that was denied: %v, %v, %v", seed, step, ticket, answer, err)
					}
				}
				if ticket == nil || r.IntN(4) == 0 {
					break
				}
				if holder == HeldByCall {
					b.Leave(ticket.Nonce, "")
				}
				switch r.IntN(4) {
				case 0:
					b.rule(ticket.Shown.Code, Once)
				case 1:
					b.rule(ticket.Shown.Code, Deny)
					denied[c.Digest()] = denial{c.Caller.Chat, b.time.Add(wait)}
				}
			case what == 8 && r.IntN(10) == 0:
				maps.DeleteFunc(denied, func(_ string, d denial) bool { return d.chat == c.Caller.Chat })
				b.Forget(c.Caller.Chat)
			default:
				b.time = b.time.Add(time.Duration(r.IntN(30)) * time.Second)
				before = b.others(who) // what has expired by now
			}
			if after := b.others(who); !slices.Equal(before, after) {
				t.Fatalf("seed %d, step %d: what %q did changed the questions of others\nfrom %q\nto   %q", seed, step, who, before, after)
			}
			b.bounded()
		}
	}
}

// crowd adds n questions of a chat to the queue.
func (b *bench) crowd(chat string, n int, holder Holder) {
	for i := range n {
		code := fmt.Sprintf("%04d-%04d", i, i) // made of digits that codes do not have
		b.all.Questions++
		b.entries[code] = &Entry{
			size: Size{Questions: 1}, Call: aCall("", chat, i), nonce: code, holder: holder, decided: make(chan struct{}), taken: make(chan struct{}),
			shown: Pending{Code: code, Chat: chat, Asked: b.time, Expires: b.time.Add(wait)},
		}
	}
}

// TestMakesRoom: a chat that asks and never waits loses only its own questions, and a
// call that waits never loses its question.
func TestMakesRoom(t *testing.T) {
	b := newBench(t, 1, Size{})
	waits, honest := b.asked(aCall("", "1", 1), HeldByCall), b.asked(aCall("", "honest", 1), HeldByClient)
	first := b.asked(aCall("", "greedy", 1), HeldByClient)
	b.time = b.time.Add(time.Millisecond)
	b.crowd("greedy", maxPending-4, HeldByClient)
	last := b.asked(aCall("", "greedy", 1), HeldByClient)
	late := b.asked(aCall("", "late", 1), HeldByClient)
	if n := len(b.entries); n != maxPending {
		t.Errorf("%d calls are pending, want at most %d", n, maxPending)
	}
	for name, ticket := range map[string]*Ticket{"waits": waits, "honest": honest, "late": late, "greedy, the last": last} {
		if b.entries[ticket.Shown.Code] == nil {
			t.Errorf("%s: its question is gone", name)
		}
	}
	_, err := b.Rule(first.Shown.Code, Verdict{Decision: Once}, wait)
	if e, ok := errors.AsType[*CodeError](err); !ok || e.Problem != CodeWithdrawn {
		t.Errorf("Rule(the first of the greedy chat) = %v, want %s", err, CodeWithdrawn)
	}
	if _, err := b.Redeem(first.State, aCall("", "greedy", 1)); !errors.Is(err, ErrSpent) {
		t.Errorf("its state: %v, want %v", err, ErrSpent)
	}
}

// TestFull: a queue full of calls that wait accepts no other, and keeps nothing of
// what it refused.
func TestFull(t *testing.T) {
	b := newBench(t, 1, Size{})
	b.crowd("1", maxPending, HeldByCall)
	if ticket, _, err := b.ask(aCall("", "1", maxPending), HeldByCall); !errors.Is(err, ErrFull) {
		t.Errorf("one call more: %v, %v, want %v", ticket, err, ErrFull)
	}
	b = newBench(t, 1, Size{Text: 100})
	if ticket, _, err := b.ask(aCall("", "1", 1), HeldByCall); !errors.Is(err, ErrTooLong) {
		t.Errorf("a long question: %v, %v, want %v", ticket, err, ErrTooLong)
	}
	if n := len(b.states.open) + len(b.entries) + len(b.ended); n != 0 {
		t.Errorf("%d states, questions and codes are left, want none", n)
	}
}

// TestEndsTakeTheState: whatever ends a question frees its state and its place, and
// its end is reported.
func TestEndsTakeTheState(t *testing.T) {
	for name, end := range map[string]func(b *bench, asked *Ticket){
		"finished": func(b *bench, asked *Ticket) { b.Finish(asked.Nonce, CodeAnswered, "") },
		"redeemed, then finished": func(b *bench, asked *Ticket) {
			if nonce, err := b.Redeem(asked.State, aCall("ada", "1", 1)); err != nil || nonce != asked.Nonce {
				b.t.Errorf("Redeem() = %q, %v, want %q", nonce, err, asked.Nonce)
			}
			b.Finish(asked.Nonce, CodeAnswered, "")
		},
		"of another call": func(b *bench, asked *Ticket) {
			if nonce, err := b.Redeem(asked.State, aCall("ada", "1", 2)); !errors.Is(err, ErrOther) || nonce != asked.Nonce {
				b.t.Errorf("Redeem() = %q, %v, want %q, %v", nonce, err, asked.Nonce, ErrOther)
			}
			b.Finish(asked.Nonce, CodeWithdrawn, "")
		},
		"expired":    func(b *bench, _ *Ticket) { b.time = b.time.Add(wait + time.Second) },
		"chat ended": func(b *bench, _ *Ticket) { b.Forget("ada-1") },
		"client gone": func(b *bench, asked *Ticket) {
			b.Leave(asked.Nonce, "")
			b.Abandon("ada-1")
		},
		"withdrawn": func(b *bench, asked *Ticket) { b.Withdraw(b.find(asked.Nonce), "") },
		"dropped":   func(b *bench, asked *Ticket) { b.Drop(b.find(asked.Nonce), "") },
		"answered": func(b *bench, asked *Ticket) {
			b.Leave(asked.Nonce, "")
			b.rule(asked.Shown.Code, Once)
			if _, answer, err := b.ask(aCall("ada", "1", 1), HeldByCall); answer == nil || answer.Decision != Once {
				b.t.Errorf("the call once more: %v, %v, want the answer", answer, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, Size{})
			asked := b.asked(aCall("ada", "1", 1), HeldByCall)
			end(b, asked)
			if ended := b.Ended(); len(ended) != 1 || ended[0].Code != asked.Shown.Code || ended[0].Problem == "" {
				t.Errorf("Ended() = %v, want the question alone, with its problem", ended)
			}
			if _, err := b.Rule(asked.Shown.Code, Verdict{Decision: Once}, wait); err == nil {
				t.Error("the question can still be answered")
			}
			if _, err := b.Redeem(asked.State, aCall("ada", "1", 1)); err == nil {
				t.Error("the state can still be redeemed")
			}
			if n := len(b.states.open) + len(b.entries); n != 0 || b.all != (Size{}) {
				t.Errorf("%d states and questions are left, and %+v", n, b.all)
			}
		})
	}
}

// TestForgets: a bounded number of codes that ended are remembered.
func TestForgets(t *testing.T) {
	b := newBench(t, 1, Size{})
	first := b.asked(aCall("", "1", 0), HeldByCall)
	b.Finish(first.Nonce, CodeAnswered, "")
	for range maxPast {
		b.Finish(b.asked(aCall("", "1", 0), HeldByCall).Nonce, CodeAnswered, "")
		b.Remember(Past{})
	}
	if n := len(b.ended); n != maxPast {
		t.Errorf("%d codes that ended are remembered, want %d", n, maxPast)
	}
	_, err := b.Rule(first.Shown.Code, Verdict{Decision: Once}, wait)
	if e, ok := errors.AsType[*CodeError](err); !ok || e.Problem != CodeUnknown {
		t.Errorf("Rule(the first) = %v, want %s", err, CodeUnknown)
	}
}

// TestMeasure: if any part of a request is larger, its question takes more room. The
// pack's files are shared and take none.
func TestMeasure(t *testing.T) {
	const more = 5000
	long := strings.Repeat("x", more)
	for name, c := range map[string]struct {
		change func(*call.Request)
		want   int // at least
	}{
		"client":          {func(r *call.Request) { r.Caller.Client += long }, more},
		"path":            {func(r *call.Request) { r.Path += long }, more},
		"tools":           {func(r *call.Request) { r.Tools = append(r.Tools, long) }, more},
		"fields":          {func(r *call.Request) { r.Fields = append(r.Fields, call.Field{Title: long}) }, more},
		"arguments":       {func(r *call.Request) { r.Arguments = call.ParseArguments([]byte(long)) }, more},
		"logged":          {func(r *call.Request) { r.Logged = strictjson.Write(long) }, more},
		"argv":            {func(r *call.Request) { r.Run.Command.Args = append(r.Run.Command.Args, long) }, more},
		"empty arguments": {func(r *call.Request) { r.Run.Command.Args = make([]string, more) }, 8 * more},
		"logged argv":     {func(r *call.Request) { r.Run.Logged = append(r.Run.Logged, long) }, more},
		"input":           {func(r *call.Request) { r.Run.Command.Stdin = []byte(long) }, more},
		"room for input":  {func(r *call.Request) { r.Run.Command.Stdin = make([]byte, 1, more) }, more},
		"variables":       {func(r *call.Request) { r.Run.Command.Env = append(r.Run.Command.Env, long) }, more},
		"inputs":          {func(r *call.Request) { r.Run.Inputs = append(r.Run.Inputs, call.File{Path: long}) }, more},
		"what is left out": {func(r *call.Request) {
			r.Run.Granted.LeftOut = append(r.Run.Granted.LeftOut, call.Missing{What: long})
		}, more},
		"files of the pack": {func(r *call.Request) { r.Pack.Files = make([]call.File, more) }, 0},
	} {
		measure := func(r call.Request) int { return (&Entry{Call: &call.Call{Request: r}}).measure().Kept }
		before, after := aCall("", "1", 1).Request, aCall("", "1", 1).Request // with the same capacities
		c.change(&after)
		if got := measure(after) - measure(before); got < c.want || c.want == 0 && got != 0 {
			t.Errorf("%s: %d bytes more, want %d", name, got, c.want)
		}
	}
	shown := &Entry{Call: aCall("", "1", 1), shown: Pending{Card: prompt.Card{Command: long}}}
	if got := shown.measure(); got.Text != more || got.Kept < more || got.Questions != 1 {
		t.Errorf("a question of %d bytes takes up %+v", more, got)
	}
}

// TestPartsOfTheWhole: the shares of all people together are not more than the whole.
func TestPartsOfTheWhole(t *testing.T) {
	for _, people := range []int{0, 1, 2, 3, 50, 1000} {
		b := newBench(t, people, Size{})
		n := max(1, people)
		if s := b.share; s.Questions*n > maxPending || s.Text*n > maxText || s.Kept*n > maxKept || b.states.share*n > maxOpen || s.Questions < 1 || s.Text < 1 {
			t.Errorf("%d people have %+v and %d states each", n, s, b.states.share)
		}
	}
}
