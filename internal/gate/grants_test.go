package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// storedIn makes a gate keep its grants in m.
func storedIn(m *memory) func(*Options) { return func(o *Options) { o.Grants = m } }

// remade returns the grants of m as they come back from a file.
func remade(t *testing.T, m *memory) *memory {
	t.Helper()
	raw, err := json.Marshal(m.grants)
	if err != nil {
		t.Fatal(err)
	}
	var back memory
	if err := json.Unmarshal(raw, &back.grants); err != nil {
		t.Fatal(err)
	}
	return &back
}

// offered returns the answers that a question offers.
func offered(q *Question) []string {
	var all []string
	for _, c := range q.Choices {
		all = append(all, c.Value)
	}
	return all
}

// kinds has a call of every kind that asks.
var kinds = map[string]func() call.Request{
	"tool": toolRun, "granted tool": grantedRun, "exec": execRun, "open": openCall, "read": readCall, "workspace": workspaceRead, "enable": enableCall,
}

// scratch makes the workspace one that was made for the chat.
func scratch(r call.Request, folder string) call.Request {
	return with(r, func(r *call.Request) {
		r.Scratch = true
		was := r.Workspace
		moved := func(paths []string) {
			for i, p := range paths {
				paths[i] = strings.ReplaceAll(p, was, folder)
			}
		}
		r.Workspace = folder
		if r.Run != nil {
			r.Run.Command.Workspace = folder
			r.Run.Command.Dir = strings.ReplaceAll(r.Run.Command.Dir, was, folder)
			moved(r.Run.Command.Env)
			moved(r.Run.Policy.Writable)
			moved(r.Run.Policy.ReadOnly)
		}
	})
}

// TestAlways: an answer for every chat holds in other chats and after a restart, for
// calls like the one shown, and for nothing else.
func TestAlways(t *testing.T) {
	for name, of := range kinds {
		t.Run(name, func(t *testing.T) {
			store := new(memory)
			b := newBench(t, storedIn(store))
			b.approve(of(), queue.Always)
			b.has(0, "always elicitation")
			if len(store.grants) != 1 || b.log.last().Grant != store.grants[0].ID {
				t.Fatalf("grants = %+v, and the log has %q", store.grants, b.log.last().Grant)
			}
			other := with(of(), func(r *call.Request) {
				r.Caller.Chat, r.Caller.Call, r.Caller.ChatEnd = "stdio-2", "call-9", "tomorrow"
			})
			b.EndChat("stdio-1")
			again := newBench(t, storedIn(remade(t, store)))
			for _, c := range []struct {
				says string
				b    *bench
				req  call.Request
				want string
			}{
				{"in the same chat", b, of(), allows},
				{"in another chat", b, other, allows},
				{"after a restart", again, other, allows},
				{"of another person", again, with(of(), func(r *call.Request) { r.Caller.Person = "grace" }), asks},
				{"of a tool that always asks", again, with(of(), func(r *call.Request) { r.AlwaysAsk = true }), asks},
				{"with something to fill in", again, with(of(), func(r *call.Request) { r.Fields = []call.Field{{Name: "a", Title: "A"}} }), asks},
				{"without any trust", again, with(of(), func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted }), asks},
				{"where nothing is remembered", newBench(t), of(), asks},
			} {
				if got := c.b.outcome(c.req); got != c.want {
					t.Errorf("%s: %s, want %s", c.says, got, c.want)
				}
			}
			if e := again.log.all()[0]; e.Channel != queue.ChannelGrant || e.Decision != "always" || e.Grant != store.grants[0].ID || !strings.HasPrefix(e.Reason, "allowed before, on ") {
				t.Errorf("the line of a call that a grant allows = %+v", e)
			}
		})
	}
}

// Workspaces that are made for each chat count as the same, and one that the user
// named only counts as itself.
func TestWorkspaceOfTheChat(t *testing.T) {
	for name, of := range map[string]func() call.Request{"tool": toolRun, "exec": execRun, "workspace": workspaceRead} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, remembers)
			b.approve(scratch(of(), "/desk/a"), queue.Always)
			for _, c := range []struct {
				says string
				req  call.Request
				want string
			}{
				{"another chat's", scratch(of(), "/desk/b"), allows},
				{"one that the user named", of(), asks},
				{"one that the user named, at the same place", with(scratch(of(), "/desk/a"), func(r *call.Request) { r.Scratch = false }), asks},
				{"one that is called like the word for it", with(scratch(of(), ownWorkspace), func(r *call.Request) { r.Scratch = false }), asks},
			} {
				if got := b.outcome(c.req); got != c.want {
					t.Errorf("%s: %s, want %s", c.says, got, c.want)
				}
			}
			// The other way round.
			b = newBench(t, remembers)
			b.approve(of(), queue.Always)
			for _, folder := range []string{"/desk/chat", "/desk/b", ownWorkspace} {
				if got := b.outcome(scratch(of(), folder)); got != asks {
					t.Errorf("after one that the user named, one of the chat at %s: %s, want %s", folder, got, asks)
				}
			}
		})
	}
	t.Run("a neighbour", func(t *testing.T) {
		// "/desk/a" is not a parent of "/desk/ab".
		req := func(ws, more string) call.Request {
			return with(scratch(toolRun(), ws), func(r *call.Request) { r.Run.Policy.Writable = append(r.Run.Policy.Writable, more) })
		}
		b := newBench(t, remembers)
		b.approve(req("/desk/a", "/desk/ab/x"), queue.Always)
		for more, want := range map[string]string{"/desk/ab/x": allows, "/desk/bb/x": asks, "/desk/b/x": asks, "/desk/b": asks} {
			if got := b.outcome(req("/desk/b", more)); got != want {
				t.Errorf("with %s to write: %s, want %s", more, got, want)
			}
		}
		b = newBench(t, remembers)
		b.approve(req("/desk/a", "/desk/a/x"), queue.Always)
		for more, want := range map[string]string{"/desk/b/x": allows, "/desk/a/x": asks, "/desk/b/y": asks} {
			if got := b.outcome(req("/desk/b", more)); got != want {
				t.Errorf("with %s to write: %s, want %s", more, got, want)
			}
		}
	})
}

