package gate

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// AP-01: an answer to a question that was never asked allows nothing.
func TestUnsolicitedAnswer(t *testing.T) {
	for name, a := range map[string]*answers.Answer{
		"accept without a state":         accept("", "once"),
		"accept for the chat":            accept("", "chat"),
		"decline without a state":        answers.FromForm("", "decline", nil),
		"an empty answer":                {},
		"accept with the choice's title": answers.FromForm("", "accept", map[string]any{"decision": "Run once"}),
	} {
		for _, req := range []call.Request{toolRun(), openCall(), listCall(), with(toolRun(), func(r *call.Request) { r.Caller.CanAsk = false })} {
			t.Run(name+"/"+req.Method, func(t *testing.T) {
				b := newBench(t)
				_, err := b.answer(req, a)
				b.denied(err, "nobody asked for")
				if n := len(b.log.all()); n != 1 {
					t.Errorf("%d lines in the log, want 1", n)
				}
			})
		}
	}
	t.Run("under a grant", func(t *testing.T) {
		b := newBench(t)
		b.approve(toolRun(), queue.Chat)
		_, err := b.answer(toolRun(), accept("", "once"))
		b.denied(err, "nobody asked for")
	})
}

// AP-02: states that this gate did not make, down to a single changed bit.
func TestForgedState(t *testing.T) {
	b := newBench(t)
	req := toolRun()
	state := b.ask(req).State
	body, mac, _ := strings.Cut(state, ".")
	other := b.ask(req).State
	otherBody, otherMAC, _ := strings.Cut(other, ".")

	forged := []string{
		"x", ".", "..", body, body + ".", "." + mac, mac + "." + body, state + ".", state + "." + mac,
		body + "." + otherMAC, otherBody + "." + mac, body + body + "." + mac,
		state + "\n", "\n" + state, strings.Replace(state, ".", "\r\n.", 1), " " + state, state + "=", state + "\x00",
		strings.ToUpper(state), strings.ToLower(state), strings.Repeat("A", 1<<20),
	}
	for i := range len(state) {
		forged = append(forged, state[:i], state[:i]+state[i+1:], state[:i]+"\n"+state[i:])
		for bit := range 8 {
			flipped := []byte(state)
			flipped[i] ^= 1 << bit
			forged = append(forged, string(flipped))
		}
	}
	forged = slices.DeleteFunc(forged, func(s string) bool { return s == "" }) // that is not a state at all
	for _, s := range forged {
		_, err := b.answer(req, accept(s, "once"))
		if !errors.Is(err, ErrDenied) {
			t.Fatalf("Check(state %q) = %v, want a denial", s, err)
		}
		if want := "not one this server made"; !strings.Contains(err.Error(), want) {
			t.Errorf("Check(state %q) = %v, want %q", s, err, want)
		}
	}
	b.Close() // writes the line that counts those beyond the bound
	if all, counted := b.log.all(), b.log.last().Count; len(all)-1 != linesOfChat || len(all)-1+counted != len(forged) {
		t.Errorf("%d lines in the log, of which the last counts %d, for %d forged states", len(all), counted, len(forged))
	}
	// The real state is still valid after all that.
	if _, err := b.answer(req, accept(state, "once")); err != nil {
		t.Errorf("Check(the real state) = %v", err)
	}
}

