package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// everyList holds the notes about all lists, in the order in which they are sent.
var everyList = []string{lists.ToolsChanged, lists.PromptsChanged, lists.ResourcesChanged}

// noted returns the methods of the notifications that came.
func (w *world) noted() []string {
	var all []string
	for _, n := range w.notes {
		all = append(all, n["method"].(string))
	}
	return all
}

// refresh scans the packs again and tells the chats, as the watcher does.
func (w *world) refresh() {
	w.t.Helper()
	w.rescan()
	w.srv.Refresh(w.t.Context())
}

// rescan scans the packs again, and tells nobody.
func (w *world) rescan() {
	w.t.Helper()
	if err := w.lib.Rescan(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// heard returns the notifications that came so far. The server answers a ping after
// everything that it said before.
func (w *world) heard() []string {
	w.t.Helper()
	w.next++
	w.send(map[string]any{"id": w.next, "method": "completion/complete", "params": map[string]any{
		"ref": map[string]any{"type": "ref/prompt", "name": "attach"}, "argument": map[string]any{"name": "pack_id", "value": "none"},
	}})
	w.receive()
	got := w.noted()
	w.notes = nil
	return got
}

// await waits for the next notification.
func (w *world) await() map[string]any {
	w.t.Helper()
	select {
	case m, ok := <-w.lines:
		if !ok || m["method"] == nil {
			w.t.Fatalf("%v came, want a notification", m)
		}
		return m
	case <-time.After(20 * time.Second):
		w.t.Fatal("no notification came")
		return nil
	}
}

// A client is told about exactly the lists that differ.
func TestListChanges(t *testing.T) {
	w := newWorld(t, triage+shelf)
	w.answer = decide("chat")
	w.initialize()
	w.enable("triage")
	if got := w.heard(); !slices.Equal(got, []string{lists.ToolsChanged}) {
		t.Errorf("after enabling: %q, want the tools", got)
	}
	w.enable("triage")
	w.listed()
	const document = "---\nname: triage\ndescription: %s\n---\n# Triage\n%s\n"
	for _, c := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"a body", func() { w.put("triage/SKILL.md", fmt.Sprintf(document, "Triage incidents.", "Other words."), 0o644) }, nil},
		{"a file", func() { w.put("triage/docs/steps.md", "Step two.\n", 0o644) }, nil},
		{"a description", func() { w.put("triage/SKILL.md", fmt.Sprintf(document, "Triage all.", ""), 0o644) }, everyList},
		{"a tool's description", func() {
			w.put("triage/tools.json", `[{"name": "greet", "description": "Say hi.", "inputSchema": {"type": "object"}, "command": ["true"]}]`, 0o644)
		}, []string{lists.ToolsChanged}},
		{"a hint", func() {
			w.put("notes/README.md", "---\nname: notes\ndescription: Notes, without a SKILL.md.\nargument-hint: topic\n---\n", 0o644)
		}, []string{lists.PromptsChanged}},
		{"a new pack", func() { w.put("new/SKILL.md", "---\nname: new\ndescription: New.\n---\n", 0o644) }, everyList},
		{"a pack for models only", func() {
			w.put("quiet/SKILL.md", "---\nname: quiet\ndescription: Q.\nuser-invocable: false\n---\n", 0o644)
		}, []string{lists.ToolsChanged, lists.ResourcesChanged}},
		{"a pack for people only", func() {
			w.put("loud/SKILL.md", "---\nname: loud\ndescription: L.\ndisable-model-invocation: true\n---\n", 0o644)
		}, []string{lists.PromptsChanged}},
		{"a pack that is not valid any more", func() { w.put("triage/SKILL.md", "---\nname: triage\n---\n", 0o644) }, everyList},
		{"and is again", func() { w.put("triage/SKILL.md", fmt.Sprintf(document, "Triage all.", ""), 0o644) }, everyList},
		{"a pack that is gone", func() {
			if err := os.RemoveAll(filepath.Join(w.root, "new")); err != nil {
				t.Fatal(err)
			}
		}, everyList},
	} {
		c.change()
		w.refresh()
		if got := w.heard(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		w.refresh()
		if got := w.heard(); len(got) != 0 {
			t.Errorf("%s, looked at again: %q, want nothing", c.name, got)
		}
	}
	if !slices.Contains(w.listed(), "triage__greet") {
		t.Error("the enabled tool is not back with its pack")
	}
}

// A client that asked between two looks was given lists that the looks know nothing
// about. It is told what differs from those, and from the lists before, since it may
// keep either.
func TestListsRequestedBetweenScans(t *testing.T) {
	const other = `[{"name": "greet", "description": "Say hi.", "inputSchema": {"type": "object"}, "command": ["true"]}]`
	rename := func(w *world, from, to string) {
		w.t.Helper()
		if err := os.Rename(from, to); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(w *world) // changes lists between looks, without telling the client
		want   []string
	}{
		{"tools of a pack that is moved away and back", func(w *world) {
			at, aside := filepath.Join(w.root, "triage"), filepath.Join(w.t.TempDir(), "aside")
			rename(w, at, aside)
			if slices.Contains(w.listed(), "triage__greet") {
				w.t.Error("the tool of a pack that is not there is listed")
			}
			rename(w, aside, at)
		}, []string{lists.ToolsChanged}},
		{"tools that were listed before anybody looked", func(w *world) {
			w.put("triage/tools.json", other, 0o644)
			w.listed()
			w.rescan()
		}, []string{lists.ToolsChanged}},
		{"prompts and resources of a pack that came and went", func(w *world) {
			w.put("new/SKILL.md", "---\nname: new\ndescription: New.\n---\n", 0o644)
			w.rescan()
			result(w.t, w.request("prompts/list", nil))
			if err := os.RemoveAll(filepath.Join(w.root, "new")); err != nil {
				w.t.Fatal(err)
			}
			w.rescan()
		}, []string{lists.PromptsChanged, lists.ResourcesChanged}},
		{"lists that are as before", func(w *world) {
			w.rescan()
			w.listed()
			result(w.t, w.request("prompts/list", nil))
			result(w.t, w.request("resources/list", nil))
		}, nil},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			w := newWorld(t, triage+shelf)
			w.answer = decide("chat")
			w.initialize()
			w.enable("triage")
			w.listed()
			w.heard()
			c.change(w)
			w.srv.Refresh(t.Context())
			if got := w.heard(); !slices.Equal(got, c.want) {
				t.Errorf("heard %q, want %q", got, c.want)
			}
			w.listed()
			w.srv.Refresh(t.Context())
			if got := w.heard(); len(got) != 0 {
				t.Errorf("looked at again: heard %q, want nothing", got)
			}
		})
	}
}