// A difference is what a question must say about a change.
type difference struct {
	says   string
	change func(*call.Request)
	line   string // of the CHANGED block; empty: the change makes it a different subject
	void   bool   // what was approved no longer exists
}

// withFiles gives the pack a list of its files.
func withFiles(r call.Request) call.Request {
	return with(r, func(r *call.Request) {
		r.Pack.Files = []call.File{{Path: "SKILL.md", Digest: "sha256:a"}, {Path: "scripts/greet.sh", Digest: "sha256:b"}, {Path: "tools.json", Digest: "sha256:c"}}
	})
}

// newFiles changes the pack's files.
func newFiles(files ...call.File) func(*call.Request) {
	return func(r *call.Request) { r.Pack.Digest, r.Pack.Files = "sha256:"+strings.Repeat("ac", 32), files }
}

var packDifferences = []difference{
	{"a changed file (RP-01)", newFiles(call.File{Path: "SKILL.md", Digest: "sha256:a"}, call.File{Path: "scripts/greet.sh", Digest: "sha256:X"}, call.File{Path: "tools.json", Digest: "sha256:c"}),
		"the file scripts/greet.sh changed", true},
	{"a new file", newFiles(call.File{Path: "SKILL.md", Digest: "sha256:a"}, call.File{Path: "evil\u202e.sh", Digest: "sha256:x"}, call.File{Path: "scripts/greet.sh", Digest: "sha256:b"}, call.File{Path: "tools.json", Digest: "sha256:c"}),
		`the file "evil\u202e.sh" is new`, true},
	{"a file less", newFiles(call.File{Path: "SKILL.md", Digest: "sha256:a"}, call.File{Path: "tools.json", Digest: "sha256:c"}), "the file scripts/greet.sh was removed", true},
	{"another tree of the same name (RP-05)", newFiles(), "the pack's files changed", true},
	{"the same digest without something", func(r *call.Request) { r.Pack.Partial = true }, "the pack's digest leaves out other files than before", true},
	{"the same files with other modes", func(r *call.Request) { r.Pack.Digest = "sha256:ff" }, "the pack's files changed", true},
	{"another trust", func(r *call.Request) { r.Pack.Trust = call.TrustBundled }, "trust was user, is now bundled", false},
	{"no trust any more", func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted }, "trust was user, is now untrusted", false},
	{"attached anew", func(r *call.Request) { r.Pack.Attached = "2" }, "the pack was detached and attached again", false},
	{"another pack", func(r *call.Request) { r.Pack.ID = "other" }, "", false},
	{"elsewhere", func(r *call.Request) { r.Pack.Dir = "/elsewhere" }, "", false},
	{"another person", func(r *call.Request) { r.Caller.Person = "grace" }, "", false},
}