// AP-03 and AP-07: a state is only valid for the exact call for which it was made.
func TestStateOfAnotherCall(t *testing.T) {
	changes := map[string]struct {
		of     func() call.Request
		change func(*call.Request)
	}{
		"other arguments": {toolRun, func(r *call.Request) { r.Arguments = call.ParseArguments(json.RawMessage(`{"who":"Eve"}`)) }},
		"one argument more": {openCall, func(r *call.Request) {
			r.Arguments = call.ParseArguments(json.RawMessage(`{"pack_id":"triage","n":1}`))
		}},
		"other argv":          {toolRun, func(r *call.Request) { r.Run.Command.Args = []string{"Eve"} }},
		"argv cut elsewhere":  {execRun, func(r *call.Request) { r.Run.Command.Args = []string{"log --oneline"} }},
		"other bytes in argv": {execRun, func(r *call.Request) { r.Run.Command.Args[0] = "\xff" }},
		"another tool":        {toolRun, func(r *call.Request) { r.Run.Tool = "wipe" }},
		"another definition":  {toolRun, func(r *call.Request) { r.Run.Definition = "00" }},
		"another program":     {toolRun, func(r *call.Request) { r.Run.Command.Program.Path = "/bin/rm" }},
		"other program bytes": {toolRun, func(r *call.Request) { r.Run.Command.Program.Digest = "00" }},
		"another pack digest": {toolRun, func(r *call.Request) { r.Pack.Digest = "00" }},
		"another chat":        {toolRun, func(r *call.Request) { r.Caller.Chat = "stdio-2" }},
		"another person":      {toolRun, func(r *call.Request) { r.Caller.Person = "grace" }},
		"other input":         {toolRun, func(r *call.Request) { r.Run.Command.Stdin = []byte("{}") }},
		"another variable":    {toolRun, func(r *call.Request) { r.Run.Command.Env[0] = "HOME=/root" }},
		"another path":        {readCall, func(r *call.Request) { r.Path = "../secret" }},
		"another document":    {openCall, func(r *call.Request) { r.Hidden = "12 invisible characters (12 tag)" }},
		"more tools":          {enableCall, func(r *call.Request) { r.Tools = append(r.Tools, "wipe") }},
		"another kind":        {openCall, func(r *call.Request) { r.Kind, r.Tools = call.KindEnable, []string{"wipe"} }},
		"a run":               {openCall, func(r *call.Request) { *r = toolRun() }},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			q := b.ask(c.of())
			_, err := b.answer(with(c.of(), c.change), accept(q.State, "once"))
			b.denied(err, "another call")
			if name == "another chat" || name == "another person" {
				return // see TestStateOfAnotherPerson
			}
			// Now it is also spent for its own call.
			_, err = b.answer(c.of(), accept(q.State, "once"))
			b.denied(err, "used before")
		})
	}
	t.Run("another sandbox level", func(t *testing.T) {
		b := newBench(t)
		q := b.ask(toolRun())
		b.runner.setLevel(sandbox.LevelPartial)
		_, err := b.answer(toolRun(), accept(q.State, "once"))
		b.denied(err, "another call")
	})
	t.Run("the same, spelled differently", func(t *testing.T) {
		b := newBench(t)
		req := with(openCall(), func(r *call.Request) {
			r.Arguments = call.ParseArguments(json.RawMessage(`{"pack_id":"triage","arguments":"a<b"}`))
		})
		q := b.ask(req)
		req.Arguments = call.ParseArguments(json.RawMessage(`{ "arguments" : "a\u003cb", "pack_id" : "triage" }`))
		req.Caller.Call, req.Caller.Client, req.Caller.CanAsk = "call-2", "other", false
		if _, err := b.answer(req, accept(q.State, "once")); err != nil {
			t.Errorf("Check() = %v, want a permit", err)
		}
	})
}

// TestStateOfAnotherPerson: if a state comes from another chat or person, its sender learns
// and spends nothing. Its owner can still answer, once, even if both come at the same
// time.
func TestStateOfAnotherPerson(t *testing.T) {
	strangers := map[string]call.Caller{
		"another chat":                    {Chat: "stdio-2"},
		"another person":                  {Chat: "stdio-1", Person: "grace"},
		"another person, in another chat": {Chat: "http-2", Person: "grace"},
	}
	for name, who := range strangers {
		theirs := func(r call.Request) call.Request {
			r.Caller.Chat, r.Caller.Person = who.Chat, who.Person
			return r
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everywhere)
			q := b.ask(carrying(toolRun()))
			_, err := b.answer(theirs(carrying(toolRun())), accept(q.State, "once"))
			b.denied(err, "another call")
			b.denied(b.Refuse(theirs(call.Request{Caller: toolRun().Caller}), accept(q.State, "deny"), "no such tool"), "another call")
			ctx, cancel := cancelled(t)
			cancel()
			_, _, err = b.Check(ctx, theirs(carrying(toolRun())), accept(q.State, "once"))
			b.denied(err, "cancelled")
			if got := b.codes(); !slices.Equal(got, []string{q.Code}) {
				t.Fatalf("Pending() = %q, want the question %q as it was", got, q.Code)
			}
			if _, err := b.answer(carrying(toolRun()), accept(q.State, "once")); err != nil {
				t.Errorf("the answer of whose question it is: %v", err)
			}
			_, err = b.answer(carrying(toolRun()), accept(q.State, "once"))
			b.denied(err, "used before")
		})
		t.Run(name+", at once", func(t *testing.T) {
			b := newBench(t, everywhere)
			q := b.ask(carrying(toolRun()))
			var wg sync.WaitGroup
			var own, others atomic.Int32
			for i := range 12 {
				wg.Go(func() {
					req, wins := carrying(toolRun()), &own
					if i%2 == 0 {
						req, wins = theirs(req), &others
					}
					if permit, _, _ := b.Check(t.Context(), req, accept(q.State, "once")); permit != nil {
						wins.Add(1)
					}
				})
			}
			wg.Wait()
			if own.Load() != 1 || others.Load() != 0 {
				t.Errorf("%d permits for whose question it is and %d for others, want 1 and 0", own.Load(), others.Load())
			}
		})
	}
}

