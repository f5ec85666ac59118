package server

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// everywhere also shows questions on the page and in the terminal, and sets how long
// calls wait.
func everywhere(wait time.Duration) option {
	return func(s *setup) {
		s.gate.Channels = []string{queue.ChannelElicitation, queue.ChannelPage, queue.ChannelTerminal}
		s.gate.Wait = wait
	}
}

// kept is a store for answers that always hold.
type kept struct{ grants []grants.Grant }

func (k *kept) Load() ([]grants.Grant, error) { return slices.Clone(k.grants), nil }

func (k *kept) Update(change func([]grants.Grant) ([]grants.Grant, error)) error {
	now, err := change(slices.Clone(k.grants))
	if err == nil {
		k.grants = now
	}
	return err
}

func (w *world) gate() *gate.Gate { return w.srv.opts.Gate.(*gate.Gate) }

// pending waits until n calls wait for a person.
func (w *world) pending(n int) []queue.Pending {
	w.t.Helper()
	for late := time.After(20 * time.Second); ; {
		changed := w.gate().Changes()
		all := w.gate().Pending()
		if len(all) == n {
			return all
		}
		select {
		case <-changed:
		case <-late:
			w.t.Fatalf("%d calls wait for a person, want %d: %+v", len(all), n, all)
		}
	}
}

// decide answers a pending call as the page would.
func (w *world) decide(code string, d queue.Decision) {
	w.t.Helper()
	if _, err := w.gate().Decide(code, queue.Verdict{Decision: d, Channel: queue.ChannelPage}); err != nil {
		w.t.Fatalf("Decide(%q, %q) = %v", code, d, err)
	}
}

// begin sends a call of open_docs in one of the eras, and does not wait for its
// reply.
func (w *world) begin(modern bool) {
	params := map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}}
	if modern {
		params = withMeta(params, w.answer != nil)
	}
	w.next++
	w.send(map[string]any{"id": w.next, "method": "tools/call", "params": params})
}

// code returns the code of a reply's error; empty if there is none.
func code(t *testing.T, reply map[string]any) string {
	t.Helper()
	content, _ := result(t, reply)["structuredContent"].(map[string]any)
	e, _ := content["error"].(map[string]any)
	c, _ := e["code"].(string)
	return c
}

// The client cannot ask: its call waits until somebody answers elsewhere, in both
// eras.
func TestAnsweredElsewhere(t *testing.T) {
	for _, modern := range []bool{false, true} {
		for _, c := range []struct {
			decision queue.Decision
			code     string
		}{{queue.Once, ""}, {queue.Chat, ""}, {queue.Deny, "denied"}} {
			unseen := 0
			w := newWorld(t, triage, everywhere(20*time.Second), func(s *setup) {
				s.server.Asking = func(shown bool) {
					if !shown {
						unseen++
					}
				}
			})
			if !modern {
				w.initialize()
			}
			w.begin(modern)
			p := w.pending(1)[0]
			if !strings.Contains(p.Title, "triage") || p.Waits.IsZero() || p.Chat == "" {
				t.Errorf("the call waits as %+v, want its title, its chat and until when it waits", p)
			}
			w.decide(p.Code, c.decision)
			if got := code(t, w.receive()); got != c.code {
				t.Errorf("modern %v, %q: the call ends with %q, want %q", modern, c.decision, got, c.code)
			}
			if unseen != 1 {
				t.Errorf("Asking was called %d times for a question that the client does not show, want once", unseen)
			}
			w.pending(0)
			if e := w.entries()[0]; e.Channel != queue.ChannelPage || e.Decision != c.decision.String() {
				t.Errorf("the log has %q by %q, want %q by the page", e.Decision, e.Channel, c.decision)
			}
			if c.decision == queue.Chat {
				w.begin(modern)
				if got := code(t, w.receive()); got != "" {
					t.Errorf("the next call ends with %q, want it allowed for the chat", got)
				}
			}
		}
	}
}

