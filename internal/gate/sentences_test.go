package gate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A sentence says what happens to one call after another was approved.
type sentence struct {
	says   string
	change func(*call.Request)
	want   string
}

// tell approves a call, and then checks each sentence with its own gate.
func tell(t *testing.T, first func() call.Request, d queue.Decision, sentences []sentence) {
	t.Helper()
	for _, s := range sentences {
		t.Run(s.says, func(t *testing.T) {
			b := newBench(t)
			b.approve(first(), d)
			req := first()
			if s.change != nil {
				req = with(req, s.change)
			}
			if got := b.outcome(req); got != s.want {
				t.Errorf("after %q, a call with %s: %s, want %s", d, s.says, got, s.want)
			}
		})
	}
}

func TestOnceIsOnce(t *testing.T) {
	for name, first := range map[string]func() call.Request{
		"tool": toolRun, "exec": execRun, "open": openCall, "read": readCall, "enable": enableCall, "workspace": workspaceRead,
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, first, queue.Once, []sentence{{"the same again", nil, asks}})
		})
	}
}

// subject lists the changes that no grant of any kind survives.
var subject = []sentence{
	{"the same again", nil, allows},
	{"another id of the call", func(r *call.Request) { r.Caller.Call = "call-2" }, allows},
	{"another client name", func(r *call.Request) { r.Caller.Client = "other 2.0" }, allows},
	{"a client that cannot ask", func(r *call.Request) { r.Caller.CanAsk = false }, allows},
	{"another chat (AP-07)", func(r *call.Request) { r.Caller.Chat = "stdio-2" }, asks},
	{"another person", func(r *call.Request) { r.Caller.Person = "grace" }, asks},
	{"another pack", func(r *call.Request) { r.Pack.ID = "other" }, asks},
	{"a pack elsewhere", func(r *call.Request) { r.Pack.Dir = "/elsewhere/triage" }, asks},
	{"a changed pack (RP-01, RP-05)", func(r *call.Request) { r.Pack.Digest = strings.Repeat("ac", 32) }, asks},
	{"another trust", func(r *call.Request) { r.Pack.Trust = call.TrustBundled }, asks},
	{"no trust any more", func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted }, asks},
	{"a tool that always asks", func(r *call.Request) { r.AlwaysAsk = true }, asks},
}

// plan lists the changes that no grant for a run survives.
var plan = []sentence{
	{"another folder", func(r *call.Request) { r.Run.Command.Dir = "/desk/other" }, asks},
	{"another workspace", func(r *call.Request) { r.Run.Command.Workspace, r.Workspace = "/desk/other", "/desk/other" }, asks},
	{"more network (RP-03)", func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull }, asks},
	{"more time", func(r *call.Request) { r.Run.Policy.Limits.Timeout *= 2 }, asks},
	{"more memory", func(r *call.Request) { r.Run.Policy.Limits.Memory *= 2 }, asks},
	{"more to read", func(r *call.Request) { r.Run.Policy.ReadOnly = append(r.Run.Policy.ReadOnly, "/home") }, asks},
	{"more to write", func(r *call.Request) { r.Run.Policy.Writable = append(r.Run.Policy.Writable, "/home") }, asks},
	{"one more variable (RP-03)", func(r *call.Request) { r.Run.Command.Env = append(r.Run.Command.Env, "TOKEN=x") }, asks},
	{"another layer", func(r *call.Request) {
		r.Run.Policy.Layers = []sandbox.Layer{{Folder: "/site", Kind: sandbox.LayerCopy}}
	}, asks},
	{"more of the home for the program", func(r *call.Request) { r.Run.Command.Program.Needs = []string{"/home/ada/.local/lib"} }, asks},
	{"another shim", func(r *call.Request) { r.Run.Command.Program.Shim = "/home/ada/.asdf/shims/greet" }, asks},
	{"a granted variable", func(r *call.Request) { r.Run.Granted.Env = []string{"GITHUB_TOKEN"} }, asks},
	{"a granted folder", func(r *call.Request) { r.Run.Granted.Folders = []string{"/desk/chat"} }, asks},
	{"a granted folder that is not there", func(r *call.Request) { r.Run.Granted.LeftOut = []call.Missing{{What: "/x", Why: "is not there"}} }, asks},
	{"the user's own home", func(r *call.Request) { r.Run.Granted.Home = "/home/ada" }, asks},
	{"another project", func(r *call.Request) { r.Run.Project = "/home/ada/site" }, asks},
	{"another program of the same name (RP-06)", func(r *call.Request) { r.Run.Command.Program.Path = "/tmp/greet.sh" }, asks},
	{"a link to another program", func(r *call.Request) { r.Run.Command.Program.Resolved = "/tmp/greet.sh" }, asks},
	{"other bytes of the program (RP-06)", func(r *call.Request) { r.Run.Command.Program.Digest = "00" }, asks},
	{"another interpreter", func(r *call.Request) { runBy(r, "/bin/bash", strings.Repeat("02", 32)) }, asks},
	{"other bytes of the interpreter", func(r *call.Request) { runBy(r, "/bin/sh", "00") }, asks},
	{"another interpreter of the interpreter", func(r *call.Request) {
		p := &r.Run.Command.Program
		p.Interpreters = append(slices.Clone(p.Interpreters), program.Interpreter{Name: "/vm", Path: "/vm", Resolved: "/vm", Digest: "04"})
	}, asks},
	{"another argument of the interpreter", func(r *call.Request) {
		runBy(r, "/bin/sh", strings.Repeat("02", 32))
		r.Run.Command.Program.Interpreters[0].Args = []string{"-e"}
	}, asks},
	{"a variable that env(1) sets", func(r *call.Request) {
		runBy(r, "/bin/sh", strings.Repeat("02", 32))
		r.Run.Command.Program.Interpreters[0].Env = []string{"LANG=C"}
	}, asks},
	{"a link of the interpreter that leads elsewhere", func(r *call.Request) {
		runBy(r, "/bin/sh", strings.Repeat("02", 32))
		r.Run.Command.Program.Interpreters[0].Resolved = "/tmp/sh"
	}, asks},
}