var runDifferences = []difference{
	{"a cache", func(r *call.Request) { r.Run.Cache = "go-build" }, `cache: now also "go-build"`, false},
	{"more network (RP-03)", func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull }, "network was none, is now full", false},
	{"one more variable (RP-03)", func(r *call.Request) { r.Run.Command.Env = append(r.Run.Command.Env, "TOKEN=hunter2") }, `"TOKEN"`, false},
	{"one variable less", func(r *call.Request) { r.Run.Command.Env = r.Run.Command.Env[:1] }, `"MODE"`, false},
	{"more to read", func(r *call.Request) { r.Run.Policy.ReadOnly = append(r.Run.Policy.ReadOnly, "/home/\u202ex") }, `may read: now also "/home/\u202ex"`, false},
	{"more to write", func(r *call.Request) { r.Run.Policy.Writable = append(r.Run.Policy.Writable, "/home") }, `may change: now also "/home"`, false},
	{"less to write", func(r *call.Request) { r.Run.Policy.Writable = nil }, `may change: no longer "/desk/chat"`, false},
	{"more to change", func(r *call.Request) {
		r.Run.Policy.Layers = []sandbox.Layer{{Folder: "/site", Kind: sandbox.LayerOverlay}}
	}, `may change in a layer: now also "/site (overlay)"`, false},
	{"a git folder", func(r *call.Request) {
		r.Run.Policy.Layers = []sandbox.Layer{{Folder: "/main/.git", Kind: sandbox.LayerOverlay, Git: changes.GitFolder{Dir: "worktrees/x", Common: "."}}}
	}, `may change in a layer: now also "/main/.git (overlay, git worktrees/x of .)"`, false},
	{"commits", func(r *call.Request) { r.Run.Policy.GitWrite = true }, `changes: now also "commits are applied"`, false},
	{"more time", func(r *call.Request) { r.Run.Policy.Limits.Timeout *= 2 }, "the limits changed", false},
	{"another folder", func(r *call.Request) { r.Run.Command.Dir = "/desk/other" }, "folder was /desk/chat, is now /desk/other", false},
	{"another workspace", func(r *call.Request) { r.Workspace, r.Run.Command.Workspace = "/desk/b", "/desk/b" }, "workspace was /desk/chat, is now /desk/b", false},
	{"another project", func(r *call.Request) { r.Run.Project = "/home/ada/site" }, "project was none, is now /home/ada/site", false},
	{"the user's own home", func(r *call.Request) { r.Run.Granted.Home = "/home/ada" }, "home was none, is now /home/ada", false},
	{"a granted variable", func(r *call.Request) { r.Run.Granted.Env = []string{"GITHUB_TOKEN"} }, `granted variables: now also "GITHUB_TOKEN"`, false},
	{"a granted folder", func(r *call.Request) { r.Run.Granted.Folders = []string{"/srv"} }, `granted folders: now also "/srv"`, false},
	{"other bytes of the program (RP-06)", func(r *call.Request) { r.Run.Command.Program.Digest = "ff" }, "the bytes of the program changed", true},
	{"other bytes of the interpreter (RP-06)", func(r *call.Request) { runBy(r, "/bin/sh", "ff") }, "the bytes of the interpreter changed", true},
	{"another interpreter", func(r *call.Request) { runBy(r, "/bin/bash", strings.Repeat("02", 32)) }, "the interpreter was /bin/sh, is now /bin/bash", false},
	{"a link that leads elsewhere", func(r *call.Request) {
		r.Run.Command.Program.Resolved, r.Run.Command.Program.Digest = "/tmp/x", "ff"
	}, "the program led to ", false},
	{"another name for the program", func(r *call.Request) { r.Run.Command.Program.Name = "greet" }, "the program was called as ", false},
	{"a shim", func(r *call.Request) { r.Run.Command.Program.Shim = "/shims/x" }, "the program's shim was none, is now /shims/x", false},
	{"output put together", func(r *call.Request) { r.Run.Command.Join = true }, "the way its output is assembled changed", false},
	{"more of the home for the program", func(r *call.Request) { r.Run.Command.Program.Needs = []string{"/home/ada/.local"} }, `installation: now also "/home/ada/.local"`, false},
}

var toolDifferences = []difference{
	{"another declaration (RP-02)", func(r *call.Request) { r.Run.Definition = "ff" }, "the tool's declaration changed", true},
	{"a word less of the declaration", func(r *call.Request) { r.Run.ReadOnly = true }, "the tool's declaration changed", true},
	{"another program (RP-06)", func(r *call.Request) {
		p := &r.Run.Command.Program
		p.Path, p.Resolved, p.Digest = "/tmp/greet.sh", "/tmp/greet.sh", "ff"
	}, "the program was /packs/triage/scripts/greet.sh, is now /tmp/greet.sh", false},
	{"another tool", func(r *call.Request) { r.Run.Tool = "close" }, "", false},
	{"no tool", func(r *call.Request) { r.Kind, r.Run.Tool, r.Run.Definition = call.KindExec, "", "" }, "", false},
}

var execDifferences = []difference{
	{"another value of a variable", func(r *call.Request) { r.Run.Command.Env[0] = "HOME=/root" }, `variables changed: "HOME"`, false},
	{"input", func(r *call.Request) { r.Run.Command.Stdin = []byte("hunter2") }, "the input changed", false},
	{"another argument", func(r *call.Request) { r.Run.Command.Args[0] = "push" }, "", false},
}

// changedBlock returns the part of a question about what has changed.
func changedBlock(t *testing.T, text string) string {
	t.Helper()
	_, rest, _ := strings.Cut(text, "\nWhat changed\n")
	block, _, _ := strings.Cut(rest, "\n\n")
	return block
}

// unwrapped returns a text without spaces and line breaks.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), "") }

