//go:build unix

package chats_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/subscriptions"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// heard remembers what a client is told.
type heard struct {
	mu    sync.Mutex
	notes []string
}

func (h *heard) Tell(n wire.Note) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, string(n.Method))
}

// replicaOf returns the chats of a replica, and its chat of one credential.
func replicaOf(t *testing.T, url, root string) (*chats.Chats, *chats.Chat) {
	t.Helper()
	m, _ := storetest.Replica(t, url, strings.Repeat("5e", 32))
	lib, err := packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := offer.New(offer.Options{Forbids: func(call.Kind, string) bool { return false }, Description: 100})
	// A chat lists the tools that it has enabled.
	listed := func(_ *packs.Catalog, c *chats.Chat) (all []mcp.Tool) {
		for _, k := range c.Enabled.Kept() {
			if k.Since > 0 {
				all = append(all, mcp.Tool{Name: k.Listed})
			}
		}
		return all
	}
	all := chats.New(chats.Options{
		Library: lib, Gate: new(ends), Workspaces: workspace.Place{Each: t.TempDir()}, Shared: func(string) string { return strings.Repeat("0", 32) },
		Common: m.Shelf("c.", time.Hour), Runs: 1, Offer: o, KeepsOut: func(*packs.Pack) error { return nil }, Pace: subscriptions.NewPace(subscriptions.Every),
		Lists: lists.NewShared(lists.Options{Tools: func(*packs.Catalog) []mcp.Tool { return nil }, Differ: o.ListsDiffer}),
		Tools: listed, Other: func(*packs.Catalog) {},
	})
	c, err := all.Open(wire.Client{Transport: "http", Credential: "x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return all, c
}

func enable(t *testing.T, c *chats.Chat, names ...string) error {
	return c.Change(t.Context(), func() {
		for _, name := range names {
			c.Enabled.Enable("a", []*tools.Tool{{Name: name, Command: new(tools.Command)}}, nil, func(string) bool { return false })
		}
	})
}

func isEnabled(t *testing.T, c *chats.Chat) (all []string) {
	t.Helper()
	c.CatchUp(t.Context())
	for _, k := range c.Enabled.Kept() {
		if k.Since > 0 {
			all = append(all, k.Tool)
		}
	}
	return all
}

// What is enabled and attached in a chat on one replica is so on all. Of changes at once
// none is lost, and clients of the others are told.
func TestReplicasHaveOneChat(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		root := t.TempDir()
		for _, id := range []string{"a", "b"} {
			dir := filepath.Join(root, id)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: "+id+"\ndescription: It.\n---\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		proxy := e.Proxy(t)
		_, a := replicaOf(t, e.URL(), root)
		allB, b := replicaOf(t, proxy.URL(), root)
		var told heard
		b.Lists.Listen(&told)
		b.Lists.GiveTools(t.Context(), func(catalog *packs.Catalog) []mcp.Tool { return b.Tools(catalog) })

		var wg sync.WaitGroup
		for i, name := range []string{"one", "two", "three", "four"} {
			wg.Go(func() {
				if err := enable(t, []*chats.Chat{a, b}[i%2], name); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if err := allB.SetAttached(t.Context(), b.ID(), "b", false); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		for name, c := range map[string]*chats.Chat{"one": a, "the other": b} {
			if got := isEnabled(t, c); !slices.Equal(got, []string{"four", "one", "three", "two"}) {
				t.Errorf("on %s, %q are enabled", name, got)
			}
			if got := attached(t, c); !slices.Equal(got, []string{"a"}) {
				t.Errorf("on %s, %q are attached", name, got)
			}
		}
		names := func(c *chats.Chat) (all []string) {
			for _, k := range c.Enabled.Kept() {
				all = append(all, k.Listed)
			}
			return all
		}
		if !slices.Equal(names(a), names(b)) {
			t.Errorf("the listed names are %q and %q", names(a), names(b))
		}
		allB.Follow(t.Context())
		told.mu.Lock()
		if !slices.Contains(told.notes, lists.ToolsChanged) || !slices.Contains(told.notes, lists.ResourcesChanged) && !slices.Contains(told.notes, lists.PromptsChanged) {
			t.Errorf("the client of the other replica is told %q", told.notes)
		}
		told.mu.Unlock()

		// Without the store, nothing changes.
		proxy.Cut()
		if err := enable(t, b, "five"); err == nil || !strings.Contains(err.Error(), "could not be stored") {
			t.Errorf("enabling without the store: %v", err)
		}
		if err := allB.SetAttached(t.Context(), b.ID(), "a", false); err == nil {
			t.Error("a pack is detached without the store")
		}
		if got := isEnabled(t, b); len(got) != 4 || !slices.Equal(attached(t, b), []string{"a"}) {
			t.Errorf("without the store, %q are enabled, and %q attached", got, attached(t, b))
		}
		proxy.Mend()

		// A value that nobody with the key wrote, or another version did, counts as nothing;
		// and so does a chat whose time is over.
		raw, err := store.Open(t.Context(), store.Options{URL: e.URL()})
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		kept, err := raw.Get(t.Context(), "c."+a.ID())
		if err != nil || strings.Contains(string(kept.Value), "three") {
			t.Fatalf("the entry is %q, %v", kept.Value, err)
		}
		if err := raw.Delete(t.Context(), kept.Key, kept.Rev); err != nil {
			t.Fatal(err)
		}
		if got := isEnabled(t, a); got != nil || !slices.Equal(attached(t, a), []string{"a", "b"}) {
			t.Errorf("after its time, %q are enabled, and %q attached", got, attached(t, a))
		}
		if _, err := raw.Put(t.Context(), kept.Key, []byte(`{"enabled":[{"pack":"a","tool":"x","listed":"a__x","since":1}]}`), 0, time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := isEnabled(t, a); got != nil {
			t.Errorf("what nobody with the key wrote: %q are enabled", got)
		}
	})
}