// Only the chat that a change concerns is told about it, once its client is ready.
func TestChangesAreForOneChat(t *testing.T) {
	a := newWorld(t, triage+shelf)
	a.answer = decide("chat")
	b := &world{t: t, root: a.root, audit: a.audit, srv: a.srv, lib: a.lib}
	b.connect()
	// A chat exists before its client listens; once a ping is answered, the client
	// does.
	for _, w := range []*world{a, b} {
		result(t, w.request("ping", nil))
	}
	// Nothing is sent before the client says that it is initialized, and then it is
	// sent once.
	for _, chat := range a.srv.chats.All() {
		for _, id := range []string{"triage", "notes"} {
			if err := a.srv.SetAttached(t.Context(), chat.ID(), id, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.initialize()
	b.initialize()
	for _, w := range []*world{a, b} {
		if got := w.heard(); !slices.Equal(got, everyList) {
			t.Errorf("after initialization: %q, want each list once", got)
		}
	}
	message(t, a.prompt("attach", map[string]any{"pack_id": "triage"}))
	a.enable("triage")
	if got, want := a.heard(), append(slices.Clone(everyList), lists.ToolsChanged); !slices.Equal(got, want) {
		t.Errorf("the chat heard %q, want %q", got, want)
	}
	if got := b.heard(); len(got) != 0 {
		t.Errorf("the other chat heard %q", got)
	}
	// What concerns both is told to both.
	a.put("new/SKILL.md", "---\nname: new\ndescription: New.\n---\n", 0o644)
	a.refresh()
	for _, w := range []*world{a, b} {
		if got := w.heard(); !slices.Equal(got, everyList) {
			t.Errorf("a chat heard %q, want each list", got)
		}
	}
}

// countedLibrary counts requests for the packs.
type countedLibrary struct {
	Library
	asked atomic.Int32
}

func (l *countedLibrary) Catalog(ctx context.Context) *packs.Catalog {
	l.asked.Add(1)
	return l.Library.Catalog(ctx)
}

// A look at the packs reads the disk: there is one for all chats in a round.
func TestOneScanForAllChats(t *testing.T) {
	lib := new(countedLibrary)
	w := newWorld(t, triage, func(s *setup) {
		s.library = func(l Library) Library {
			lib.Library = l
			return lib
		}
	})
	const many = 5
	for range many {
		c, err := w.srv.chats.Open(wire.Client{Transport: "test", Origin: gate.OriginClient})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	lib.asked.Store(0)
	w.srv.Refresh(t.Context())
	if n := lib.asked.Load(); n != 1 {
		t.Errorf("the packs were looked at %d times for %d chats, want once", n, many)
	}
}

// A stream carries what its client asked for, tagged with the stream's id, and says
// at the beginning what it can carry.
func TestListenFilters(t *testing.T) {
	for _, c := range []struct {
		filter map[string]any
		ack    map[string]any
		want   []string
	}{
		{map[string]any{"toolsListChanged": true}, map[string]any{"toolsListChanged": true}, []string{lists.ToolsChanged}},
		{map[string]any{"promptsListChanged": true}, map[string]any{"promptsListChanged": true}, []string{lists.PromptsChanged}},
		{map[string]any{"resourcesListChanged": true, "toolsListChanged": true}, map[string]any{"resourcesListChanged": true, "toolsListChanged": true}, []string{lists.ToolsChanged, lists.ResourcesChanged}},
		{
			map[string]any{"resourceSubscriptions": []string{"skill://acme/refunds/docs/policy.md", "skill://acme/refunds/nothing", "file:///etc/passwd"}},
			map[string]any{"resourceSubscriptions": []any{"skill://acme/refunds/docs/policy.md"}},
			[]string{"notifications/resources/updated"},
		},
	} {
		w := newWorld(t, shelf, lookOften)
		result(t, w.modern("prompts/list", nil)) // the chat knows its packs
		w.send(map[string]any{"id": "stream", "method": "subscriptions/listen", "params": withMeta(map[string]any{"notifications": c.filter}, false)})
		tagged := func(m map[string]any) map[string]any {
			params := m["params"].(map[string]any)
			if meta, _ := params["_meta"].(map[string]any); meta["io.modelcontextprotocol/subscriptionId"] != "stream" {
				t.Errorf("%v is not tagged with its stream", m)
			}
			return params
		}
		ack := w.await()
		if diff := cmp.Diff(c.ack, tagged(ack)["notifications"]); diff != "" {
			t.Errorf("%v: acknowledged (-want +got):\n%s", c.filter, diff)
		}
		w.put("new/SKILL.md", "---\nname: new\ndescription: New.\n---\n", 0o644)
		w.put("acme/refunds/docs/policy.md", "Sixty days, from now on.\n", 0o644)
		w.refresh()
		for _, want := range c.want {
			m := w.await()
			params := tagged(m)
			if m["method"] != want || want == "notifications/resources/updated" && params["uri"] != "skill://acme/refunds/docs/policy.md" {
				t.Errorf("%v: %v came, want %s", c.filter, m, want)
			}
		}
		if got := w.heardModern(); len(got) != 0 {
			t.Errorf("%v: also heard %q", c.filter, got)
		}
	}
}

func (w *world) heardModern() []string {
	w.t.Helper()
	w.notes = nil
	w.modern("prompts/list", nil)
	return w.noted()
}

// A client that subscribed is told when a file changed, or is gone, until it
// unsubscribes.
func TestResourceUpdated(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage, lookOften)
	w.answer = decide("once")
	w.initialize()
	w.enable("triage")
	ran := w.ok("triage__greet", map[string]any{"who": "Ada"})
	const steps = "skill://triage/docs/steps.md"
	made := fmt.Sprintf("workspace://%v/made.txt", ran["workspace"])
	for _, uri := range []string{steps, made, steps} {
		result(t, w.request("resources/subscribe", map[string]any{"uri": uri}))
	}
	updated := func(uri string) {
		t.Helper()
		m := w.await()
		if params, _ := m["params"].(map[string]any); m["method"] != "notifications/resources/updated" || params["uri"] != uri {
			t.Errorf("%v came, want that %s was updated", m, uri)
		}
	}
	w.put("triage/docs/steps.md", "Step two, which is longer.\n", 0o644)
	updated(steps)
	if err := os.WriteFile(filepath.Join(w.srv.chats.All()[0].Workspaces.First().Dir, "made.txt"), []byte("made anew"), 0o644); err != nil {
		t.Fatal(err)
	}
	updated(made)
	if err := os.Remove(filepath.Join(w.root, "triage", "docs", "steps.md")); err != nil {
		t.Fatal(err)
	}
	updated(steps)
	result(t, w.request("resources/unsubscribe", map[string]any{"uri": steps}))
	result(t, w.request("resources/unsubscribe", map[string]any{"uri": "skill://never/was"}))
	w.put("triage/docs/steps.md", "Back.\n", 0o644)
	result(t, w.request("resources/unsubscribe", map[string]any{"uri": made}))
	w.notes = nil
	if got := w.heard(); len(got) != 0 {
		t.Errorf("after unsubscribing: %q", got)
	}
}

// The maximum is accepted, and one more is refused.
func TestManySubscriptions(t *testing.T) {
	w := newWorld(t, triage)
	w.initialize()
	for i := range maxSubscriptions + 1 {
		name := fmt.Sprintf("triage/docs/n%d.md", i)
		w.put(name, "", 0o644)
		params := map[string]any{"uri": "skill://" + name}
		if i == maxSubscriptions {
			if code, _ := w.refused(false, "resources/subscribe", params); code != -32002 {
				t.Errorf("subscription %d: %d, want an error", i+1, code)
			}
			break
		}
		result(t, w.request("resources/subscribe", params))
	}
}

// A file that was half written at the last look is read again before a call fails
// because of it.
func TestHalfWrittenPack(t *testing.T) {
	w := newWorld(t, triage)
	w.initialize()
	open := map[string]any{"pack_id": "triage"}
	w.put("triage/SKILL.md", "", 0o644)
	w.refresh()
	w.fails("not_attached", "capability_packs_open_docs", open)
	w.put("triage/SKILL.md", triageDocument, 0o644)       // without a scan
	w.fails("denied", "capability_packs_open_docs", open) // by the gate, since this client cannot ask
}