// TestEveryChangeAsks: any change ends a grant of either scope, and the next question
// says what changed.
func TestEveryChangeAsks(t *testing.T) {
	for name, c := range map[string]struct {
		of   func() call.Request
		what []difference
	}{
		"open":   {func() call.Request { return withFiles(openCall()) }, packDifferences},
		"read":   {func() call.Request { return withFiles(readCall()) }, packDifferences},
		"enable": {func() call.Request { return withFiles(enableCall()) }, packDifferences},
		"tool":   {func() call.Request { return withFiles(toolRun()) }, slices.Concat(packDifferences, runDifferences, toolDifferences)},
		"exec":   {func() call.Request { return withFiles(execRun()) }, slices.Concat(packDifferences, execDifferences)},
	} {
		for _, d := range c.what {
			for _, scope := range []queue.Decision{queue.Chat, queue.Always} {
				t.Run(fmt.Sprint(name, "/", d.says, "/", scope), func(t *testing.T) {
					store := new(memory)
					b := newBench(t, storedIn(store), everywhere)
					b.approve(c.of(), scope)
					b.pass(24 * time.Hour)
					changed := with(c.of(), d.change)
					q := b.ask(changed)
					block := changedBlock(t, textOf(q))
					shown := unwrapped(block)
					switch {
					case d.line == "" && block != "":
						t.Errorf("the question tells of changes of something else:\n%s", block)
					case d.line != "" && !strings.Contains(shown, unwrapped(d.line)):
						t.Errorf("the question says\n%s\nwant %q in it", block, d.line)
					case d.line != "" && !strings.Contains(shown, unwrapped("CHANGED since your answer of ")):
						t.Errorf("the question does not say since when:\n%s", block)
					}
					if strings.Contains(block, "hunter2") {
						t.Errorf("a secret is told as a change:\n%s", block)
					}
					checkShown(t, textOf(q))
					// The log has the person's next decision, with the reason for
					// asking.
					n := len(b.log.all())
					if got := b.goes(changed, accept(q.State, "once")); got != allows {
						t.Fatalf("the call: %s", got)
					}
					if e := b.log.all()[n]; (len(e.Changed) > 0) != (d.line != "") {
						t.Errorf("the line of the decision has changed = %q", e.Changed)
					}
					// What happens if it is changed back?
					want := allows
					if d.void {
						want = asks
					}
					if got := b.outcome(c.of()); got != want {
						t.Errorf("when it is changed back: %s, want %s", got, want)
					}
					var void *grants.Void
					if scope == queue.Always {
						void = store.grants[0].Void
					} else {
						void = b.book.Chats.Of("stdio-1")[0].Void
					}
					if (void != nil) != d.void {
						t.Errorf("void = %+v, want one: %v", void, d.void)
					} else if void != nil && (len(void.Changes) == 0 || !void.At.Equal(b.time)) {
						t.Errorf("void = %+v", void)
					}
				})
			}
		}
	}
}

// TestEveryFactIsInAGrant: whichever field of a request is changed, a grant does not
// cover it, unless the choice said that it does.
func TestEveryFactIsInAGrant(t *testing.T) {
	for name, of := range kinds {
		t.Run(name, func(t *testing.T) {
			store := new(memory)
			newBench(t, storedIn(store)).approve(of(), queue.Always)
			var paths []string
			r := of()
			fields(reflect.ValueOf(&r), "", func(path string, _ func()) { paths = append(paths, path) })
			// This is not a fact, but no grant is used: it is for the exact call.
			free := append(unbound(of, grantDigest), "Kind")
			free = slices.DeleteFunc(free, func(p string) bool { return p == "AlwaysAsk" || p == "Fields" })
			for _, path := range paths {
				r := of()
				fields(reflect.ValueOf(&r), "", func(p string, change func()) {
					if p == path {
						change()
					}
				})
				b := newBench(t, storedIn(remade(t, store)))
				got := b.outcome(r)
				if slices.Contains(free, path) {
					continue
				}
				if got == allows {
					t.Errorf("with another %s: %s, want a question or a denial", path, got)
				}
			}
		})
	}
}

// Grants do not hold the values of variables, or what a program reads.
func TestGrantsHaveNoSecrets(t *testing.T) {
	for name, of := range map[string]func() call.Request{"tool": toolRun, "granted": grantedRun, "exec": execRun} {
		store := new(memory)
		newBench(t, storedIn(store)).approve(with(of(), func(r *call.Request) {
			r.Run.Command.Env = append(r.Run.Command.Env, "TOKEN=hunter3")
			r.Run.Command.Stdin = []byte("hunter4")
			r.Run.Granted.Env = []string{"TOKEN"}
		}), queue.Always)
		if raw, err := json.Marshal(store.grants); err != nil || strings.Contains(string(raw), "hunter") {
			t.Errorf("%s: grants = %s, %v, want no secrets", name, raw, err)
		}
	}
}