// If the client asks as well, the first answer counts: if it comes from elsewhere,
// the client's form is withdrawn.
func TestFormIsWithdrawn(t *testing.T) {
	w := newWorld(t, triage, everywhere(20*time.Second))
	w.answer = func(string, map[string]any) map[string]any { return nil }
	w.initialize()
	w.begin(false)
	w.decide(w.pending(1)[0].Code, queue.Once)
	if got := code(t, w.receive()); got != "" {
		t.Errorf("the call ends with %q, want it allowed", got)
	}
	if len(w.asked) != 1 || len(w.notes) != 1 || w.notes[0]["method"] != "notifications/cancelled" {
		t.Errorf("%d questions and the notifications %v came, want one question that is withdrawn", len(w.asked), w.notes)
	}
	// The other way round: nothing is left to answer elsewhere.
	w.answer = decide("once")
	w.begin(false)
	if got := code(t, w.receive()); got != "" {
		t.Errorf("the call ends with %q, want it allowed", got)
	}
	w.pending(0)
}

// A call that nobody answers returns, and says how it can still be allowed. The
// answer then holds for the same call, once.
func TestApprovalPending(t *testing.T) {
	for _, elicits := range []bool{false, true} {
		w := newWorld(t, triage, everywhere(50*time.Millisecond))
		if elicits {
			w.answer = func(string, map[string]any) map[string]any { return nil }
		}
		w.initialize()
		args := map[string]any{"pack_id": "triage"}
		e := w.fails("approval_pending", "capability_packs_open_docs", args)
		p := w.pending(1)[0]
		hint, _ := e["hint"].(string)
		if e["approval_code"] != p.Code || !strings.Contains(hint, "packs-mcp approvals approve "+p.Code) || !p.Waits.IsZero() {
			t.Errorf("error = %v, want it to name %s; the call waits until %v, want no longer", e, p.Code, p.Waits)
		}
		// The same call waits under the same code.
		if again := w.fails("approval_pending", "capability_packs_open_docs", args); again["approval_code"] != p.Code {
			t.Errorf("the same call waits under %v, want %s", again["approval_code"], p.Code)
		}
		w.decide(p.Code, queue.Once)
		w.fails("approval_pending", "capability_packs_read_file", map[string]any{"pack_id": "triage", "path": "docs/steps.md"})
		asked := len(w.asked)
		w.ok("capability_packs_open_docs", args)
		if len(w.asked) != asked {
			t.Errorf("the call that was allowed asks again: %q", w.asked[asked:])
		}
		w.fails("approval_pending", "capability_packs_open_docs", args)
		var got []string
		for _, e := range w.entries() {
			got = append(got, strings.TrimSpace(e.Kind+" "+e.Decision+" "+e.Channel))
		}
		want := []string{"open pending", "open pending", "open once page", "read pending", "open once page", "open pending"}
		if !slices.Equal(got, want) {
			t.Errorf("the log has %q, want %q", got, want)
		}
	}
}

// If the pack changes after the answer, the person is asked again: what was allowed
// no longer exists.
func TestPendingAndChanged(t *testing.T) {
	w := newWorld(t, triage, everywhere(50*time.Millisecond))
	w.initialize()
	args := map[string]any{"pack_id": "triage"}
	w.fails("approval_pending", "capability_packs_open_docs", args)
	w.decide(w.pending(1)[0].Code, queue.Chat)
	w.ok("capability_packs_open_docs", args)
	w.put("triage/docs/steps.md", "Other steps.\n", 0o644)
	w.fails("approval_pending", "capability_packs_open_docs", args)
	if text := w.pending(1)[0].Card.Text(80); !says(text, "CHANGED") || !says(text, "the file docs/steps.md changed") {
		t.Errorf("the question is\n%s\nwant what changed", text)
	}
}

