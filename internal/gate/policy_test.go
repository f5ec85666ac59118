package gate

import (
	"os"
	"path/filepath"
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

// firstRun makes a gate ask about the first run only.
func firstRun(o *Options) { o.Policy = policy.FirstRun }

// ruled gives a gate these rules.
func ruled(all ...rules.Rule) func(*Options) { return func(o *Options) { o.Rules = all } }

// TestFirstRun is the whole table of the policy: what happens at the first call, and
// at the next if the first was allowed once.
func TestFirstRun(t *testing.T) {
	run := func(change ...func(*call.Request)) call.Request {
		r := toolRun()
		for _, f := range change {
			r = with(r, f)
		}
		return r
	}
	bundled := func(r *call.Request) { r.Pack.Trust = call.TrustBundled }
	untrusted := func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted }
	unknown := func(r *call.Request) { r.Pack.Trust = "" }
	readOnly := func(r *call.Request) { r.Run.ReadOnly = true }
	alwaysAsk := func(r *call.Request) { r.AlwaysAsk = true }
	network := func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull }
	loopback := func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkLoopback }
	needs := func(r *call.Request) { r.Fields = []call.Field{{Name: "a", Title: "A"}} }
	for _, c := range []struct {
		says        string
		req         call.Request
		first, next string
	}{
		{"documents", openCall(), allows, allows},
		{"a file", readCall(), allows, allows},
		{"a file of the workspace", workspaceRead(), allows, allows},
		{"enabling", enableCall(), allows, allows},
		{"bundled documents", with(openCall(), bundled), allows, allows},
		{"untrusted documents", with(openCall(), untrusted), asks, asks},
		{"an untrusted file", with(readCall(), untrusted), asks, asks},
		{"enabling untrusted tools", with(enableCall(), untrusted), asks, asks},
		{"documents of unknown trust", with(openCall(), unknown), asks, asks},
		{"documents that always ask", with(openCall(), alwaysAsk), asks, asks},
		{"a tool", run(), asks, asks},
		{"a bundled tool", run(bundled), asks, asks},
		{"a read-only tool", run(readOnly), asks, allows},
		{"a bundled read-only tool", run(readOnly, bundled), allows, allows},
		{"a read-only tool with loopback", run(readOnly, loopback), asks, allows},
		{"a read-only tool with network", run(readOnly, network), asks, allows},
		{"a bundled read-only tool with network", run(readOnly, bundled, network), asks, allows},
		{"a tool with network", run(network), asks, asks},
		{"an untrusted read-only tool with network", run(readOnly, untrusted, network), asks, asks},
		{"a read-only tool with network that always asks", run(readOnly, network, alwaysAsk), asks, asks},
		{"an untrusted read-only tool", run(readOnly, untrusted), asks, asks},
		{"a read-only tool of unknown trust", run(readOnly, unknown), asks, asks},
		{"a read-only tool that always asks", run(readOnly, alwaysAsk), asks, asks},
		{"a bundled read-only tool that always asks", run(readOnly, bundled, alwaysAsk), asks, asks},
		{"a read-only tool that needs a value", run(readOnly, needs), asks, asks},
		{"a command", execRun(), asks, asks},
		{"a command that is called read-only", with(execRun(), readOnly), asks, asks},
		{"a bundled pack's command that is called read-only", with(with(execRun(), readOnly), bundled), asks, asks},
	} {
		t.Run(c.says, func(t *testing.T) {
			b := newBench(t, remembers, firstRun, everywhere)
			if got := b.outcome(c.req); got != c.first {
				t.Fatalf("the first call: %s, want %s", got, c.first)
			}
			if c.first == asks {
				q := b.ask(c.req)
				a := accept(q.State, "once")
				for _, f := range c.req.Fields {
					a.Verdict.Values[f.Name] = "x"
				}
				if got := b.goes(c.req, a); got != allows {
					t.Fatalf("the first call: %s", got)
				}
				if e := b.log.last(); e.Decision != "once" || (e.Grant != "") != (c.next == allows) {
					t.Errorf("the line of the first call = %+v", e)
				}
			} else if e := b.log.last(); e.Channel != queue.ChannelPolicy || !strings.Contains(e.Reason, "first-run") {
				t.Errorf("the line of the first call = %+v", e)
			}
			other := with(c.req, func(r *call.Request) {
				r.Caller.Chat = "stdio-2"
				if r.Run != nil && r.Run.Tool != "" {
					r.Run.Command.Args = []string{"Bob"}
				}
			})
			for i := range 2 {
				if got := b.outcome(other); got != c.next {
					t.Errorf("call %d: %s, want %s", i+2, got, c.next)
				}
			}
			// Without that policy, every call asks.
			if got := newBench(t, remembers).outcome(c.req); got != asks {
				t.Errorf("under the other policy: %s, want %s", got, asks)
			}
		})
	}
}