// A question names the newest answer, and few enough changes to read.
func TestChangedSince(t *testing.T) {
	b := newBench(t, remembers)
	b.approve(withFiles(toolRun()), queue.Always)
	b.pass(48 * time.Hour)
	second := with(withFiles(toolRun()), newFiles(call.File{Path: "SKILL.md", Digest: "sha256:2"}, call.File{Path: "tools.json", Digest: "sha256:c"}))
	b.approve(second, queue.Chat)
	since := b.time
	b.pass(48 * time.Hour)
	var many []call.File
	for i := range 100 {
		many = append(many, call.File{Path: fmt.Sprintf("new/%03d.md", i), Digest: "sha256:n"})
	}
	q := b.ask(with(second, func(r *call.Request) {
		newFiles(many...)(r)
		r.Pack.Digest = "sha256:03"
		r.Run.Policy.Network = sandbox.NetworkFull
	}))
	block := changedBlock(t, textOf(q))
	if want := day(since); !strings.Contains(unwrapped(block), unwrapped(want)) {
		t.Errorf("the question says\n%s\nwant the newest answer, of %s", block, want)
	}
	if n := strings.Count(block, "\n") + 1; n > maxChanges+2 {
		t.Errorf("the question names %d changes:\n%s", n, block)
	}
	if !strings.Contains(block, "network was none, is now full") {
		t.Errorf("many files hide what else changed:\n%s", block)
	}
}

// TestAlteredGrantsAllowNothing: a grant only counts as it was given.
func TestAlteredGrantsAllowNothing(t *testing.T) {
	for name, spoil := range map[string]func(*grants.Grant){
		"another digest":             func(g *grants.Grant) { g.Digest = strings.Repeat("0", 64) },
		"no digest":                  func(g *grants.Grant) { g.Digest = "" },
		"another fact":               func(g *grants.Grant) { g.Facts[3].Values[0] = "sha256:ff" },
		"a fact less":                func(g *grants.Grant) { g.Facts = g.Facts[1:] },
		"a fact more":                func(g *grants.Grant) { g.Facts = append(g.Facts, call.Fact{Name: "x"}) },
		"facts in another order":     func(g *grants.Grant) { g.Facts[0], g.Facts[1] = g.Facts[1], g.Facts[0] },
		"no facts":                   func(g *grants.Grant) { g.Facts = nil },
		"void":                       func(g *grants.Grant) { g.Void = &grants.Void{} },
		"for another policy":         func(g *grants.Grant) { g.Policy = policy.FirstRun },
		"for a policy nobody has":    func(g *grants.Grant) { g.Policy = "x" },
		"an empty grant":             func(g *grants.Grant) { *g = grants.Grant{} },
		"an empty grant of the same": func(g *grants.Grant) { *g = grants.Grant{ID: g.ID, Subject: g.Subject, Digest: g.Digest} },
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memory)
			b := newBench(t, storedIn(store))
			b.approve(toolRun(), queue.Always)
			store = remade(t, store)
			b = newBench(t, storedIn(store))
			if got := b.outcome(toolRun()); got != allows {
				t.Fatalf("as it is: %s, want %s", got, allows)
			}
			spoil(&store.grants[0])
			if got := b.outcome(toolRun()); got != asks {
				t.Errorf("spoiled: %s, want %s", got, asks)
			}
		})
	}
	t.Run("revoked", func(t *testing.T) {
		store := new(memory)
		b := newBench(t, storedIn(store))
		b.approve(toolRun(), queue.Always)
		store.grants = nil
		if got := b.outcome(toolRun()); got != asks {
			t.Errorf("revoked: %s, want %s", got, asks)
		}
	})
	t.Run("granted by another server", func(t *testing.T) {
		store := new(memory)
		b, other := newBench(t, storedIn(store)), newBench(t, storedIn(store))
		q := b.ask(toolRun())
		other.approve(toolRun(), queue.Always)
		if got := b.outcome(toolRun()); got != allows {
			t.Errorf("granted elsewhere: %s, want %s", got, allows)
		}
		// The open question can still be answered.
		if got := b.goes(toolRun(), accept(q.State, "deny")); !strings.Contains(got, "chose to deny") {
			t.Errorf("the open question: %s", got)
		}
	})
}

// AP-10: if it cannot be known what was allowed, nothing is, whatever else would
// allow it.
func TestStoreThatIsRefused(t *testing.T) {
	refused := errors.New("/home/ada/grants.json was changed\x1b[2J by somebody else")
	for name, of := range kinds {
		t.Run(name, func(t *testing.T) {
			store := new(memory)
			b := newBench(t, storedIn(store), everywhere, func(o *Options) {
				o.Policy = policy.FirstRun
				o.Rules = []rules.Rule{{Effect: rules.Allow, Kinds: []string{"run"}, Tool: "close", Where: "config.yaml:1"}}
			})
			req := with(of(), func(r *call.Request) { r.AlwaysAsk = true })
			b.page(b.left(req), queue.Once)
			for _, req := range []call.Request{of(), req, with(of(), func(r *call.Request) {
				if r.Run != nil && r.Run.Tool != "" {
					r.Run.Tool = "close"
				}
			})} {
				store.err = refused
				n := len(b.log.all())
				_, q, err := b.Check(t.Context(), req, nil)
				if q != nil {
					t.Error("Check() asks")
				}
				b.denied(err, "remembered approvals cannot be trusted")
				checkShown(t, err.Error())
				b.has(n, "deny")
				if d, ok := errors.AsType[*DeniedError](err); !ok || !strings.Contains(d.Hint, "packs-mcp approvals grants") {
					t.Errorf("Check() = %#v, want a hint with the command", err)
				}
				if !strings.Contains(b.logged.String(), "was changed") {
					t.Errorf("the server's log is %q, want the cause in it", b.logged)
				}
			}
			if got := b.outcome(listCall()); got != allows {
				t.Errorf("list: %s, want %s", got, allows)
			}
			store.err = nil
			if got := b.outcome(req); got != allows {
				t.Errorf("when it is in order again, the call that was allowed: %s, want %s", got, allows)
			}
		})
	}
}

