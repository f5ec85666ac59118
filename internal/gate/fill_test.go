package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// lookUp is a tool that needs to know what its user looks at.
func lookUp() call.Request {
	return with(toolRun(), func(r *call.Request) {
		r.Fields = []call.Field{{Name: "context_url", Title: "The url that the tool should work on"}}
		r.Run.Command.Args = []string{"--page", call.StandIn("context_url"), "https://a.example/?u=%3Ccontext_url%3E"}
		r.Run.Command.Env = append(r.Run.Command.Env, "PAGE="+call.StandIn("context_url"))
		r.Run.Env = append(r.Run.Env, "PAGE="+call.StandIn("context_url"))
		r.Run.Command.Stdin = []byte(`{"url":"` + call.StandIn("context_url") + `"}`)
	})
}

// filled is lookUp with a value in place of the stand-ins.
func filled(value string) call.Request {
	return with(lookUp(), func(r *call.Request) {
		r.Fields = nil
		put := func(all []string) {
			for i, s := range all {
				all[i] = strings.ReplaceAll(strings.ReplaceAll(s, call.StandIn("context_url"), value), "%3Ccontext_url%3E", "x")
			}
		}
		put(r.Run.Command.Args)
		put(r.Run.Command.Env)
		put(r.Run.Env)
		r.Run.Command.Stdin = []byte(strings.ReplaceAll(string(r.Run.Command.Stdin), call.StandIn("context_url"), value))
	})
}

// fillIn allows lookUp with a value, over one of the channels for people.
type fillIn func(b *bench, value string) *Permit

var fillIns = map[string]fillIn{
	"in the client": func(b *bench, value string) *Permit {
		a := accept(b.ask(lookUp()).State, "once")
		a.Verdict.Values["context_url"] = value
		permit, err := b.answer(lookUp(), a)
		if err != nil {
			b.t.Fatal(err)
		}
		return permit
	},
	"in a client that carries the question": func(b *bench, value string) *Permit {
		a := accept(b.ask(carrying(lookUp())).State, "once")
		a.Verdict.Values["context_url"] = value
		permit, err := b.answer(carrying(lookUp()), a)
		if err != nil {
			b.t.Fatal(err)
		}
		return permit
	},
	"on the page": func(b *bench, value string) *Permit {
		q := b.ask(lookUp())
		if _, err := b.Decide(q.Code, fills(value)); err != nil {
			b.t.Fatal(err)
		}
		permit, err := b.answer(lookUp(), b.Answered(q))
		if err != nil {
			b.t.Fatal(err)
		}
		return permit
	},
	"on the page, while the client carries it": func(b *bench, value string) *Permit {
		q := b.ask(carrying(lookUp()))
		if _, err := b.Decide(q.Code, fills(value)); err != nil {
			b.t.Fatal(err)
		}
		a := accept(q.State, "once")
		a.Verdict.Values["context_url"] = "another"
		permit, err := b.answer(carrying(lookUp()), a)
		if err != nil {
			b.t.Fatal(err)
		}
		return permit
	},
	"after the call returned": func(b *bench, value string) *Permit {
		if _, err := b.Decide(b.left(lookUp()), fills(value)); err != nil {
			b.t.Fatal(err)
		}
		permit, _, err := b.Check(b.t.Context(), lookUp(), nil)
		if err != nil {
			b.t.Fatal(err)
		}
		return permit
	},
}

func fills(value string) queue.Verdict {
	return queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage, Values: map[string]string{"context_url": value}}
}

