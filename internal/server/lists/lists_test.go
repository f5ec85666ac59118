package lists

import (
	"context"
	"slices"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// A fakeChat has the lists that its test gives it.
type fakeChat struct {
	now      *packs.Catalog
	tools    []mcp.Tool
	look     func() // called at each request for the packs; nil: nothing
	own      bool
	compared int // how often Catalogs were compared
}

func (c *fakeChat) Catalog(context.Context) *packs.Catalog {
	if c.look != nil {
		c.look()
	}
	return c.now
}

func (c *fakeChat) Tools(*packs.Catalog) []mcp.Tool { return c.tools }
func (c *fakeChat) HasOwnPacks() bool               { return c.own }
func (c *fakeChat) HasOwnTools() bool               { return c.own }

// follower returns the follower of a chat that has seen the packs as they are.
func (c *fakeChat) follower() *Follower {
	c.now = new(packs.Catalog)
	f := NewFollower(c, NewShared(Options{
		Tools: func(*packs.Catalog) []mcp.Tool { return c.tools },
		Differ: func(_, _ *packs.Catalog) (prompts, resources bool) {
			c.compared++
			return true, true
		},
	}))
	f.Saw(c.now)
	return f
}

// A told is called with each change.
type told func(method string)

func (l *told) Tell(n wire.Note) { (*l)(n.Method) }

var everyList = []string{ToolsChanged, PromptsChanged, ResourcesChanged}

// If two goroutines follow a chat at once, the second begins when the first has told
// everything: the lock is held from the look at the packs on. Otherwise the older
// list could be told last.
func TestFollowRunsOneAtATime(t *testing.T) {
	c := new(fakeChat)
	f := c.follower()
	free, looks, notes := 0, 0, 0
	look := func() {
		if f.following.TryLock() {
			f.following.Unlock()
			free++
		}
	}
	l := told(func(string) { notes++; look() })
	f.Listen(&l)
	f.Follow(t.Context()) // what it has is known by then
	c.now, c.tools = new(packs.Catalog), []mcp.Tool{{Name: "new"}}
	c.look = func() { looks++; look() }
	f.nowTold("others")
	f.Follow(t.Context())
	if looks == 0 || notes != len(everyList) {
		t.Fatalf("%d looks at the packs and %d notifications, want some and %d", looks, notes, len(everyList))
	}
	if free != 0 {
		t.Errorf("somebody else was let in at %d of %d looks and notifications, want none", free, looks+notes)
	}
	if !f.following.TryLock() {
		t.Error("afterwards, nobody is let in")
	} else {
		f.following.Unlock()
	}
}

// While a list is made for a client, nobody compares what that client has: the list
// could be older than the comparison, which would not know about it.
func TestFollowWaitsForLists(t *testing.T) {
	c := new(fakeChat)
	f := c.follower()
	free, looks := 0, 0
	c.look = func() {
		looks++
		if f.following.TryLock() {
			f.following.Unlock()
			free++
		}
	}
	f.GiveTools(t.Context(), func(*packs.Catalog) []mcp.Tool { c.look(); return nil })
	f.GiveCatalog(t.Context())
	if free != 0 || looks != 3 {
		t.Errorf("a list was compared %d times while it was made, at %d looks; want never, at three", free, looks)
	}
}

// If there is nobody to tell, nothing is done, and the next change is compared with
// what somebody had before.
func TestChatWithoutListeners(t *testing.T) {
	c := &fakeChat{tools: []mcp.Tool{{Name: "first"}}}
	f := c.follower()
	var heard []string
	l := told(func(method string) { heard = append(heard, method) })
	f.nowTold(f.digest(c.now))
	c.now, c.tools = new(packs.Catalog), []mcp.Tool{{Name: "second"}}
	f.Follow(t.Context())
	if c.compared != 0 {
		t.Errorf("for a chat that nobody hears, Catalogs were compared %d times, want never", c.compared)
	}
	f.Listen(&l)
	f.Listen(&l)
	f.shared.LookAgain()
	f.Follow(t.Context())
	if want := []string{ToolsChanged}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q: the tools are others than those it has", heard, want)
	}
	heard = nil
	f.Unlisten(&l)
	c.now = new(packs.Catalog)
	f.Follow(t.Context())
	if len(heard) != 0 {
		t.Errorf("after it stopped listening, it heard %q", heard)
	}
}

// Chats with nothing of their own share what is known of two Catalogs; a chat that
// has something of its own is compared for itself.
func TestChatsShareWhatIsCompared(t *testing.T) {
	c := new(fakeChat)
	f := c.follower()
	other := NewFollower(c, f.shared)
	other.Saw(c.now)
	own := NewFollower(&fakeChat{now: c.now, own: true}, f.shared)
	own.Saw(c.now)
	for _, f := range []*Follower{f, other, own} {
		l := told(func(string) {})
		f.Listen(&l)
	}
	c.now = new(packs.Catalog)
	own.chat.(*fakeChat).now = c.now
	f.Follow(t.Context())
	other.Follow(t.Context())
	if c.compared != 1 {
		t.Errorf("for two chats, Catalogs were compared %d times, want once", c.compared)
	}
	own.Follow(t.Context())
	if c.compared != 2 {
		t.Errorf("with a chat of its own, Catalogs were compared %d times, want twice", c.compared)
	}
}