// An answer that cannot be kept holds for this call only, and the log says so.
func TestStoreThatCannotBeWritten(t *testing.T) {
	for _, late := range []bool{false, true} {
		store := &readOnly{}
		b := newBench(t, everywhere, func(o *Options) { o.Grants = store })
		if late {
			b.page(b.left(toolRun()), queue.Always)
			if got := b.outcome(toolRun()); got != allows {
				t.Errorf("the call made again: %s, want %s", got, allows)
			}
		} else {
			b.approve(toolRun(), queue.Always)
		}
		lines := b.log.all()
		e := lines[0]
		if late {
			e = lines[1]
		}
		if e.Decision != "once" || e.Grant != "" || !strings.HasPrefix(e.Reason, "it could not be kept for later calls") || !strings.Contains(b.logged.String(), errDisk.Error()) {
			t.Errorf("late %v: line = %+v", late, e)
		}
		if got := b.outcome(toolRun()); got != asks {
			t.Errorf("late %v: the next call: %s, want %s", late, got, asks)
		}
	}
}

// A readOnly store keeps nothing.
type readOnly struct{ memory }

func (*readOnly) Update(func([]grants.Grant) ([]grants.Grant, error)) error { return errDisk }

// No grant holds that is not in the log.
func TestNoGrantWithoutALine(t *testing.T) {
	for _, d := range []queue.Decision{queue.Once, queue.Chat, queue.Always} {
		store := new(memory)
		b := newBench(t, storedIn(store), func(o *Options) { o.Policy = policy.FirstRun })
		req := with(toolRun(), func(r *call.Request) { r.Run.ReadOnly = true })
		q := b.ask(req)
		b.log.fail = func(e audit.Entry) error { return errDisk }
		if _, err := b.answer(req, accept(q.State, string(d))); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "audit log cannot be written") {
			t.Errorf("%s: Check() = %v, want a denial", d, err)
		}
		b.log.fail = nil
		if n := len(store.grants) + len(b.book.Chats.Of("stdio-1")); n != 0 {
			t.Errorf("%s: %d grants are kept", d, n)
		}
		if got := b.outcome(req); got != asks {
			t.Errorf("%s: the next call: %s, want %s", d, got, asks)
		}
	}
}

// TestAlwaysIsNotOffered: always is not offered if an answer may only hold for less.
func TestAlwaysIsNotOffered(t *testing.T) {
	all := []string{"once", "chat", "always", "deny"}
	chat := []string{"once", "chat", "deny"}
	once := []string{"once", "deny"}
	askRule := []rules.Rule{{Effect: rules.Ask, Where: "config.yaml:3"}}
	for name, c := range map[string]struct {
		of     func() call.Request
		change func(*call.Request)
		rules  []rules.Rule
		want   []string
	}{
		"a tool":                 {toolRun, nil, nil, all},
		"loopback":               {toolRun, func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkLoopback }, nil, all},
		"hosts":                  {toolRun, reachesHosts, nil, chat},
		"network full":           {toolRun, func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull }, nil, chat},
		"bytes that are no text": {execRun, func(r *call.Request) { r.Run.Command.Args[0] = "\xff" }, nil, chat},
		"untrusted":              {openCall, func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted }, nil, once},
		"always_ask":             {toolRun, func(r *call.Request) { r.AlwaysAsk = true }, nil, once},
		"fields":                 {toolRun, func(r *call.Request) { r.Fields = []call.Field{{Name: "a", Title: "A"}} }, nil, once},
		"a rule that asks":       {toolRun, nil, askRule, once},
		"an allow rule beside":   {toolRun, func(r *call.Request) { r.AlwaysAsk = true }, []rules.Rule{{Effect: rules.Allow, Where: "config.yaml:4"}}, once},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memory)
			b := newBench(t, storedIn(store), everywhere, func(o *Options) { o.Rules = c.rules })
			b.runner.setLevel(sandbox.LevelFull)
			req := c.of()
			if c.change != nil {
				req = with(req, c.change)
			}
			q := b.ask(req)
			if got := offered(q); !slices.Equal(got, c.want) {
				t.Fatalf("offered = %q, want %q", got, c.want)
			}
			values := map[string]string{}
			for _, f := range req.Fields {
				values[f.Name] = "x"
			}
			for _, d := range []queue.Decision{queue.Chat, queue.Always} {
				if slices.Contains(c.want, d.String()) {
					continue
				}
				if _, err := b.Decide(q.Code, queue.Verdict{Decision: d, Values: values, Channel: queue.ChannelPage}); err == nil {
					t.Errorf("%s can be chosen on the page, and is not offered", d)
				}
				if got := b.goes(req, accept(b.ask(req).State, d.String())); !strings.Contains(got, "none of the choices") {
					t.Errorf("%s in the client: %s, want a denial", d, got)
				}
			}
			if len(store.grants)+len(b.book.Chats.Of("stdio-1")) != 0 {
				t.Errorf("grants are kept: %+v %+v", store.grants, b.book.Chats)
			}
			if slices.Contains(c.want, "chat") {
				b.approve(with(req, func(r *call.Request) { r.Caller.Chat = "stdio-2" }), queue.Chat)
				if got := b.outcome(with(req, func(r *call.Request) { r.Caller.Chat = "stdio-2" })); got != allows {
					t.Errorf("for this chat was chosen: %s, want %s", got, allows)
				}
			}
		})
	}
	// An earlier grant is no way around this: a grant for a call without network does
	// not cover one with it, and neither does one that somebody wrote by hand.
	t.Run("a grant that was written by hand", func(t *testing.T) {
		req := with(toolRun(), func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull })
		g := grants.New(call.Freeze(req, sandbox.LevelNone))
		g.Since = time.Unix(1, 0)
		store := &memory{grants: []grants.Grant{g}}
		if got := newBench(t, storedIn(store)).outcome(req); got != asks {
			t.Errorf("network full under a grant for always: %s, want %s", got, asks)
		}
	})
}

