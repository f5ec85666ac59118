package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// balanced sets that policy, with private copies of packs.
func balanced(o *Options) { o.Policy, o.Copies = policy.Balanced, inPlace{} }

// inPlace treats each pack as its own copy.
type inPlace struct{}

func (inPlace) Copy(_ context.Context, dir, _ string) (string, func(), error) {
	return dir, func() {}, nil
}

// newBalanced returns a bench at level full under the policy balanced.
func newBalanced(t *testing.T, options ...func(*Options)) *bench {
	t.Helper()
	b := newBench(t, append([]func(*Options){remembers, balanced}, options...)...)
	b.runner.setLevel(sandbox.LevelFull)
	return b
}

// readingRun is the call of a tool that declares that it only reads.
func readingRun() call.Request {
	return with(toolRun(), func(r *call.Request) { r.Run.ReadOnly, r.Run.DeclaresReadOnly = true, true })
}

// TestBalanced: which runs need no question once the pack may be used, and that each
// of the conditions matters by itself.
func TestBalanced(t *testing.T) {
	for _, c := range []struct {
		says   string
		change func(*call.Request)
		want   string
	}{
		{"a tool that declares that it only reads", func(*call.Request) {}, allows},
		{"the same with other arguments", func(r *call.Request) {
			r.Arguments, r.Run.Command.Args = call.ParseArguments([]byte(`{"who":"Bob"}`)), []string{"Bob"}
		}, allows},
		{"one that the system has", func(r *call.Request) { r.Run.Command.Program = execRun().Run.Command.Program }, allows},
		{"one that reads the project", func(r *call.Request) {
			r.Run.Project, r.Run.Command.Dir = "/home/ada/site", "/home/ada/site"
			r.Run.Policy.ReadOnly = append(r.Run.Policy.ReadOnly, "/home/ada/site")
		}, allows},
		{"one that sets a variable", func(r *call.Request) { r.Run.Env = append(r.Run.Env, "A=b") }, allows},
		{"another tool of the pack", func(r *call.Request) { r.Run.Tool, r.Run.Definition = "look", strings.Repeat("00", 32) }, allows},

		{"one that says nothing", func(r *call.Request) { r.Run.ReadOnly, r.Run.DeclaresReadOnly = false, false }, asks},
		{"one whose format says that it only reads", func(r *call.Request) { r.Run.DeclaresReadOnly = false }, asks},
		{"a command of the model's own", func(r *call.Request) {
			*r = with(execRun(), func(r *call.Request) { r.Run.ReadOnly, r.Run.DeclaresReadOnly = true, true })
		}, asks},
		{"the loopback network", func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkLoopback }, asks},
		{"named hosts", reachesHosts, asks},
		{"the whole network", func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull }, asks},
		{"a granted variable", func(r *call.Request) { r.Run.Granted.Env = []string{"GITHUB_TOKEN"} }, asks},
		{"a granted variable that is not set", func(r *call.Request) { r.Run.Granted.Unset = []string{"GITHUB_TOKEN"} }, asks},
		{"a granted folder", func(r *call.Request) { r.Run.Granted.Folders = []string{"/srv"} }, asks},
		{"a granted folder that is not there", func(r *call.Request) { r.Run.Granted.LeftOut = []call.Missing{{What: "/srv", Why: "is not there"}} }, asks},
		{"the user's home", func(r *call.Request) { r.Run.Granted.Home = "/home/ada" }, asks},
		{"granted commits", func(r *call.Request) { r.Run.Policy.GitWrite = true }, asks},
		{"a project to change", func(r *call.Request) {
			r.Run.Policy.Layers = []sandbox.Layer{{Folder: "/home/ada/site", Kind: sandbox.LayerOverlay}}
		}, asks},
		{"a project that it would change if it could", func(r *call.Request) {
			r.Run.Policy.Layers = []sandbox.Layer{{Folder: "/home/ada/site", Kind: sandbox.LayerReadOnly}}
		}, asks},
		{"another folder to write to", func(r *call.Request) { r.Run.Policy.Writable = append(r.Run.Policy.Writable, "/tmp/x") }, asks},
		{"a program of the user's", func(r *call.Request) {
			r.Run.Command.Program = program.Program{Name: "jq", Path: "/home/ada/bin/jq", Resolved: "/home/ada/bin/jq", Digest: "01"}
		}, asks},
		{"a program of the workspace", func(r *call.Request) {
			r.Run.Command.Program.Path, r.Run.Command.Program.Resolved = "/desk/chat/x", "/desk/chat/x"
		}, asks},
		{"a program that a link of the pack leads to", func(r *call.Request) { r.Run.Command.Program.Resolved = "/home/ada/bin/jq" }, asks},
		{"a program beside the pack", func(r *call.Request) {
			r.Run.Command.Program.Path, r.Run.Command.Program.Resolved = "/packs/triage-2/x", "/packs/triage-2/x"
		}, asks},
		{"an interpreter of the user's", func(r *call.Request) { runBy(r, "/home/ada/bin/sh", "02") }, asks},
		{"an interpreter that leads to the user's", func(r *call.Request) { r.Run.Command.Program.Interpreters[0].Resolved = "/home/ada/bin/sh" }, asks},
		{"an installation in the home", func(r *call.Request) { r.Run.Command.Program.Needs = []string{"/home/ada/.pyenv"} }, asks},
		{"a program that a shim chose", func(r *call.Request) { r.Run.Command.Program.Shim = "/home/ada/.asdf/shims/x" }, asks},
		{"a loose tool", func(r *call.Request) { r.Pack.Loose = true }, asks},
		{"a pack that changed", func(r *call.Request) { r.Pack.Digest = "sha256:" + strings.Repeat("ac", 32) }, asks},
		{"a pack elsewhere", func(r *call.Request) { r.Pack.Dir = "/elsewhere/triage" }, asks},
		{"a pack that was attached again", func(r *call.Request) { r.Pack.Attached = "2" }, asks},
		{"another pack", func(r *call.Request) { r.Pack.ID = "other" }, asks},
		{"no trust", func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted }, asks},
		{"another trust", func(r *call.Request) { r.Pack.Trust = call.TrustBundled }, asks},
		{"a tool that always asks", func(r *call.Request) { r.AlwaysAsk = true }, asks},
		{"a run that is answered once only", func(r *call.Request) { r.Run.OnceOnly = "it can read too much" }, asks},
		{"a value to fill in", func(r *call.Request) { r.Fields = []call.Field{{Name: "a", Title: "A"}} }, asks},
		{"arguments that hide something", func(r *call.Request) {
			r.Arguments, r.Run.Command.Args = call.ParseArguments([]byte(`{"who":"\u202eadA"}`)), []string{"\u202eadA"}
		}, asks},
		{"a context that hides something", func(r *call.Request) { r.Run.Command.Args = []string{"\u202eadA"} }, asks},
		{"a variable that hides something", func(r *call.Request) { r.Run.Env = []string{"A=\u200b"} }, asks},
		{"another chat", func(r *call.Request) { r.Caller.Chat = "stdio-2" }, asks},
		{"another person", func(r *call.Request) { r.Caller.Person = "grace" }, asks},
		{"a person at this machine", func(r *call.Request) { r.Caller.Origin = call.OriginMachine }, asks},
	} {
		t.Run(c.says, func(t *testing.T) {
			b := newBalanced(t)
			b.approve(openCall(), queue.Chat)
			use := b.log.last().Grant
			if got := b.outcome(with(readingRun(), c.change)); got != c.want {
				t.Fatalf("%s, want %s", got, c.want)
			}
			if e := b.log.last(); c.want == allows && (e.Channel != queue.ChannelPolicy || e.Decision != "once" || e.Grant != use || !strings.Contains(e.Reason, "balanced") || e.Run == "") {
				t.Errorf("the line of the run = %+v, want the policy and the grant %s", e, use)
			}
			if past := b.History()[0]; c.want == allows && (past.Kind != call.KindRun || past.Channel != queue.ChannelPolicy || past.Run == "") {
				t.Errorf("the history has %+v", past)
			}
		})
	}
	rule := func(r rules.Rule) func(*Options) { r.Where = "config.yaml:1"; return ruled(r) }
	for _, c := range []struct {
		says string
		gate func(t *testing.T) *bench
		want string
	}{
		{"a rule that asks", func(t *testing.T) *bench {
			return newBalanced(t, rule(rules.Rule{Effect: rules.Ask, Tool: "triage/greet"}))
		}, asks},
		{"a rule that forbids", func(t *testing.T) *bench {
			return newBalanced(t, rule(rules.Rule{Effect: rules.Deny, Tool: "triage/greet"}))
		}, "forbids"},
		{"a rule that comes near", func(t *testing.T) *bench {
			return newBalanced(t, rule(rules.Rule{Effect: rules.Deny, Argv: []string{"Ada"}}))
		}, asks},
		{"level partial", func(t *testing.T) *bench { b := newBalanced(t); b.runner.setLevel(sandbox.LevelPartial); return b }, asks},
		{"no confinement", func(t *testing.T) *bench { b := newBalanced(t); b.runner.setLevel(sandbox.LevelNone); return b }, asks},
		{"no private copies", func(t *testing.T) *bench { return newBalanced(t, func(o *Options) { o.Copies = nil }) }, asks},
		{"the policy every-call", func(t *testing.T) *bench { return newBalanced(t, func(o *Options) { o.Policy = policy.EveryCall }) }, asks},
		{"nowhere to keep answers", func(t *testing.T) *bench { return newBalanced(t, func(o *Options) { o.Grants = nil }) }, allows},
	} {
		t.Run(c.says, func(t *testing.T) {
			b := c.gate(t)
			b.approve(openCall(), queue.Chat)
			if got := b.outcome(readingRun()); !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Without an answer that the pack may be used, every run asks, whatever else was
// answered.
func TestBalancedNeedsTheAnswer(t *testing.T) {
	for says, before := range map[string]func(b *bench){
		"nothing":             func(*bench) {},
		"the documents, once": func(b *bench) { b.approve(openCall(), queue.Once) },
		"everything, once": func(b *bench) {
			b.approve(openCall(), queue.Once)
			b.approve(readCall(), queue.Once)
			b.approve(enableCall(), queue.Once)
		},
		"documents with hidden text":    func(b *bench) { b.approve(with(openCall(), func(r *call.Request) { r.Hidden = "1 tag" }), queue.Chat) },
		"a file of the workspace":       func(b *bench) { b.approve(workspaceRead(), queue.Always) },
		"the use, in a chat that ended": func(b *bench) { b.approve(openCall(), queue.Chat); b.EndChat("stdio-1") },
		"the use, that a rule asks for": func(b *bench) { b.approve(with(openCall(), func(r *call.Request) { r.AlwaysAsk = true }), queue.Once) },
		"the use of the pack as it was": func(b *bench) {
			b.approve(with(openCall(), func(r *call.Request) { r.Pack.Digest = "sha256:00" }), queue.Always)
		},
		"a run of the tool, once":        func(b *bench) { b.approve(readingRun(), queue.Once) },
		"the documents, by one's prompt": func(b *bench) { b.chooses(openCall()) },
	} {
		t.Run(says, func(t *testing.T) {
			b := newBalanced(t)
			before(b)
			if got := b.outcome(readingRun()); got != asks {
				t.Errorf("%s, want %s", got, asks)
			}
		})
	}
}

// chooses opens a pack by a prompt that a person chose.
func (b *bench) chooses(req call.Request) {
	b.t.Helper()
	req = with(req, func(r *call.Request) { r.Caller.Act, r.Caller.Origin = true, call.OriginClient })
	if got := b.outcome(req); got != allows {
		b.t.Fatalf("a prompt: %s, want %s", got, allows)
	}
}

// Whichever call about a pack comes first, its question offers the use of the pack.
// With always, that holds in other chats and servers.
func TestBalancedAsksOnce(t *testing.T) {
	all := []func() call.Request{openCall, readCall, enableCall, readingRun}
	for i, first := range all[:3] {
		for _, d := range []queue.Decision{queue.Chat, queue.Always} {
			store := new(memory)
			b := newBalanced(t, storedIn(store))
			b.approve(first(), d)
			for j, next := range all {
				if got := b.outcome(next()); got != allows {
					t.Errorf("%q to call %d, then call %d: %s, want %s", d, i, j, got, allows)
				}
			}
			want := asks
			if d == queue.Always {
				want = allows
			}
			c := newBalanced(t, storedIn(remade(t, store)))
			if got := c.outcome(with(readingRun(), func(r *call.Request) { r.Caller.Chat = "stdio-9" })); got != want {
				t.Errorf("%q to call %d, then a run in another server: %s, want %s", d, i, got, want)
			}
		}
	}
	// Under another policy, reading and enabling ask separately.
	b := newBench(t, remembers)
	b.approve(readCall(), queue.Chat)
	if got := []string{b.outcome(openCall()), b.outcome(enableCall())}; !slices.Equal(got, []string{asks, asks}) {
		t.Errorf("under every-call, after reading: %q", got)
	}
}

// An answer only allows what its words said: under every-call, "runs still ask".
func TestBalancedKeepsTheWords(t *testing.T) {
	store := new(memory)
	every := newBench(t, storedIn(store))
	if means := every.ask(openCall()).Choices[2].Means; !strings.Contains(means, "runs still ask") {
		t.Errorf("the choice says %q", means)
	}
	every.approve(openCall(), queue.Always)
	b := newBalanced(t, storedIn(store))
	if got := []string{b.outcome(readingRun()), b.outcome(openCall())}; !slices.Equal(got, []string{asks, asks}) {
		t.Errorf("a run and opening, with an answer of every-call: %q", got)
	}
	if c := b.ask(openCall()).Choices[2]; !strings.Contains(c.Means, "only read then run unasked") || c.Title != "Always: use it, and run what only reads" {
		t.Errorf("the choice is named %q and says %q", c.Title, c.Means)
	}
	b.approve(openCall(), queue.Always)
	if len(store.grants) != 1 || store.grants[0].Policy != policy.Balanced {
		t.Errorf("grants = %+v, want one of the policy", store.grants)
	}
	if got := b.outcome(readingRun()); got != allows {
		t.Errorf("a run with an answer of balanced: %s, want %s", got, allows)
	}
	if got := newBench(t, storedIn(store)).outcome(openCall()); got != asks {
		t.Errorf("opening under every-call with an answer of balanced: %s, want %s", got, asks)
	}
}

// If a pack changed, the run asks, says what changed, and ends the answer, even if
// the old bytes come back.
func TestBalancedPackChanges(t *testing.T) {
	store := new(memory)
	b := newBalanced(t, storedIn(store))
	open := withFiles(openCall())
	b.approve(open, queue.Always)
	changed := with(withFiles(readingRun()), newFiles(call.File{Path: "scripts/greet.sh", Digest: "sha256:ff"}))
	if text := fmt.Sprint(b.ask(changed).Card); !strings.Contains(text, "changed since") || !strings.Contains(text, "scripts/greet.sh changed") {
		t.Errorf("the question does not say that the pack changed:\n%s", text)
	}
	if store.grants[0].Void == nil {
		t.Error("the grant still holds")
	}
	if got := b.outcome(withFiles(readingRun())); got != asks {
		t.Errorf("with the old bytes: %s, want %s", got, asks)
	}
	b.approve(open, queue.Always)
	if len(store.grants) != 1 || store.grants[0].Void != nil {
		t.Errorf("grants = %+v, want the new one alone", store.grants)
	}
}