func TestForThisChat(t *testing.T) {
	t.Run("tool", func(t *testing.T) {
		tell(t, toolRun, queue.Chat, slices.Concat(subject, plan, []sentence{
			{"other arguments", func(r *call.Request) {
				r.Arguments = call.ParseArguments(json.RawMessage(`{"who":"Bob"}`))
				r.Run.Command.Args = []string{"Bob"}
			}, allows},
			{"other input", func(r *call.Request) { r.Run.Command.Stdin = []byte("x") }, allows},
			{"another value of a variable", func(r *call.Request) { r.Run.Command.Env[1] = "MODE=rude" }, allows},
			{"another tool", func(r *call.Request) { r.Run.Tool = "close" }, asks},
			{"a changed definition (RP-02)", func(r *call.Request) { r.Run.Definition = "00" }, asks},
			{"the same program without the tool", func(r *call.Request) { r.Kind, r.Run.Tool, r.Run.Definition = call.KindExec, "", "" }, asks},
		}))
	})
	t.Run("exec", func(t *testing.T) {
		tell(t, execRun, queue.Chat, slices.Concat(subject, plan, []sentence{
			{"argv changed", func(r *call.Request) { r.Run.Command.Args[1] = "--all" }, asks},
			{"argv longer", func(r *call.Request) { r.Run.Command.Args = append(r.Run.Command.Args, "-p") }, asks},
			{"argv shorter", func(r *call.Request) { r.Run.Command.Args = r.Run.Command.Args[:1] }, asks},
			{"argv cut elsewhere", func(r *call.Request) { r.Run.Command.Args = []string{"log --oneline"} }, asks},
			{"argv in another order", func(r *call.Request) { slices.Reverse(r.Run.Command.Args) }, asks},
			{"other input", func(r *call.Request) { r.Run.Command.Stdin = []byte("x") }, asks},
			{"another value of a variable", func(r *call.Request) { r.Run.Command.Env[0] = "HOME=/root" }, asks},
			{"a tool", func(r *call.Request) { r.Kind, r.Run.Tool, r.Run.Definition = call.KindRun, "git", "00" }, asks},
			{"another file that an argument names", func(r *call.Request) { r.Run.Inputs = []call.File{{Path: "/desk/chat/x", Digest: "sha256:00"}} }, asks},
			{"another file in a folder that it can read", func(r *call.Request) { r.Run.Reads = []call.File{{Path: "/desk/chat", Digest: "sha256:00"}} }, asks},
			{"more to read than can be bound", func(r *call.Request) { r.Run.OnceOnly = "it can read too much" }, asks},
		}))
	})
	t.Run("open", func(t *testing.T) {
		tell(t, openCall, queue.Chat, slices.Concat(subject, []sentence{
			{"with other words", func(r *call.Request) {
				r.Arguments = call.ParseArguments(json.RawMessage(`{"pack_id":"triage","arguments":"x"}`))
			}, allows},
			{"a file", func(r *call.Request) { r.Kind, r.Path = call.KindRead, "x" }, allows},
			{"a file with hidden text", func(r *call.Request) { r.Kind, r.Path, r.Hidden = call.KindRead, "x", "2 tag characters" }, asks},
			{"a file of the workspace", func(r *call.Request) { *r = workspaceRead() }, asks},
			{"a file of the workspace beside the pack", func(r *call.Request) { r.Kind, r.Path, r.Workspace = call.KindRead, "x", "/desk/chat" }, asks},
			{"its tools", func(r *call.Request) { r.Kind, r.Tools = call.KindEnable, []string{"greet"} }, allows},
			{"its tools, with hidden text", func(r *call.Request) { r.Kind, r.Hidden = call.KindEnable, "2 tag characters" }, asks},
			{"documents with hidden text", func(r *call.Request) { r.Hidden = "2 tag characters" }, asks},
			{"a run of a tool", func(r *call.Request) { *r = toolRun() }, asks},
			{"a run of a tool that says that it only reads", func(r *call.Request) { *r = readingRun() }, asks},
			{"a command", func(r *call.Request) { *r = execRun() }, asks},
		}))
	})
	t.Run("read", func(t *testing.T) {
		tell(t, readCall, queue.Chat, slices.Concat(subject, []sentence{
			{"another file of the pack", func(r *call.Request) { r.Path = "other.md" }, allows},
			{"the workspace", func(r *call.Request) { r.Pack, r.Workspace = workspaceRead().Pack, "/desk/chat" }, asks},
			{"the documents", func(r *call.Request) { r.Kind = call.KindOpen }, asks},
		}))
	})
	t.Run("workspace", func(t *testing.T) {
		tell(t, workspaceRead, queue.Chat, []sentence{
			{"another file", func(r *call.Request) { r.Path = "other.md" }, allows},
			{"another chat", func(r *call.Request) { r.Caller.Chat = "stdio-2" }, asks},
			{"a pack", func(r *call.Request) { r.Pack = readCall().Pack }, asks},
		})
	})
	t.Run("enable", func(t *testing.T) {
		tell(t, enableCall, queue.Chat, slices.Concat(subject, []sentence{
			{"other tools of the pack", func(r *call.Request) { r.Tools = []string{"other"} }, allows},
			{"a run of one", func(r *call.Request) { *r = toolRun() }, asks},
		}))
	})
	t.Run("another sandbox level", func(t *testing.T) {
		b := newBench(t)
		b.approve(toolRun(), queue.Chat)
		b.runner.setLevel(sandbox.LevelFull)
		if got := b.outcome(toolRun()); got != asks {
			t.Errorf("at another level: %s, want %s", got, asks)
		}
	})
	t.Run("after the chat ended", func(t *testing.T) {
		b := newBench(t)
		b.approve(toolRun(), queue.Chat)
		other := with(toolRun(), func(r *call.Request) { r.Caller.Chat = "stdio-2" })
		b.approve(other, queue.Chat)
		b.EndChat("stdio-1")
		if got := b.outcome(toolRun()); got != asks {
			t.Errorf("after EndChat: %s, want %s", got, asks)
		}
		if got := b.outcome(other); got != allows {
			t.Errorf("in another chat: %s, want %s", got, allows)
		}
	})
	t.Run("until the chat ends", func(t *testing.T) {
		b := newBench(t)
		b.approve(toolRun(), queue.Chat)
		b.pass(30 * 24 * time.Hour)
		if got := b.outcome(toolRun()); got != allows {
			t.Errorf("a month later: %s, want %s", got, allows)
		}
	})
}