// The id of a grant identifies it.
func TestGrantIDs(t *testing.T) {
	want := toolRun()
	digest := grants.New(call.Freeze(want, sandbox.LevelNone)).Digest
	store := &memory{grants: []grants.Grant{{ID: digest[:8], Digest: "x"}, {ID: digest[:9], Digest: "y"}}}
	b := newBench(t, storedIn(store))
	b.approve(toolRun(), queue.Always)
	if got := store.grants[2].ID; got != digest[:10] || b.log.last().Grant != got {
		t.Errorf("id = %q, in the log %q, want %q", got, b.log.last().Grant, digest[:10])
	}
	b.outcome(toolRun())
	if got := b.log.last().Grant; got != digest[:10] {
		t.Errorf("the grant that allowed the call = %q, want %q", got, digest[:10])
	}
	// The same grant given again replaces itself, under the same id.
	c := newBench(t, storedIn(store))
	store.grants[2].Void = &grants.Void{}
	c.approve(toolRun(), queue.Always)
	if n := len(store.grants); n != 3 || store.grants[2].ID != digest[:10] || store.grants[2].Void != nil {
		t.Errorf("grants = %+v, want the same three", store.grants)
	}
}

// TestGrantSaysWhatItCovers: a grant describes itself in the words of the choice.
func TestGrantSaysWhatItCovers(t *testing.T) {
	for name, of := range kinds {
		store := new(memory)
		b := newBench(t, storedIn(store))
		q := b.ask(of())
		means := func(value string) string {
			i := slices.IndexFunc(q.Choices, func(c queue.Choice) bool { return c.Value == value })
			return q.Choices[i].Means
		}
		b.approve(of(), queue.Always)
		g := store.grants[0]
		if !strings.Contains(means("always"), g.Covers) || g.Covers == "" {
			t.Errorf("%s: the grant covers %q, the choice was %q", name, g.Covers, means("always"))
		}
		req := of()
		kind := req.Kind
		if kind == call.KindOpen {
			kind = call.KindUse
		}
		if g.Pack != req.Pack.ID || g.Kind != kind || g.Channel != queue.ChannelElicitation || !g.Since.Equal(b.time) || g.Dir != req.Pack.Dir {
			t.Errorf("%s: grant = %+v", name, g)
		}
		if req.Run != nil && req.Run.Tool == "" {
			if diff := cmp.Diff([]string{"/usr/bin/git", "log", "--oneline"}, g.Argv); diff != "" {
				t.Errorf("%s: argv differs (-want +got):\n%s", name, diff)
			}
		}
		c := newBench(t)
		c.approve(of(), queue.Chat)
		if got := c.book.Chats.Of("stdio-1")[0].Covers; !strings.Contains(means("chat"), got) || !strings.HasSuffix(got, ", until this client closes") {
			t.Errorf("%s: the grant covers %q, the choice was %q", name, got, means("chat"))
		}
	}
}

// A chat remembers a bounded number of answers, the newest.
func TestChatRemembersSoMuch(t *testing.T) {
	b := newBench(t)
	of := func(i int) call.Request {
		return with(openCall(), func(r *call.Request) { r.Pack.ID = fmt.Sprint("pack-", i) })
	}
	const maxChatGrants = 1000
	for i := range maxChatGrants - 1 {
		c := call.Freeze(of(i), sandbox.LevelNone)
		b.book.Chats.Add(&c.Caller, grants.New(c))
	}
	b.approve(of(maxChatGrants-1), queue.Chat)
	b.approve(of(maxChatGrants), queue.Chat)
	if n := len(b.book.Chats.Of("stdio-1")); n != maxChatGrants {
		t.Errorf("%d answers are remembered, want %d", n, maxChatGrants)
	}
	if got := []string{b.outcome(of(0)), b.outcome(of(1)), b.outcome(of(maxChatGrants))}; !slices.Equal(got, []string{asks, allows, allows}) {
		t.Errorf("the oldest, the next and the newest: %q", got)
	}
}

