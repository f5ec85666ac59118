package grants_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
)

// memory is a [grants.Store] of one process.
type memory struct{ all []grants.Grant }

func (m *memory) Load() ([]grants.Grant, error) { return slices.Clone(m.all), nil }

func (m *memory) Update(change func([]grants.Grant) ([]grants.Grant, error)) error {
	all, err := change(slices.Clone(m.all))
	if err == nil {
		m.all = all
	}
	return err
}

// opens is a call that opens a pack with these bytes.
func opens(digest string) *call.Call {
	return call.Freeze(call.Request{Caller: call.Caller{Chat: "stdio-1"}, Kind: call.KindOpen, Pack: call.Pack{ID: "triage", Digest: digest}}, 0)
}

// An answer holds until what it is about has changed.
func ExampleBook() {
	store := &memory{}
	book := grants.Book{Store: store, Chats: grants.NewChats(1)}
	then := opens("sha256:aa")
	g := grants.New(then)
	g.Since = time.Now()
	logged := func(g grants.Grant) error { fmt.Println("recorded:", g.Pack); return nil }
	if err := book.Keep(g, logged); err != nil {
		fmt.Println(err)
		return
	}

	now := grants.New(opens("sha256:bb"))
	_, changed, _ := book.ChangedSince(&then.Caller, []*grants.Grant{&now}, store.all, time.Now())
	fmt.Println("changed:", len(changed) > 0, "void:", store.all[0].Void != nil)
	// Output:
	// recorded: triage
	// changed: true void: true
}

// No answer holds that is not in the log.
func TestUnrecorded(t *testing.T) {
	full := errors.New("the disk is full")
	store := &memory{}
	book := grants.Book{Store: store, Chats: grants.NewChats(1)}
	c := opens("sha256:aa")
	fails := func(grants.Grant) error { return full }
	if err := book.Keep(grants.New(c), fails); !errors.Is(err, full) || len(store.all) != 0 {
		t.Errorf("everywhere: %v, and %d are kept", err, len(store.all))
	}
	if err := book.KeepInChat(&c.Caller, grants.New(c), fails); !errors.Is(err, full) || len(book.InChats()) != 0 {
		t.Errorf("in the chat: %v, and %d are kept", err, len(book.InChats()))
	}
}

// Two answers whose digests begin in the same way have ids of their own.
func TestIDs(t *testing.T) {
	store := &memory{}
	book := grants.Book{Store: store, Chats: grants.NewChats(1)}
	for _, end := range []string{"1", "2", "2"} {
		g := grants.Grant{ID: "abcdefgh", Digest: "abcdefghabc" + end}
		if err := book.Keep(g, func(grants.Grant) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, g := range store.all {
		ids = append(ids, g.ID)
	}
	if got := strings.Join(ids, " "); got != "abcdefgh abcdefgha" {
		t.Errorf("ids %q, want one for each digest", got)
	}
}

// A denial takes an answer back wherever it holds, for this chat and for all.
func TestTakeBack(t *testing.T) {
	store := &memory{}
	book := grants.Book{Store: store, Chats: grants.NewChats(1)}
	c := opens("sha256:aa")
	g := grants.New(c)
	recorded := func(grants.Grant) error { return nil }
	if err := errors.Join(book.Keep(g, recorded), book.KeepInChat(&c.Caller, g, recorded)); err != nil {
		t.Fatal(err)
	}
	if len(book.InChat(&c.Caller)) != 1 || len(store.all) != 1 {
		t.Fatal("want one answer in the chat and one everywhere")
	}
	if err := book.TakeBack(&c.Caller, g.Digest); err != nil || len(book.InChat(&c.Caller)) != 0 || len(store.all) != 0 {
		t.Errorf("%v; %d in the chat and %d everywhere, want none", err, len(book.InChat(&c.Caller)), len(store.all))
	}
}