// TestOnceOnly: some questions offer no grant, and then none can be obtained.
func TestOnceOnly(t *testing.T) {
	for name, change := range map[string]func(*call.Request){
		"always_ask":              func(r *call.Request) { r.AlwaysAsk = true },
		"untrusted":               func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted },
		"no trust said":           func(r *call.Request) { r.Pack.Trust = "" },
		"a trust nobody heard of": func(r *call.Request) { r.Pack.Trust = "admin" },
	} {
		for _, req := range []call.Request{toolRun(), execRun(), openCall(), readCall(), enableCall()} {
			t.Run(name+"/"+req.Method, func(t *testing.T) {
				b := newBench(t)
				req := with(req, change)
				q := b.ask(req)
				var offered []string
				for _, c := range q.Choices {
					offered = append(offered, c.Value)
				}
				if want := []string{"once", "deny"}; !slices.Equal(offered, want) {
					t.Errorf("offered = %q, want %q", offered, want)
				}
				_, err := b.answer(req, accept(q.State, "chat"))
				b.denied(err, "none of the choices")
				if got := b.outcome(req); got != asks {
					t.Errorf("after a chat answer that was not offered: %s, want %s", got, asks)
				}
				b.approve(req, queue.Once)
			})
		}
	}
}

func TestListNeverAsks(t *testing.T) {
	b := newBench(t)
	for _, req := range []call.Request{
		listCall(),
		with(listCall(), func(r *call.Request) { r.Caller.CanAsk = false }),
		with(listCall(), func(r *call.Request) { r.Arguments, r.Logged = nil, strictjson.Compact{} }),
	} {
		if got := b.outcome(req); got != allows {
			t.Errorf("list: %s, want %s", got, allows)
		}
	}
	permit, _, err := b.Check(t.Context(), listCall(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := permit.Run(t.Context()); err == nil {
		t.Error("Run() of a permit to list has no error")
	}
}

// TestIncomplete: nobody is asked about a request that does not say everything.
func TestIncomplete(t *testing.T) {
	for name, c := range map[string]struct {
		of     func() call.Request
		change func(*call.Request)
		reason string
	}{
		"zero":                             {func() call.Request { return call.Request{} }, func(*call.Request) {}, "unknown"},
		"no kind":                          {openCall, func(r *call.Request) { r.Kind = "" }, "unknown"},
		"unknown kind":                     {openCall, func(r *call.Request) { r.Kind = "admin" }, "unknown"},
		"no chat":                          {openCall, func(r *call.Request) { r.Caller.Chat = "" }, "no chat"},
		"no chat for metadata":             {listCall, func(r *call.Request) { r.Caller.Chat = "" }, "no chat"},
		"run without a run":                {toolRun, func(r *call.Request) { r.Run = nil }, "incomplete"},
		"a run while reading":              {readCall, func(r *call.Request) { r.Run = toolRun().Run }, "incomplete"},
		"a run while listing":              {listCall, func(r *call.Request) { r.Run = toolRun().Run }, "incomplete"},
		"no pack":                          {openCall, func(r *call.Request) { r.Pack = call.Pack{Trust: call.TrustUser} }, "incomplete"},
		"no pack folder":                   {toolRun, func(r *call.Request) { r.Pack.Dir = "" }, "incomplete"},
		"no pack digest":                   {openCall, func(r *call.Request) { r.Pack.Digest = "" }, "incomplete"},
		"no program":                       {toolRun, func(r *call.Request) { r.Run.Command.Program.Path = "" }, "incomplete"},
		"no program digest":                {execRun, func(r *call.Request) { r.Run.Command.Program.Digest = "" }, "incomplete"},
		"no folder":                        {execRun, func(r *call.Request) { r.Run.Command.Dir = "" }, "incomplete"},
		"no tool definition":               {toolRun, func(r *call.Request) { r.Run.Definition = "" }, "incomplete"},
		"arguments not JSON":               {openCall, func(r *call.Request) { r.Arguments = call.ParseArguments([]byte(`{"a":`)) }, "ends in the middle"},
		"two values":                       {openCall, func(r *call.Request) { r.Arguments = call.ParseArguments([]byte(`{} {}`)) }, "more after the JSON value"},
		"a key twice":                      {openCall, func(r *call.Request) { r.Arguments = call.ParseArguments([]byte(`{"a":1,"a":2}`)) }, `key "a" occurs twice`},
		"a key twice, spelled differently": {openCall, func(r *call.Request) { r.Arguments = call.ParseArguments([]byte(`{"a":1,"\u0061":2}`)) }, `key "a" occurs twice`},
		"a key twice, deep":                {openCall, func(r *call.Request) { r.Arguments = call.ParseArguments([]byte(`{"x":[{"a":1,"b":{},"a":2}]}`)) }, `key "a" occurs twice`},
		"deep nesting":                     {openCall, func(r *call.Request) { r.Arguments = call.ParseArguments([]byte(strings.Repeat("[", 100_000))) }, "nested more than"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			_, q, err := b.Check(t.Context(), with(c.of(), c.change), nil)
			if q != nil {
				t.Error("Check() asks")
			}
			b.denied(err, c.reason)
			if n := len(b.log.all()); n != 1 {
				t.Errorf("%d lines in the log, want 1", n)
			}
		})
	}
}

func TestNew(t *testing.T) {
	for _, o := range []Options{{}, {Runner: new(runner)}, {Log: new(recorder)}} {
		if g, err := New(o); err == nil {
			t.Errorf("New(%+v) = %v, want an error", o, g)
		}
	}
	// With only the required options.
	g, err := New(Options{Runner: new(runner), Log: new(recorder)})
	if err != nil {
		t.Fatal(err)
	}
	_, q, err := g.Check(t.Context(), toolRun(), nil)
	if err != nil || q == nil {
		t.Fatalf("Check() = %v, %v, want a question", q, err)
	}
	if left := time.Until(q.Expires); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("the question expires in %v, want ten minutes", left)
	}
	if box := g.Sandbox(t.Context()); box.Level != sandbox.LevelNone {
		t.Errorf("Sandbox() = %+v", box)
	}
}
