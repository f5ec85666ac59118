package chats_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/subscriptions"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// ends remembers which chats ended.
type ends struct{ all []string }

func (e *ends) Abandon(chat string)   { e.all = append(e.all, "abandoned "+chat) }
func (e *ends) LeaveChat(chat string) { e.all = append(e.all, "left "+chat) }
func (e *ends) EndChat(chat string)   { e.all = append(e.all, "ended "+chat) }

// open returns the chats of a library with two packs, of which one is attached.
func open(t *testing.T) (*chats.Chats, *ends) { return openIn(t, t.TempDir(), nil) }

// openIn is open with a folder for workspaces, for a server that has the chats which shared
// names together with others.
func openIn(t *testing.T, workspaces string, shared func(credential string) string) (*chats.Chats, *ends) {
	t.Helper()
	root := t.TempDir()
	testdata.Plant(t, root, "-- a/SKILL.md --\n---\nname: a\ndescription: A.\n---\n-- b/SKILL.md --\n---\nname: b\ndescription: B.\n---\n")
	lib, err := packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := offer.New(offer.Options{Forbids: func(call.Kind, string) bool { return false }, Description: 100})
	e := new(ends)
	return chats.New(chats.Options{
		Library: lib, Gate: e, Workspaces: workspace.Place{Each: workspaces}, Shared: shared, Runs: 1,
		Offer: o, KeepsOut: func(*packs.Pack) error { return nil }, Pace: subscriptions.NewPace(subscriptions.Every),
		Lists: lists.NewShared(lists.Options{Tools: func(*packs.Catalog) []mcp.Tool { return nil }, Differ: o.ListsDiffer}),
		Tools: func(*packs.Catalog, *chats.Chat) []mcp.Tool { return nil },
		Other: func(*packs.Catalog) {},
	}), e
}

func start(t *testing.T, all *chats.Chats, transport string) *chats.Chat {
	t.Helper()
	c, err := all.Open(wire.Client{Transport: transport, Origin: call.OriginClient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func attached(t *testing.T, c *chats.Chat) (ids []string) {
	for _, p := range c.Catalog(t.Context()).Attached() {
		ids = append(ids, p.ID)
	}
	return ids
}

// What is detached in one chat stays attached in another, and a chat that has ended
// is gone.
func TestChatsShareNothing(t *testing.T) {
	all, ends := open(t)
	one, two := start(t, all, "one"), start(t, all, "two")
	changed := all.Changes()
	if err := all.SetAttached(t.Context(), one.ID(), "a", false); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody heard that a chat changed")
	}
	if a, b := attached(t, one), attached(t, two); !slices.Equal(a, []string{"b"}) || !slices.Equal(b, []string{"a", "b"}) {
		t.Errorf("attached are %q and %q, want a only in the other chat", a, b)
	}
	if !one.HasOwnPacks() || two.HasOwnPacks() {
		t.Error("the wrong chat has packs of its own")
	}
	one.Abandon()
	one.Close()
	if want := []string{"abandoned " + one.ID(), "ended " + one.ID()}; !slices.Equal(ends.all, want) {
		t.Errorf("the gate heard %q, want %q", ends.all, want)
	}
	if err := all.CanAttach(t.Context(), one.ID(), "a", true); err == nil || len(all.All()) != 1 {
		t.Errorf("a chat that ended can attach packs, or is among %v", all.All())
	}
}

// A credential has one chat on all servers, with one workspace; a session has its own.
func TestSharedChat(t *testing.T) {
	dir := t.TempDir()
	id := func(credential string) string { return strings.Repeat("0", 32-len(credential)) + credential }
	a, ends := openIn(t, dir, id)
	b, _ := openIn(t, dir, id)
	with := func(all *chats.Chats, credential string) *chats.Chat {
		t.Helper()
		c, err := all.Open(wire.Client{Transport: "http", Credential: credential})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	one, two, other, session := with(a, "aa"), with(b, "aa"), with(b, "bb"), with(b, "")
	if one.ID() != two.ID() || one.Workspaces.First().Dir != two.Workspaces.First().Dir {
		t.Errorf("the chats %s in %s and %s in %s differ", one.ID(), one.Workspaces.First().Dir, two.ID(), two.Workspaces.First().Dir)
	}
	if other.ID() == one.ID() || session.ID() == one.ID() || other.Workspaces.First().Dir == one.Workspaces.First().Dir || session.Workspaces.First().Dir == one.Workspaces.First().Dir {
		t.Error("chats of different clients are one")
	}
	if w, err := one.Workspaces.Keep([32]byte{1}); err != nil || w.Dir == one.Workspaces.First().Dir {
		t.Errorf("another workspace of the chat: %v, %v", w, err)
	}
	one.Close()
	if want := []string{"left " + one.ID()}; !slices.Equal(ends.all, want) {
		t.Errorf("the gate heard %q, want %q", ends.all, want)
	}
}

// A chat runs at most as many programs at a time as it may.
func TestRunsTakeTurns(t *testing.T) {
	all, _ := open(t)
	c := start(t, all, "one")
	release, err := c.TakeRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.TakeRun(ctx); err == nil {
		t.Error("a second program got a place")
	}
	release()
	if _, err := c.TakeRun(t.Context()); err != nil {
		t.Errorf("after the first ended: %v", err)
	}
}

// A model hears once that a pack changed since it opened it.
func TestSinceOpened(t *testing.T) {
	all, _ := open(t)
	c := start(t, all, "one")
	for i, step := range []struct {
		digest string
		opens  bool
		said   bool
	}{
		{"1", false, false}, // it never opened it
		{"1", true, false},
		{"1", false, false},
		{"2", false, true},
		{"2", false, false},
		{"3", true, false},
	} {
		if note := c.SinceOpened(call.Pack{ID: "a", Digest: step.digest}, step.opens); (note != "") != step.said {
			t.Errorf("step %d: %q, want a note: %v", i, note, step.said)
		}
	}
}

func ExampleCutHandle() {
	fmt.Println(chats.CutHandle("w-1/out/report.md"))
	fmt.Println(chats.CutHandle("w-1"))
	// Output:
	// w-1 out/report.md true
	// w-1 . true
}