// What the answer about a first run covers ends with any change, only counts under
// its policy, and is described in the choice.
func TestFirstRunAnswer(t *testing.T) {
	req := with(toolRun(), func(r *call.Request) { r.Run.ReadOnly = true })
	store := new(memory)
	b := newBench(t, storedIn(store), firstRun)
	q := b.ask(req)
	if got, want := q.Choices[0].Title, "From now on: "; !strings.HasPrefix(got, want) || !strings.Contains(q.Choices[0].Means, "runs unasked") || !q.Choices[0].Lasts {
		t.Errorf("the choice says %q, want %q", got, want)
	}
	b.approve(req, queue.Once)
	if g := store.grants; len(g) != 1 || g[0].Policy != policy.FirstRun || !strings.Contains(g[0].Covers, "says that it changes nothing") {
		t.Fatalf("grants = %+v, want one of the policy", g)
	}
	for says, change := range map[string]func(*call.Request){
		"another pack digest":       func(r *call.Request) { r.Pack.Digest = "ff" },
		"no longer read-only":       func(r *call.Request) { r.Run.ReadOnly = false },
		"more network":              func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull },
		"more to write":             func(r *call.Request) { r.Run.Policy.Writable = []string{"/"} },
		"attached anew":             func(r *call.Request) { r.Pack.Attached = "2" },
		"another person":            func(r *call.Request) { r.Caller.Person = "grace" },
		"another tool of this pack": func(r *call.Request) { r.Run.Tool = "close" },
	} {
		c := newBench(t, storedIn(remade(t, store)), firstRun)
		if got := c.outcome(with(req, change)); got != asks {
			t.Errorf("%s: %s, want %s", says, got, asks)
		}
	}
	every := newBench(t, storedIn(remade(t, store)))
	if got := every.outcome(req); got != asks {
		t.Errorf("under the policy every-call: %s, want %s", got, asks)
	}
	if got := every.ask(req).Choices[0].Title; got != "Once: this exact call" {
		t.Errorf("under the policy every-call the choice says %q", got)
	}
	// What a person allowed for always counts under both policies.
	always := new(memory)
	newBench(t, storedIn(always), firstRun).approve(req, queue.Always)
	if got := newBench(t, storedIn(always)).outcome(req); got != allows {
		t.Errorf("always, under the policy every-call: %s, want %s", got, allows)
	}
	t.Run("nowhere to keep it", func(t *testing.T) {
		b := newBench(t, firstRun)
		if got := b.ask(req).Choices[0].Title; got != "Once: this exact call" {
			t.Errorf("the choice says %q", got)
		}
		b.approve(req, queue.Once)
		if got := b.outcome(req); got != asks {
			t.Errorf("the next call: %s, want %s", got, asks)
		}
	})
	t.Run("answered late", func(t *testing.T) {
		store := new(memory)
		b := newBench(t, storedIn(store), firstRun, everywhere)
		code := b.left(req)
		b.page(code, queue.Once)
		if len(store.grants) != 1 {
			t.Fatalf("grants = %+v, want one", store.grants)
		}
		b.page(code, queue.Deny)
		if len(store.grants) != 0 {
			t.Errorf("grants = %+v, want none after a denial", store.grants)
		}
	})
	t.Run("a denial", func(t *testing.T) {
		store := new(memory)
		b := newBench(t, storedIn(store), firstRun)
		if _, err := b.answer(req, accept(b.ask(req).State, "deny")); err == nil || len(store.grants) != 0 {
			t.Errorf("Check() = %v, and grants = %+v", err, store.grants)
		}
	})
}