// What is allowed in one person's chats takes no room from another person's.
func TestChatsOfAPersonRememberSoMuch(t *testing.T) {
	b := newBench(t, func(o *Options) { o.People = 2 })
	by := func(person, chat string) call.Request {
		return with(openCall(), func(r *call.Request) { r.Caller.Person, r.Caller.Chat = person, chat })
	}
	b.approve(by("ada", "ada-1"), queue.Chat)
	// Another chat of hers leaves less room than a grant needs.
	fills := grants.Grant{Person: "ada", Covers: strings.Repeat("x", 32<<20)}
	other := call.Caller{Person: "ada", Chat: "ada-2"}
	for !b.book.Chats.Fits(&other, fills) {
		fills.Covers = fills.Covers[200:]
	}
	b.book.Chats.Add(&other, fills)
	b.approve(by("ada", "ada-3"), queue.Chat)
	if last := b.log.last(); last.Decision != queue.Once.String() || !strings.Contains(last.Reason, "no room") {
		t.Errorf("the log has %+v, want that the answer held once", last)
	}
	b.approve(by("grace", "grace-1"), queue.Chat)
	got := []string{b.outcome(by("ada", "ada-1")), b.outcome(by("ada", "ada-3")), b.outcome(by("grace", "grace-1"))}
	if want := []string{allows, asks, allows}; !slices.Equal(got, want) {
		t.Errorf("ada's first chat, her third and grace's: %q, want %q", got, want)
	}
	b.EndChat("ada-2")
	b.approve(by("ada", "ada-3"), queue.Chat)
	if got := b.outcome(by("ada", "ada-3")); got != allows {
		t.Errorf("when another chat has ended: %q, want %q", got, allows)
	}
}

// A new answer replaces what became void of the old one.
func TestNewAnswerReplacesVoid(t *testing.T) {
	store := new(memory)
	b := newBench(t, storedIn(store))
	b.approve(openCall(), queue.Always)
	b.approve(toolRun(), queue.Always)
	changed := with(toolRun(), func(r *call.Request) { r.Pack.Digest = "ff" })
	b.approve(changed, queue.Always)
	b.approve(with(changed, func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkLoopback }), queue.Always)
	var kept []string
	for _, g := range store.grants {
		kept = append(kept, string(g.Kind))
		if g.Void != nil {
			t.Errorf("a void grant is kept beside the new one: %+v", g)
		}
	}
	if want := []string{"use", "run", "run"}; !slices.Equal(kept, want) {
		t.Errorf("grants of kinds %q are kept, want %q", kept, want)
	}
}

// If the log says that an answer is kept, but keeping it then fails, the log says
// that too.
func TestStoreThatFailsAtTheEnd(t *testing.T) {
	for reason, err := range map[string]error{"it could not be kept for later calls": errDisk, "whether it is kept for later calls is not known": grants.ErrUnknown} {
		store := &unsure{err: err}
		b := newBench(t, everywhere, func(o *Options) { o.Grants = store })
		b.approve(toolRun(), queue.Always)
		b.has(0, "always elicitation", "once elicitation")
		if e := b.log.last(); e.Grant != "" || !strings.HasPrefix(e.Reason, reason) {
			t.Errorf("%v: last line = %+v, want %q", err, e, reason)
		}
		if got := b.outcome(toolRun()); got != asks {
			t.Errorf("%v: the next call: %s, want %s", err, got, asks)
		}
	}
}

// An unsure store notices only at the end that it cannot be written.
type unsure struct {
	memory
	err error
}

func (u *unsure) Update(change func([]grants.Grant) ([]grants.Grant, error)) error {
	if _, err := change(nil); err != nil {
		return err
	}
	return u.err
}

// While the replicas' shared store cannot be reached, calls that a person would
// decide about are denied, and the denial says why.
func TestSharedGrantsAway(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Grants = away{} })
	for name, req := range map[string]call.Request{"opening": openCall(), "a run": toolRun()} {
		permit, question, err := b.Check(t.Context(), req, nil)
		denied, _ := errors.AsType[*DeniedError](err)
		if permit != nil || question != nil || denied == nil || !denied.Unavailable || denied.Hint == "" {
			t.Errorf("%s: %v, %v, %v", name, permit, question, err)
		}
		if e := b.log.last(); e.Decision != "deny" || !strings.Contains(e.Reason, "shares with others") {
			t.Errorf("%s: the last line is %+v", name, e)
		}
	}
}

// away is a store of grants that cannot be reached.
type away struct{}

func (away) Load() ([]grants.Grant, error) { return nil, grants.ErrUnavailable }

func (away) Update(func([]grants.Grant) ([]grants.Grant, error)) error { return grants.ErrUnavailable }