// A client that declines by itself, as some do when nobody watches, is treated like
// one that cannot ask: the call waits, and the person answers elsewhere.
func TestDeclinedByTheClient(t *testing.T) {
	for _, modern := range []bool{false, true} {
		for _, action := range []string{"decline", "cancel"} {
			for _, decision := range []queue.Decision{queue.Once, queue.Deny} {
				var unseen atomic.Int32
				w := newWorld(t, triage, everywhere(20*time.Second), func(s *setup) {
					s.server.Asking = func(shown bool) {
						if !shown {
							unseen.Add(1)
						}
					}
				})
				w.answer = func(string, map[string]any) map[string]any { return map[string]any{"action": action} }
				if !modern {
					w.initialize()
				}
				w.begin(modern)
				if modern {
					asked := result(t, w.receive())
					if asked["resultType"] != "input_required" {
						t.Fatalf("the call = %v, want a question", asked)
					}
					w.next++
					w.send(map[string]any{"id": w.next, "method": "tools/call", "params": withMeta(map[string]any{
						"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"},
						"requestState": asked["requestState"], "inputResponses": map[string]any{"approval": map[string]any{"action": action}},
					}, true)})
				} else {
					w.question(<-w.lines)
				}
				for changed := w.gate().Changes(); ; changed = w.gate().Changes() {
					if p := w.gate().Pending(); len(p) == 1 && strings.Contains(p[0].Note, "declined by itself") && !p[0].Waits.IsZero() {
						break
					}
					<-changed
				}
				w.decide(w.pending(1)[0].Code, decision)
				want := map[queue.Decision]string{queue.Deny: "denied"}[decision]
				if got := code(t, w.receive()); got != want {
					t.Errorf("modern %v, %s: the call ends with %q, want %q", modern, action, got, want)
				}
				if unseen.Load() != 1 {
					t.Errorf("Asking was called %d times for a question that the client does not show, want once", unseen.Load())
				}
				w.pending(0)
				e := w.entries()
				if e[0].Decision != "pending" || e[0].Channel != queue.ChannelElicitation || !strings.Contains(e[0].Reason, "the client declined by itself") ||
					e[1].Decision != decision.String() || e[1].Channel != queue.ChannelPage {
					t.Errorf("the log has %+v, want that the client declined by itself, and the person's answer", e)
				}
			}
		}
	}
	// What a person denied in the form stays denied.
	w := newWorld(t, triage, everywhere(20*time.Second))
	w.answer = decide("deny")
	w.initialize()
	if e := w.fails("denied", "capability_packs_open_docs", map[string]any{"pack_id": "triage"}); e["approval_code"] != nil {
		t.Errorf("error = %v, want no code after a person's own denial", e)
	}
	w.pending(0)
}

// If the same call is made again while it waits, it takes the question: the client
// may have given up the first call.
func TestSameCallWhileTheFirstWaits(t *testing.T) {
	for _, modern := range []bool{false, true} {
		w := newWorld(t, triage, everywhere(20*time.Second))
		if !modern {
			w.initialize()
		}
		w.begin(modern)
		first := w.pending(1)[0]
		w.begin(modern)
		reply := w.receive()
		if got := code(t, reply); got != "approval_pending" || reply["id"] != float64(w.next-1) {
			t.Errorf("the first call = %v, want that it is pending", reply)
		}
		if p := w.pending(1)[0]; p.Code != first.Code || p.Waits.IsZero() {
			t.Errorf("the call waits as %+v, want the code %s", p, first.Code)
		}
		w.decide(first.Code, queue.Once)
		if reply := w.receive(); code(t, reply) != "" || reply["id"] != float64(w.next) {
			t.Errorf("the second call = %v, want it allowed", reply)
		}
		w.pending(0)
	}
}

// A cancelled call is withdrawn everywhere.
func TestCancelledWhileWaiting(t *testing.T) {
	w := newWorld(t, triage, everywhere(20*time.Second))
	w.initialize()
	w.begin(false)
	p := w.pending(1)[0]
	w.send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": w.next}})
	w.pending(0)
	_, err := w.gate().Decide(p.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage})
	if e, ok := errors.AsType[*queue.CodeError](err); !ok || e.Problem != queue.CodeWithdrawn {
		t.Errorf("Decide(%q) = %v, want that it was withdrawn", p.Code, err)
	}
	for changed := w.gate().Changes(); len(w.gate().History()) == 0; changed = w.gate().Changes() {
		<-changed
	}
	if e := w.entries(); len(e) != 1 || e[0].Decision != "deny" {
		t.Errorf("the log has %+v, want one denial", e)
	}
}