// A first run with the whole network: the choice says so, always is not offered with
// it, and the answer counts neither without the network nor under the other policy.
// An answer for always, which a file may hold, does not count.
func TestFirstRunNetwork(t *testing.T) {
	req := with(toolRun(), func(r *call.Request) { r.Run.ReadOnly, r.Run.Policy.Network = true, sandbox.NetworkFull })
	store := new(memory)
	b := newBench(t, storedIn(store), firstRun)
	q := b.ask(req)
	if got := q.Choices[0]; !got.Lasts || !strings.Contains(got.Means, "with any valid arguments and the whole network") {
		t.Errorf("the choice = %+v, want one that names the network", got)
	}
	if slices.ContainsFunc(q.Choices, func(c queue.Choice) bool { return c.Value == string(queue.Always) }) {
		t.Errorf("choices = %+v, want no answer for always", q.Choices)
	}
	b.approve(req, queue.Once)
	if g := store.grants; len(g) != 1 || g[0].Policy != policy.FirstRun {
		t.Fatalf("grants = %+v, want one of the policy", g)
	}
	for says, change := range map[string]func(*call.Request){
		"no network":      func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkNone },
		"loopback":        func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkLoopback },
		"named hosts":     reachesHosts,
		"another program": func(r *call.Request) { r.Run.Command.Program.Digest = "ff" },
	} {
		b := newBench(t, storedIn(remade(t, store)), firstRun)
		if says == "named hosts" {
			b.runner.setLevel(sandbox.LevelFull)
		}
		if got := b.outcome(with(req, change)); got != asks {
			t.Errorf("%s: %s, want %s", says, got, asks)
		}
	}
	if got := newBench(t, storedIn(remade(t, store)), firstRun).outcome(req); got != allows {
		t.Errorf("in another server: %s, want %s", got, allows)
	}
	if got := newBench(t, storedIn(remade(t, store))).outcome(req); got != asks {
		t.Errorf("under the policy every-call: %s, want %s", got, asks)
	}
	always := remade(t, store)
	always.grants[0].Policy = ""
	if got := newBench(t, storedIn(always), firstRun).outcome(req); got != asks {
		t.Errorf("with an answer for always: %s, want %s", got, asks)
	}
}

func TestUnknownPolicy(t *testing.T) {
	if g, err := New(Options{Runner: new(runner), Log: new(recorder), Policy: "never"}); err == nil {
		t.Errorf("New(policy never) = %v, want an error", g)
	}
}