func TestFill(t *testing.T) {
	const value = "https://example.org/a b?<context_url>\u202e"
	for name, fill := range fillIns {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everywhere, remembers)
			permit := fill(b, value)
			if diff := cmp.Diff(map[string]string{"context_url": value}, permit.Values()); diff != "" {
				t.Fatalf("Values() differ (-want +got):\n%s", diff)
			}
			permit.Values()["context_url"] = "another"
			if got := permit.Values()["context_url"]; got != value {
				t.Fatalf("Values() can be changed, to %q", got)
			}
			if _, err := permit.Run(t.Context()); !errors.Is(err, ErrDenied) {
				t.Errorf("Run() with the stand-ins = %v, want a denial", err)
			}
			n := len(b.log.all())
			full, err := permit.Fill(filled(value))
			if err != nil {
				t.Fatal(err)
			}
			if full.RunID() != permit.RunID() || !full.Covers(filled(value)) || full.Covers(lookUp()) {
				t.Error("the permit is not for the call with the values")
			}
			if _, err := permit.Fill(filled("another")); !errors.Is(err, ErrDenied) {
				t.Errorf("Fill() once more = %v, want a denial", err)
			}
			if _, err := full.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := b.runner.started[0].Args; got[1] != value || b.runner.count() != 1 {
				t.Errorf("started %q, %d times", got, b.runner.count())
			}
			if e := b.log.all()[n+1]; e.Event != audit.EventRunStart || e.Run != full.RunID() {
				t.Errorf("the line of the start = %+v", e)
			}
			// The value was for one call.
			if got := b.outcome(lookUp()); got != asks {
				t.Errorf("the next call: %s, want %s", got, asks)
			}
		})
	}
}

// TestFillNothingElse: what runs is what was shown, with the values filled in, and
// nothing else.
func TestFillNothingElse(t *testing.T) {
	for name, change := range map[string]func(*call.Request){
		"another argument":                func(r *call.Request) { r.Run.Command.Args[0] = "--exec" },
		"an argument more":                func(r *call.Request) { r.Run.Command.Args = append(r.Run.Command.Args, "x") },
		"an argument less":                func(r *call.Request) { r.Run.Command.Args = r.Run.Command.Args[:2] },
		"another variable's value":        func(r *call.Request) { r.Run.Command.Env[1] = "MODE=rude" },
		"another variable":                func(r *call.Request) { r.Run.Command.Env = append(r.Run.Command.Env, "LD_PRELOAD=x") },
		"another variable, shown":         func(r *call.Request) { r.Run.Env[0] = "MODE=rude" },
		"another program":                 func(r *call.Request) { r.Run.Command.Program.Path = "/bin/rm" },
		"other bytes of the program":      func(r *call.Request) { r.Run.Command.Program.Digest = "ff" },
		"another folder":                  func(r *call.Request) { r.Run.Command.Dir = "/" },
		"more to write":                   func(r *call.Request) { r.Run.Policy.Writable = append(r.Run.Policy.Writable, "/") },
		"more network":                    func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull },
		"another pack":                    func(r *call.Request) { r.Pack.Digest = "ff" },
		"another declaration":             func(r *call.Request) { r.Run.Definition = "ff" },
		"another tool":                    func(r *call.Request) { r.Run.Tool = "wipe" },
		"another chat":                    func(r *call.Request) { r.Caller.Chat = "stdio-2" },
		"another person":                  func(r *call.Request) { r.Caller.Person = "grace" },
		"other arguments of the call":     func(r *call.Request) { r.Arguments = call.ParseArguments(json.RawMessage(`{"who":"Eve"}`)) },
		"something still to be filled in": func(r *call.Request) { r.Fields = lookUp().Fields },
		"another kind":                    func(r *call.Request) { *r = openCall() },
		"no run":                          func(r *call.Request) { r.Run = nil },
		"another workspace":               func(r *call.Request) { r.Workspace, r.Run.Command.Workspace = "/", "/" },
		"a command instead of the tool":   func(r *call.Request) { r.Run.Tool = "" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everywhere)
			permit := fillIns["on the page"](b, "x")
			full, err := permit.Fill(with(filled("x"), change))
			if full != nil {
				t.Error("Fill() returns a permit")
			}
			b.denied(err, "changed after it was allowed")
			b.has(0, "once page", "deny")
			for _, p := range []*Permit{permit, full} {
				if p == nil {
					continue
				}
				if _, err := p.Run(t.Context()); err == nil || b.runner.count() != 0 {
					t.Errorf("Run() = %v, want nothing to start", err)
				}
			}
			if _, err := permit.Fill(filled("x")); !errors.Is(err, ErrDenied) {
				t.Errorf("Fill() after it was withheld = %v, want a denial", err)
			}
		})
	}
	t.Run("input without a value to fill in", func(t *testing.T) {
		of := func(input string) call.Request {
			return with(lookUp(), func(r *call.Request) { r.Run.Command.Stdin = []byte(input) })
		}
		b := newBench(t)
		a := accept(b.ask(of("{}")).State, "once")
		a.Verdict.Values["context_url"] = "x"
		permit, err := b.answer(of("{}"), a)
		if err != nil {
			t.Fatal(err)
		}
		_, err = permit.Fill(with(filled("x"), func(r *call.Request) { r.Run.Command.Stdin = []byte("evil") }))
		b.denied(err, "changed after it was allowed")
	})
	t.Run("without fields", func(t *testing.T) {
		b := newBench(t)
		permit := b.approve(toolRun(), queue.Once)
		if full, err := permit.Fill(toolRun()); full != permit || err != nil {
			t.Errorf("Fill() = %v, %v, want the permit itself", full, err)
		}
	})
	t.Run("twice at once", func(t *testing.T) {
		b := newBench(t, everywhere)
		permit := fillIns["on the page"](b, "x")
		done := make(chan bool)
		for range 8 {
			go func() {
				_, err := permit.Fill(filled("x"))
				done <- err == nil
			}()
		}
		n := 0
		for range 8 {
			if <-done {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d permits came out of one, want 1", n)
		}
	})
}