// What a person attaches in one chat is attached there, and nowhere else.
func TestAttachedInAChat(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = decide("once")
	w.initialize()
	w.enable("triage")
	other, err := w.srv.chats.Open(wire.Client{Transport: "other", Ends: "soon", Origin: gate.OriginClient})
	if err != nil {
		t.Fatal(err)
	}
	rooms := w.srv.ChatViews(t.Context())
	mine := slices.IndexFunc(rooms, func(r ChatView) bool { return r.Chat != other.ID() })
	if len(rooms) != 2 || len(rooms[mine].Packs) != 1 || rooms[mine].Client != "test 1" {
		t.Fatalf("Rooms() = %+v, want two chats, and the pack and the client of one", rooms)
	}
	chat := rooms[mine].Chat
	w.notes = nil
	changed := w.srv.Changes()
	if err := w.srv.SetAttached(t.Context(), chat, "triage", false); err != nil {
		t.Fatal(err)
	}
	<-changed
	w.fails("not_attached", "capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	if got := w.ok("capability_packs_list", nil)["packs"]; len(objects(got)) != 0 {
		t.Errorf("list = %v, want no pack", got)
	}
	if got := w.noted(); !slices.Equal(got, everyList) || slices.Contains(w.listed(), "triage__greet") {
		t.Errorf("notifications %q, want one for each list", got)
	}
	if p, err := other.Catalog(t.Context()).LookupAttached("triage"); err != nil {
		t.Errorf("in the other chat the pack is %v, %v, want it attached", p, err)
	}
	if err := w.srv.SetAttached(t.Context(), chat, "triage", true); err != nil {
		t.Fatal(err)
	}
	w.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	if !slices.Contains(w.listed(), "triage__greet") {
		t.Error("the pack's tool is not back")
	}
	if err := w.srv.SetAttached(t.Context(), "no such chat", "triage", true); err == nil {
		t.Error("SetAttached of a chat that is not there = nil")
	}
	if err := w.srv.SetAttached(t.Context(), chat, "no-such-pack", true); err == nil {
		t.Error("SetAttached of a pack that is not there = nil")
	}
}

// A grant for the chat ends when the pack is detached, and does not come back
// with it.
func TestDetachEndsGrants(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = decide("chat")
	w.initialize()
	args := map[string]any{"pack_id": "triage"}
	w.ok("capability_packs_open_docs", args)
	chat := w.srv.ChatViews(t.Context())[0].Chat
	for _, on := range []bool{false, true} {
		if err := w.srv.SetAttached(t.Context(), chat, "triage", on); err != nil {
			t.Fatal(err)
		}
	}
	asked := len(w.asked)
	w.ok("capability_packs_open_docs", args)
	if len(w.asked) != asked+1 {
		t.Errorf("%d questions after the pack was attached again, want one", len(w.asked)-asked)
	}
}