// TestRules: the strictest rule counts, before grants and policies, and no rule
// allows what a pack or its trust restricts.
func TestRules(t *testing.T) {
	at := func(effect rules.Effect, where string, change ...func(*rules.Rule)) rules.Rule {
		r := rules.Rule{Effect: effect, Where: where}
		for _, f := range change {
			f(&r)
		}
		return r
	}
	tool := func(r *rules.Rule) { r.Tool = "triage/greet" }
	push := func(r *rules.Rule) { r.Argv = []string{"git", "push", "**"} }
	git := func(r *rules.Rule) { r.Argv = []string{"git", "**"} }
	command := func(args ...string) call.Request {
		return with(execRun(), func(r *call.Request) { r.Run.Command.Args = args })
	}
	deny := func(line string) string { return "denied: a rule of the user's forbids it: " + line + ", " }
	for _, c := range []struct {
		says  string
		rules []rules.Rule
		req   call.Request
		grant queue.Decision // an answer given before, without rules
		want  string         // the outcome, or its beginning
		where string         // the rule that the log names
	}{
		{"allow", []rules.Rule{at(rules.Allow, "c:1", tool)}, toolRun(), queue.Deny, allows, "c:1"},
		{"allow something else", []rules.Rule{at(rules.Allow, "c:1", tool)}, execRun(), queue.Deny, asks, ""},
		{"deny", []rules.Rule{at(rules.Deny, "c:1", tool)}, toolRun(), queue.Deny, deny("c:1"), "c:1"},
		{"deny over a grant for the chat", []rules.Rule{at(rules.Deny, "c:1", tool)}, toolRun(), queue.Chat, deny("c:1"), "c:1"},
		{"deny over a grant for always", []rules.Rule{at(rules.Deny, "c:1", tool)}, toolRun(), queue.Always, deny("c:1"), "c:1"},
		{"ask over a grant for the chat", []rules.Rule{at(rules.Ask, "c:1", tool)}, toolRun(), queue.Chat, asks, ""},
		{"ask over a grant for always", []rules.Rule{at(rules.Ask, "c:1", tool)}, toolRun(), queue.Always, asks, ""},
		{"ask over allow", []rules.Rule{at(rules.Ask, "c:1", tool), at(rules.Allow, "c:2")}, toolRun(), queue.Deny, asks, ""},
		{"allow before ask", []rules.Rule{at(rules.Allow, "c:1"), at(rules.Ask, "c:2", tool)}, toolRun(), queue.Deny, asks, ""},
		{"deny over both", []rules.Rule{at(rules.Allow, "c:1"), at(rules.Ask, "c:2"), at(rules.Deny, "c:3", tool), at(rules.Allow, "c:4")}, toolRun(), queue.Deny, deny("c:3"), "c:3"},
		{"a grant beside an allow for others", []rules.Rule{at(rules.Allow, "c:1", git)}, toolRun(), queue.Always, allows, ""},
		{"AP-09: what is forbidden", []rules.Rule{at(rules.Allow, "c:1", git), at(rules.Deny, "c:2", push)}, command("push", "-f"), queue.Deny, deny("c:2"), "c:2"},
		{"AP-09: what is nearly forbidden", []rules.Rule{at(rules.Allow, "c:1", git), at(rules.Deny, "c:2", push)}, command("-c", "x", "push"), queue.Deny, asks, ""},
		{"AP-09: what is not", []rules.Rule{at(rules.Allow, "c:1", git), at(rules.Deny, "c:2", push)}, command("log"), queue.Deny, allows, "c:1"},
		{"allow what always asks", []rules.Rule{at(rules.Allow, "c:1")}, with(toolRun(), func(r *call.Request) { r.AlwaysAsk = true }), queue.Deny, asks, ""},
		{"allow what is not trusted", []rules.Rule{at(rules.Allow, "c:1")}, with(toolRun(), func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted }), queue.Deny, asks, ""},
		{"allow what has to be filled in", []rules.Rule{at(rules.Allow, "c:1")}, with(toolRun(), func(r *call.Request) { r.Fields = []call.Field{{Name: "a", Title: "A"}} }), queue.Deny, asks, ""},
		{"deny to open", []rules.Rule{at(rules.Deny, "c:1", func(r *rules.Rule) { r.Kinds = []string{"open"} })}, openCall(), queue.Deny, deny("c:1"), "c:1"},
		{"deny to read another pack", []rules.Rule{at(rules.Deny, "c:1", func(r *rules.Rule) { r.Pack = "acme/*" })}, readCall(), queue.Deny, asks, ""},
		{"a rule that is broken allows nothing", []rules.Rule{at(rules.Allow, "c:1", func(r *rules.Rule) { r.Pack = "[" })}, openCall(), queue.Deny, asks, ""},
		{"a broken one denies", []rules.Rule{at(rules.Deny, "c:1", func(r *rules.Rule) { r.Pack = "[" })}, openCall(), queue.Deny, deny("c:1"), "c:1"},
	} {
		t.Run(c.says, func(t *testing.T) {
			store := new(memory)
			b := newBench(t, storedIn(store), everywhere)
			if c.grant != queue.Deny {
				b.approve(c.req, c.grant)
			}
			b.rules = c.rules
			n := len(b.log.all())
			if got := b.outcome(c.req); !strings.HasPrefix(got, c.want) {
				t.Fatalf("%s, want %s", got, c.want)
			}
			if c.want == asks {
				q := b.ask(c.req)
				a := accept(q.State, "once")
				for _, f := range c.req.Fields {
					a.Verdict.Values[f.Name] = "x"
				}
				if got := b.goes(c.req, a); got != allows {
					t.Fatalf("the answer: %s", got)
				}
			}
			all := b.log.all()
			if len(all) != n+1 || all[n].Rule != c.where {
				t.Fatalf("lines = %+v, want one with the rule %q", all[n:], c.where)
			}
			if e := all[n]; c.where != "" && (e.Channel != queue.ChannelRule || !strings.Contains(e.Reason, c.where) || e.Grant != "") {
				t.Errorf("line = %+v, want the rule's channel, and where it is written", e)
			}
		})
	}
	t.Run("ask offers one answer", func(t *testing.T) {
		b := newBench(t, remembers, everywhere, ruled(at(rules.Ask, "c:1")))
		if got, want := offered(b.ask(toolRun())), []string{"once", "deny"}; !slices.Equal(got, want) {
			t.Errorf("offered = %q, want %q", got, want)
		}
		for i := range 3 {
			if got := b.goes(toolRun(), accept(b.ask(toolRun()).State, "once")); got != allows {
				t.Errorf("call %d: %s", i, got)
			}
		}
	})
	t.Run("no rule is about metadata", func(t *testing.T) {
		if got := newBench(t, ruled(at(rules.Deny, "c:1"))).outcome(listCall()); got != allows {
			t.Errorf("list: %s, want %s", got, allows)
		}
	})
	t.Run("deny over an answer that is held", func(t *testing.T) {
		b := newBench(t, everywhere)
		b.page(b.left(toolRun()), queue.Once)
		b.rules = []rules.Rule{at(rules.Deny, "c:1", tool)}
		if got := b.outcome(toolRun()); !strings.HasPrefix(got, deny("c:1")) {
			t.Errorf("the retry: %s", got)
		}
	})
	t.Run("first-run", func(t *testing.T) {
		for effect, want := range map[rules.Effect]string{rules.Ask: asks, rules.Deny: deny("c:1"), rules.Allow: allows} {
			b := newBench(t, remembers, firstRun, ruled(at(effect, "c:1")))
			if got := b.outcome(openCall()); !strings.HasPrefix(got, want) {
				t.Errorf("%v under first-run: %s, want %s", effect, got, want)
			}
		}
		// An answer under an ask rule is for one call, even if the policy keeps
		// answers.
		b := newBench(t, remembers, firstRun, ruled(at(rules.Ask, "c:1")))
		req := with(toolRun(), func(r *call.Request) { r.Run.ReadOnly = true })
		if got := b.ask(req).Choices[0].Title; got != "Once: this exact call" {
			t.Errorf("under an ask rule the choice says %q", got)
		}
		b.approve(req, queue.Once)
		if got := b.outcome(req); got != asks || len(b.book.Store.(*memory).grants) != 0 {
			t.Errorf("a read-only tool under an ask rule, again: %s, want %s and no grant", got, asks)
		}
		b = newBench(t, remembers, firstRun, everywhere, ruled(at(rules.Ask, "c:1")))
		b.page(b.left(req), queue.Once)
		if n := len(b.book.Store.(*memory).grants); n != 0 {
			t.Errorf("%d grants are kept of a late answer under an ask rule", n)
		}
	})
	t.Run("a folder named through a link, that appears later", func(t *testing.T) {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		site, link := filepath.Join(dir, "site"), filepath.Join(dir, "link")
		if err := os.MkdirAll(filepath.Join(site, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		in := func(r *rules.Rule) { r.Cwd = link }
		b := newBench(t, ruled(at(rules.Deny, "c:1", in)))
		for _, cwd := range []string{site, filepath.Join(site, "sub")} {
			req := with(execRun(), func(r *call.Request) { r.Run.Command.Dir, r.Run.UsualDir = cwd, false })
			_ = os.Remove(link)
			if got := b.outcome(req); got != asks {
				t.Errorf("in %s before there is a link: %s, want %s", cwd, got, asks)
			}
			if err := os.Symlink("site", link); err != nil {
				t.Skip(err)
			}
			if got := b.outcome(req); !strings.HasPrefix(got, deny("c:1")) {
				t.Errorf("in %s: %s, want it denied", cwd, got)
			}
			// Only the link's owner could say what it allows.
			allow := newBench(t, ruled(at(rules.Allow, "c:1", in, func(r *rules.Rule) { r.Kinds = []string{"exec"} })))
			if got := allow.outcome(req); got != asks {
				t.Errorf("an allowance of a link, in %s: %s, want %s", cwd, got, asks)
			}
		}
	})
	t.Run("all names of a program", func(t *testing.T) {
		req := with(toolRun(), func(r *call.Request) {
			r.Run.Env = nil
			r.Run.Command.Program = program.Program{Name: "py", Path: "/usr/bin/py", Resolved: "/opt/python3.12", Digest: "x", Shim: "/shims/py3"}
		})
		for _, name := range []string{"py", "/usr/bin/py", "/opt/python3.12", "python3.12", "py3"} {
			b := newBench(t, ruled(at(rules.Deny, "c:1", func(r *rules.Rule) { r.Argv = []string{name, "**"} })))
			if got := b.outcome(req); !strings.HasPrefix(got, deny("c:1")) {
				t.Errorf("a denial of %q: %s", name, got)
			}
		}
		for name, want := range map[string]string{"py": allows, "python3.12": asks, "py3": asks} {
			b := newBench(t, ruled(at(rules.Allow, "c:1", func(r *rules.Rule) { r.Argv = []string{name, "**"} })))
			if got := b.outcome(req); got != want {
				t.Errorf("an allowance of %q: %s, want %s", name, got, want)
			}
		}
	})
	t.Run("a program in the pack is not one of the system", func(t *testing.T) {
		req := with(toolRun(), func(r *call.Request) { r.Run.Command.Program.Name = "./git" })
		b := newBench(t, ruled(at(rules.Allow, "c:1", git)))
		if got := b.outcome(req); got != asks {
			t.Errorf("./git under an allowance of git: %s, want %s", got, asks)
		}
	})
	t.Run("the reason has no control characters", func(t *testing.T) {
		b := newBench(t, ruled(at(rules.Deny, "config.yaml:1\x1b[2J", func(r *rules.Rule) { r.Pack = "*" })))
		_, _, err := b.Check(t.Context(), openCall(), nil)
		b.denied(err, "forbids it")
		for _, p := range b.History() {
			checkShown(t, p.Reason)
		}
	})
}