// Rules also apply to what was filled in.
func TestFillAndRules(t *testing.T) {
	b := newBench(t, everywhere, ruled(rules.Rule{Effect: rules.Deny, Where: "c:1", Argv: []string{"*", "--page", "file:*", "**"}}))
	permit := fillIns["on the page"](b, "file:///etc/passwd")
	_, err := permit.Fill(filled("file:///etc/passwd"))
	b.denied(err, "forbids")
	if e := b.log.last(); e.Rule != "c:1" || e.Channel != queue.ChannelRule {
		t.Errorf("last line = %+v, want the rule", e)
	}
	if _, err := permit.Run(t.Context()); err == nil {
		t.Error("it runs with the stand-ins")
	}
}

// Every channel asks for the values that the person fills in, shows them as such, and
// checks them.
func TestFields(t *testing.T) {
	b := newBench(t, everywhere, remembers)
	q := b.ask(lookUp())
	for _, words := range []string{"fill in", "The url that the tool should work on", `"<context_url>"`} {
		if !strings.Contains(unwrapped(textOf(q)), unwrapped(words)) {
			t.Errorf("the question has not %q:\n%s", words, textOf(q))
		}
	}
	if diff := cmp.Diff(lookUp().Fields, q.Fields); diff != "" {
		t.Errorf("fields differ (-want +got):\n%s", diff)
	}
	for name, v := range map[string]any{
		"nothing": nil, "empty": "", "spaces": "  ", "a number": 1, "a list": []any{"x"}, "too long": strings.Repeat("x", longestValue+1), "a NUL": "x\x00",
	} {
		b := newBench(t, everywhere)
		form := map[string]any{"decision": "once"}
		if v != nil {
			form["context_url"] = v
		}
		a := answers.FromForm(b.ask(lookUp()).State, "accept", form)
		_, err := b.answer(lookUp(), a)
		b.denied(err, "malformed")
		if d, ok := errors.AsType[*DeniedError](err); !ok || d.Code == "" {
			t.Errorf("%s: Check() = %#v, want a code under which it can still be allowed", name, err)
		}
	}
	// A person fills in nothing to deny.
	_, err := b.answer(lookUp(), accept(q.State, "deny"))
	b.denied(err, "chose to deny")
	// Only the permit has the values.
	permit := fillIns["on the page"](b, "hunter2")
	if _, err := permit.Fill(filled("hunter2")); err != nil {
		t.Fatal(err)
	}
	if told := fmt.Sprintf("%+v %+v", b.History(), b.log.all()); strings.Contains(told, "hunter2") {
		t.Errorf("the value is told:\n%s", told)
	}
}