// The page serves the files of a workspace, and no others.
func TestArtifacts(t *testing.T) {
	w := newWorld(t, triage)
	w.initialize()
	chat := w.srv.chats.All()[0]
	secret := filepath.Join(t.TempDir(), "secret.txt")
	for path, data := range map[string]string{
		secret: "secret", filepath.Join(chat.Workspaces.First().Dir, "report.md"): "# Report\n", filepath.Join(chat.Workspaces.First().Dir, "sub", "a.bin"): "\x00\x01",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	linked := os.Symlink(secret, filepath.Join(chat.Workspaces.First().Dir, "link.txt")) == nil
	hard := os.Link(secret, filepath.Join(chat.Workspaces.First().Dir, "hard.txt")) == nil
	var names []string
	for _, f := range w.srv.ChatViews(t.Context())[0].Artifacts {
		names = append(names, f.Path)
		if f.Path == "report.md" && !strings.HasPrefix(f.MIME, "text/") {
			t.Errorf("%s is of the kind %q, want a text", f.Path, f.MIME)
		}
	}
	slices.Sort(names)
	if want := []string{"report.md", "sub/a.bin"}; !slices.Equal(names, want) {
		t.Errorf("artifacts = %q, want %q", names, want)
	}
	f, about, err := w.srv.OpenArtifact(chat.ID(), "report.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := io.ReadAll(f); string(data) != "# Report\n" || err != nil || about.Size != int64(len(data)) || !strings.HasPrefix(about.MIME, "text/") {
		t.Errorf("OpenArtifact = %q, %+v, %v, want the file", data, about, err)
	}
	bad := []string{"", ".", "..", "../" + filepath.Base(secret), secret, "sub", "none.txt", "sub/../../x", "a\x00b"}
	if linked {
		bad = append(bad, "link.txt")
	}
	if hard {
		bad = append(bad, "hard.txt")
	}
	for _, name := range bad {
		if f, _, err := w.srv.OpenArtifact(chat.ID(), name); err == nil {
			f.Close()
			t.Errorf("OpenArtifact(%q) gives a file", name)
		}
	}
	if _, _, err := w.srv.OpenArtifact("other", "report.md"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenArtifact of a chat that is not there = %v, want that it has ended", err)
	}
}

// AP-08: nothing in a pack or in the workspace allows anything.
func TestPackCannotAllowItself(t *testing.T) {
	const allow = "rules:\n  - allow: {kind: open}\n  - allow: {kind: run}\napproval: {policy: first-run, channels: [page]}\n"
	w := newWorld(t, triage+"-- triage/config.yaml --\n"+allow+"-- triage/.packs-mcp/config.yaml --\n"+allow+"-- triage/grants.json --\n{\"version\":1,\"grants\":[]}\n")
	w.answer = decide("deny")
	w.initialize()
	for _, name := range []string{"config.yaml", "rules.yaml", "grants.json"} {
		if err := os.WriteFile(filepath.Join(w.srv.chats.All()[0].Workspaces.First().Dir, name), []byte(allow), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.fails("denied", "capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	if len(w.asked) != 1 {
		t.Errorf("%d questions, want one", len(w.asked))
	}
	for _, e := range w.entries() {
		if e.Event == audit.EventDecision && e.Decision != "deny" {
			t.Errorf("the log has %+v, want a denial", e)
		}
	}
}

// A run may never read the keys with which calls are approved: it could approve
// others with them.
func TestKeysAreHidden(t *testing.T) {
	needShell(t)
	keys := filepath.Join(t.TempDir(), "home", "run")
	project := filepath.Dir(keys)
	if err := os.MkdirAll(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	const tree = `
-- triage/SKILL.md --
---
name: triage
description: Triage incidents.
---
-- triage/tools.json --
{"tools": [
  {"name": "here", "command": {"program": "ls", "cwd": "project"}},
  {"name": "there", "command": {"program": "ls"}}]}
`
	w := newWorld(t, tree, func(s *setup) {
		s.server.Private, s.server.Project = []string{keys}, project
		s.server.Openings = []plan.Opening{{Pack: "*", Tool: "*", Read: []string{keys, project}}}
	})
	w.answer = decide("once")
	w.initialize()
	w.enable("triage")
	w.fails("path_denied", "triage__here", nil)
	w.ok("triage__there", nil)
	if q := w.asked[len(w.asked)-1]; !says(q, "left out") || !says(q, "holds files that only packs-mcp itself may read") || says(q, "(by your configuration)") {
		t.Errorf("the question is\n%s\nwant the grants left out", q)
	}
	if _, err := New(Options{Library: w.lib, Gate: w.gate(), Workspace: project, Private: []string{keys}}); err == nil {
		t.Error("New takes a workspace that holds the keys")
	}
}

// Rules also apply to what a person fills in.
func TestRuleForWhatIsFilledIn(t *testing.T) {
	needShell(t)
	const tree = `
-- look/SKILL.md --
---
name: look
description: Look at a page.
---
-- look/tools.json --
{"tools": [{"name": "page", "inputSchema": {"type": "object", "properties": {"note": {"type": "string"}}}, "command": {"program": "echo", "args": ["{{context.url}}", "{{note}}"]}}]}
`
	w := newWorld(t, tree, func(s *setup) {
		s.gate.Rules = []rules.Rule{{Effect: rules.Deny, Kinds: []string{"run"}, Argv: []string{"echo", "*evil*", "**"}, Where: "config.yaml:1"}}
	})
	w.answer = decide("once")
	w.initialize()
	w.enable("look")
	fill := func(url string) {
		w.answer = func(string, map[string]any) map[string]any {
			return map[string]any{"action": "accept", "content": map[string]any{"decision": "once", "context_url": url}}
		}
	}
	fill("https://evil.example/")
	if e := w.fails("denied", "look__page", map[string]any{"note": "x"}); !strings.Contains(e["message"].(string), "config.yaml:1") {
		t.Errorf("error = %v, want the rule", e)
	}
	fill("https://good.example/")
	if out := w.ok("look__page", map[string]any{"note": "x"}); out["stdout"] != "https://good.example/ x\n" {
		t.Errorf("it ran as %v, want what was filled in", out)
	}
	// A text like the stand-in would be mistaken for it.
	w.fails("missing_context", "look__page", map[string]any{"note": "<context_url>"})
}

// If nobody can be asked for what a tool needs to know, the model learns which
// parameter it may pass.
func TestMissingContextWithoutAnybodyToAsk(t *testing.T) {
	needShell(t)
	const tree = `
-- look/SKILL.md --
---
name: look
description: Look at a page.
---
-- look/look.tool.json --
{"name": "page", "description": "d", "parameters": {"url": {"type": "string", "source": "context.url", "required": true}}, "command": {"program": "echo", "args": ["{{url}}"]}}
-- look/tools.json --
{"tools": [{"name": "file", "description": "d", "command": {"program": "echo", "args": ["{{context.file}}"]}}]}
`
	w := newWorld(t, tree, func(s *setup) {
		s.gate.Rules = []rules.Rule{{Effect: rules.Allow, Kinds: []string{"enable"}, Where: "config.yaml:1"}}
	})
	w.initialize() // a client that cannot ask
	w.enable("look")
	if e := w.fails("missing_context", "look__page", nil); !strings.Contains(e["hint"].(string), `pass it as "url"`) {
		t.Errorf("error = %v, want the parameter", e)
	}
	if e := w.fails("missing_context", "look__file", nil); !strings.Contains(e["hint"].(string), "set file under context:") {
		t.Errorf("error = %v, want the key of the configuration", e)
	}
	w.fails("denied", "look__page", map[string]any{"url": "https://example.com/"}) // only the approval is missing
}

// TP-02, HU-01: the person who enables tools is told what is hidden in their
// declarations.
func TestHiddenInTools(t *testing.T) {
	const tree = `
-- odd/SKILL.md --
---
name: odd
description: Odd choices.
---
-- odd/tools.json --
{"tools": [{"name": "pick", "inputSchema": {"type": "object", "properties": {"a": {"enum": ["plain", "x\U000e0041\U000e0042"]}}}, "command": {"program": "echo"}}]}
`
	w := newWorld(t, strings.NewReplacer(`\U000e0041`, "\U000e0041", `\U000e0042`, "\U000e0042").Replace(tree))
	w.answer = decide("once")
	w.initialize()
	w.enable("odd")
	if q := w.asked[0]; !says(q, "CAUTION") || !says(q, "2 invisible characters") {
		t.Errorf("the question is\n%s\nwant how many invisible characters there are", q)
	}
}