// AP-04: a state works once, for a limited time, in this process.
func TestStateWorksOnce(t *testing.T) {
	b := newBench(t)
	req := toolRun()
	q := b.ask(req)
	if _, err := b.answer(req, accept(q.State, "once")); err != nil {
		t.Fatal(err)
	}
	_, err := b.answer(req, accept(q.State, "once"))
	b.denied(err, "used before")

	for name, a := range map[string]*answers.Answer{
		"denied":    accept("", "deny"),
		"declined":  answers.FromForm("", "decline", nil),
		"cancelled": answers.FromForm("", "cancel", nil),
		"malformed": accept("", "always"),
		"silence":   {Reason: "nobody answered within 45s"},
	} {
		t.Run("after it was "+name, func(t *testing.T) {
			b := newBench(t)
			a.State = b.ask(req).State
			if _, err := b.answer(req, a); !errors.Is(err, ErrDenied) {
				t.Fatalf("Check() = %v, want a denial", err)
			}
			_, err := b.answer(req, accept(a.State, "once"))
			b.denied(err, "used before")
		})
	}
	t.Run("after its call was cancelled", func(t *testing.T) {
		b := newBench(t)
		q := b.ask(req)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err := b.Check(ctx, req, accept(q.State, "once"))
		b.denied(err, "cancelled")
		_, err = b.answer(req, accept(q.State, "once"))
		b.denied(err, "used before")
	})
	t.Run("after the log failed", func(t *testing.T) {
		b := newBench(t)
		q := b.ask(req)
		b.log.fail = func(audit.Entry) error { return errDisk }
		if _, err := b.answer(req, accept(q.State, "once")); !errors.Is(err, ErrDenied) {
			t.Errorf("Check() = %v, want a denial", err)
		}
		b.log.fail = nil
		_, err := b.answer(req, accept(q.State, "once"))
		b.denied(err, "used before")
	})
	t.Run("after the chat ended", func(t *testing.T) {
		b := newBench(t)
		q := b.ask(req)
		b.EndChat(req.Caller.Chat)
		_, err := b.answer(req, accept(q.State, "once"))
		b.denied(err, "used before, or is too old")
	})
	t.Run("after a restart", func(t *testing.T) {
		q := newBench(t).ask(req)
		b := newBench(t)
		_, err := b.answer(req, accept(q.State, "once"))
		b.denied(err, "not one this server made")
	})
	t.Run("expiry", func(t *testing.T) {
		b := newBench(t)
		early, late := b.ask(req), b.ask(req)
		if want := b.time.Add(10 * time.Minute); !late.Expires.Equal(want) {
			t.Errorf("Expires = %v, want %v", late.Expires, want)
		}
		b.pass(10 * time.Minute)
		if _, err := b.answer(req, accept(early.State, "once")); err != nil {
			t.Errorf("Check(at the expiry) = %v, want a permit", err)
		}
		b.pass(time.Nanosecond)
		_, err := b.answer(req, accept(late.State, "once"))
		b.denied(err, "too old")
		b.pass(-time.Hour) // the clock goes back; a late answer is still too late
		_, err = b.answer(req, accept(late.State, "once"))
		b.denied(err, "used before, or is too old")
	})
	t.Run("50 at once", func(t *testing.T) {
		b := newBench(t)
		q := b.ask(req)
		var (
			wg   sync.WaitGroup
			wins atomic.Int32
		)
		for range 50 {
			wg.Go(func() {
				permit, _, err := b.Check(t.Context(), req, accept(q.State, "once"))
				if err != nil {
					return
				}
				wins.Add(1)
				if _, err := permit.Run(t.Context()); err != nil {
					t.Errorf("Run() = %v", err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 || b.runner.count() != 1 {
			t.Errorf("%d permits and %d runs for one answer, want 1 and 1", wins.Load(), b.runner.count())
		}
		if n := len(b.log.all()); n != 52 { // 50 decisions, start and end
			t.Errorf("%d lines in the log, want 52", n)
		}
	})
}

// AP-05: what is not clearly a yes is a no.
func TestDoubtfulAnswers(t *testing.T) {
	form := func(v any) map[string]any { return map[string]any{"decision": v} }
	for name, c := range map[string]struct {
		answer answers.Answer
		reason string
	}{
		"declined":                   {*answers.FromForm("", "decline", nil), "the person declined"},
		"declined with a yes in it":  {*answers.FromForm("", "decline", form("once")), "the person declined"},
		"cancelled":                  {*answers.FromForm("", "cancel", form("once")), "closed without an answer"},
		"no action":                  {*answers.FromForm("", "", form("once")), "there was no answer"},
		"no action, with the reason": {answers.Answer{Reason: "nobody answered within 45s"}, "nobody answered within 45s"},
		"another action":             {*answers.FromForm("", "yes", form("once")), "malformed"},
		"the action in capitals":     {*answers.FromForm("", "Accept", form("once")), "malformed"},
		"the action with a space":    {*answers.FromForm("", "accept ", form("once")), "malformed"},
		"no content":                 {*answers.FromForm("", "accept", nil), "no form was filled in"},
		"an empty form":              {*answers.FromForm("", "accept", map[string]any{}), `no "decision"`},
		"a nil form":                 {*answers.FromForm("", "accept", map[string]any(nil)), `no "decision"`},
		"another field":              {*answers.FromForm("", "accept", map[string]any{"Decision": "once"}), `no "decision"`},
		"a string":                   {*answers.FromForm("", "accept", "once"), "no form was filled in"},
		"a list":                     {*answers.FromForm("", "accept", []any{"once"}), "no form was filled in"},
		"JSON as text":               {*answers.FromForm("", "accept", `{"decision":"once"}`), "no form was filled in"},
		"true":                       {*answers.FromForm("", "accept", true), "no form was filled in"},
		"decision true":              {*answers.FromForm("", "accept", form(true)), `no "decision"`},
		"decision 1":                 {*answers.FromForm("", "accept", form(1.0)), `no "decision"`},
		"decision nil":               {*answers.FromForm("", "accept", form(nil)), `no "decision"`},
		"decision a list":            {*answers.FromForm("", "accept", form([]any{"once"})), `no "decision"`},
		"decision a list of words":   {*answers.FromForm("", "accept", form([]string{"once"})), `no "decision"`},
		"decision an object":         {*answers.FromForm("", "accept", form(map[string]any{"value": "once"})), `no "decision"`},
		"decision empty":             {*answers.FromForm("", "accept", form("")), "none of the choices"},
		"decision always":            {*answers.FromForm("", "accept", form("always")), "none of the choices"},
		"decision in capitals":       {*answers.FromForm("", "accept", form("ONCE")), "none of the choices"},
		"decision with a space":      {*answers.FromForm("", "accept", form("once ")), "none of the choices"},
		"decision by its title":      {*answers.FromForm("", "accept", form("Once: this exact call")), "none of the choices"},
		"decision deny":              {*answers.FromForm("", "accept", form("deny")), "chose to deny"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			a := c.answer
			a.State, a.Channel = b.ask(toolRun()).State, "elicitation"
			b.pass(personTime)
			_, err := b.answer(toolRun(), &a)
			b.denied(err, c.reason)
			d, ok := errors.AsType[*DeniedError](err)
			if !ok || d.Hint == "" {
				t.Errorf("error = %#v, want a hint", err)
			}
			if e := b.log.last(); e.Channel != "elicitation" {
				t.Errorf("channel = %q", e.Channel)
			}
			if n := len(b.log.all()); n != 1 {
				t.Errorf("%d lines in the log, want 1", n)
			}
			if got := b.outcome(toolRun()); got != asks {
				t.Errorf("afterwards: %s, want %s", got, asks)
			}
		})
	}
}

func TestClientThatCannotAsk(t *testing.T) {
	for _, req := range []call.Request{toolRun(), execRun(), openCall(), readCall(), enableCall()} {
		b := newBench(t)
		req.Caller.CanAsk = false
		permit, q, err := b.Check(t.Context(), req, nil)
		if permit != nil || q != nil {
			t.Errorf("Check(%s) = %v, %v, want a denial", req.Kind, permit, q)
		}
		b.denied(err, "cannot show questions")
		if d, ok := errors.AsType[*DeniedError](err); !ok || !strings.Contains(d.Hint, "packs-mcp try") || !d.Unasked {
			t.Errorf("Check(%s) = %#v, want a hint with the way in a terminal, and that nobody was asked", req.Kind, err)
		}
		// A person's own denial is different.
		req.Caller.CanAsk = true
		_, err = b.answer(req, accept(b.ask(req).State, "deny"))
		if d, ok := errors.AsType[*DeniedError](err); !ok || d.Unasked {
			t.Errorf("Check(%s, deny) = %#v, want a denial that a person decided", req.Kind, err)
		}
	}
}

// AP-06: twenty calls of one command are twenty questions, decisions and runs.
func TestConcurrentCalls(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			req := toolRun()
			req.Caller.Call = "call-" + string(rune('a'+i))
			_, q, err := b.Check(t.Context(), req, nil)
			if err != nil || q == nil {
				t.Errorf("Check() = %v, %v, want a question", q, err)
				return
			}
			permit, _, err := b.Check(t.Context(), req, accept(q.State, "once"))
			if err != nil {
				t.Errorf("Check(the answer) = %v", err)
				return
			}
			if _, err := permit.Run(t.Context()); err != nil {
				t.Errorf("Run() = %v", err)
			}
			if _, err := permit.Run(t.Context()); !errors.Is(err, ErrSpent) {
				t.Errorf("second Run() = %v, want %v", err, ErrSpent)
			}
		})
	}
	wg.Wait()
	if n := b.runner.count(); n != 20 {
		t.Errorf("%d runs, want 20", n)
	}
	events := make(map[audit.Event]map[string]string) // event → call → run
	for _, e := range b.log.all() {
		if events[e.Event] == nil {
			events[e.Event] = make(map[string]string)
		}
		if e.Run == "" || events[e.Event][e.Call] != "" {
			t.Errorf("%s of %s has run %q", e.Event, e.Call, e.Run)
		}
		events[e.Event][e.Call] = e.Run
	}
	decisions := events[audit.EventDecision]
	if len(decisions) != 20 {
		t.Errorf("%d calls have a decision, want 20", len(decisions))
	}
	for _, event := range []audit.Event{audit.EventRunStart, audit.EventRunEnd} {
		for c, run := range decisions {
			if events[event][c] != run {
				t.Errorf("%s of %s is %q, want that of its decision, %q", event, c, events[event][c], run)
			}
		}
	}
}

// TestPermitIsACopy: changing the request after it was approved does not change what
// runs.
func TestPermitIsACopy(t *testing.T) {
	b := newBench(t)
	req := grantedRun()
	permit := b.approve(req, queue.Once)
	req.Run.Command.Args[0] = "evil"
	req.Run.Command.Program.Needs[0] = "/"
	req.Run.Policy.Layers[0].Folder = "/nothing"
	req.Run.Command.Env[0] = "LD_PRELOAD=evil"
	req.Run.Command.Program.Path = "/bin/evil"
	req.Pack.Digest = "evil"
	req.Run.Policy.Writable[0] = "/"
	if _, err := permit.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, want := b.runner.started[0], grantedRun().Run.Command
	if !reflect.DeepEqual(got.Program, want.Program) || !slices.Equal(got.Args, want.Args) {
		t.Errorf("started %q %q, want %q %q", got.Program.Path, got.Args, want.Program.Path, want.Args)
	}
	if want := append(want.Env, "PACKS_RUN_ID="+permit.RunID()); !slices.Equal(got.Env, want) {
		t.Errorf("environment = %q, want %q", got.Env, want)
	}
	if got.RunID != permit.RunID() || permit.RunID() == "" {
		t.Errorf("run id = %q, want %q", got.RunID, permit.RunID())
	}
	if permit.Digest() != toolRun().Pack.Digest {
		t.Errorf("Digest() = %q", permit.Digest())
	}
}

func TestRunNeedsARun(t *testing.T) {
	b := newBench(t)
	for _, req := range []call.Request{openCall(), readCall(), enableCall()} {
		permit := b.approve(req, queue.Once)
		if permit.RunID() != "" {
			t.Errorf("%s: RunID() = %q", req.Kind, permit.RunID())
		}
		if _, err := permit.Run(t.Context()); !errors.Is(err, ErrDenied) {
			t.Errorf("%s: Run() = %v, want a denial", req.Kind, err)
		}
	}
	if _, err := new(Permit).Run(t.Context()); !errors.Is(err, ErrDenied) {
		t.Errorf("zero Permit: Run() = %v, want a denial", err)
	}
	if b.runner.count() != 0 {
		t.Error("something was started")
	}
}

func TestLevelChangedBeforeTheRun(t *testing.T) {
	b := newBench(t)
	b.runner.setLevel(sandbox.LevelFull)
	permit := b.approve(toolRun(), queue.Once)
	b.runner.setLevel(sandbox.LevelNone)
	_, err := permit.Run(t.Context())
	b.denied(err, `"full" when this was approved, and is "none"`)
	if b.runner.count() != 0 {
		t.Error("it was started")
	}
}

func TestZeroDecisionIsDeny(t *testing.T) {
	var d queue.Decision
	if d != queue.Deny || d.String() != "deny" {
		t.Errorf("the zero Decision is %q, want deny", d)
	}
}
