//go:build unix

package gate

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// reads has a replica take everything that the others wrote.
func (b *bench) reads() {
	b.t.Helper()
	if err := b.book.Store.(synced).mirror.Sync(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// What is allowed in a chat on one replica is allowed in it on all, until it is revoked on
// any, the pack changes, or the chat was not used for an hour.
func TestChatAnswersOnReplicas(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b, c := replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey)
		wants := func(when string, want string, req call.Request, all ...*bench) {
			t.Helper()
			for i, x := range all {
				if got := x.outcome(req); got != want {
					t.Errorf("%s, replica %d: %s, want %s", when, i, got, want)
				}
			}
		}
		a.approve(carried(), queue.Chat)
		a.LeaveChat(carried().Caller.Chat) // the others go on
		wants("after an answer for the chat", allows, carried(), a, b, c)
		given := a.ChatGrants()
		if len(given) != 1 || given[0].Chat != carried().Caller.Chat || given[0].Person != "ada" || given[0].Client != "test 1.0" {
			t.Fatalf("the answers for chats are %+v", given)
		}
		if e := b.log.last(); e.Decision != "chat" || e.Channel != queue.ChannelGrant || e.Grant != given[0].ID {
			t.Errorf("the log of another replica has %+v", e)
		}
		wants("in another chat", asks, with(carried(), func(r *call.Request) { r.Caller.Chat = "http-2" }), b)
		wants("of another person in the chat", asks, with(carried(), func(r *call.Request) { r.Caller.Person = "eve" }), b)
		wants("in the chat of a server alone", asks, with(carried(), func(r *call.Request) { r.Caller.Shared = false }), b)

		changed := with(carried(), func(r *call.Request) { r.Pack.Digest = "sha256:other" })
		wants("the pack changed", asks, changed, b)
		wants("the pack is as it was, after a replica saw it changed", asks, carried(), a, c)

		a.approve(silent(), queue.Chat)
		b.approve(carried(), queue.Chat)
		wants("after answers on two", allows, silent(), b, c)
		wants("after answers on two", allows, carried(), a, c)
		i := slices.IndexFunc(c.ChatGrants(), func(g grants.InChat) bool { return g.Kind == call.KindRun })
		id := c.ChatGrants()[i].ID
		if found, err := c.RevokeChatGrant(id); !found || err != nil {
			t.Fatalf("RevokeChatGrant = %v, %v", found, err)
		}
		if e := c.log.last(); e.Event != audit.EventRevoke || e.Grant != id || e.Caller != "ada" {
			t.Errorf("the log has %+v", e)
		}
		wants("after it was revoked", asks, silent(), a, b, c)
		wants("after another one was revoked", allows, carried(), a, b)

		b.pass(90 * time.Minute)
		wants("by a clock that says the time of the chat is over", asks, carried(), b)
		wants("at the others", allows, carried(), a)
	})
}

// Replicas that keep answers for one chat at once lose none.
func TestChatAnswersAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		all := []*bench{replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey)}
		of := func(pack string) call.Request {
			return with(carried(), func(r *call.Request) { r.Pack.ID = pack })
		}
		packs := []string{"one", "two", "three"}
		done := make(chan error, len(packs))
		for i, pack := range packs {
			q := all[i].ask(of(pack))
			go func() {
				_, _, err := all[i].Check(t.Context(), of(pack), accept(q.State, "chat"))
				done <- err
			}()
		}
		for range packs {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for i, b := range all {
			if got := b.outcome(of(packs[(i+1)%3])); got != allows {
				t.Errorf("an answer of another replica: %s", got)
			}
		}
	})
}

// Who can write to the store, and has no key, can make up no answer for a chat, move none
// to another chat, and put back none that a replica saw revoked. Without the store, no
// answer counts.
func TestForgedChatAnswers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		proxy := e.Proxy(t)
		a, b := replicaAt(t, e.URL(), sharedKey), replicaAt(t, proxy.URL(), sharedKey)
		raw, err := store.Open(t.Context(), store.Options{URL: e.URL()})
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		a.approve(carried(), queue.Chat)
		chat := carried().Caller.Chat
		key := "gc." + chat
		kept, err := raw.Get(t.Context(), key)
		if err != nil || bytes.Contains(kept.Value, []byte("triage")) || bytes.Contains(kept.Value, []byte("ada")) {
			t.Fatalf("the entry is %q, %v", kept.Value, err)
		}
		puts := func(key string, value []byte) {
			t.Helper()
			have, err := raw.Get(t.Context(), key)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			if _, err := raw.Put(t.Context(), key, value, have.Rev, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.outcome(carried()); got != allows {
			t.Fatalf("before: %s", got)
		}
		elsewhere := with(carried(), func(r *call.Request) { r.Caller.Chat = "http-2" })
		puts("gc.http-2", kept.Value)
		if got := b.outcome(elsewhere); got != asks {
			t.Errorf("an answer that was moved to another chat: %s", got)
		}

		proxy.Cut()
		_, _, err = b.Check(t.Context(), carried(), nil)
		if denied, ok := errors.AsType[*DeniedError](err); !ok || !denied.Unavailable {
			t.Errorf("without the store: %v", err)
		}
		proxy.Mend()
		for b.book.Store.(synced).mirror.Sync(t.Context()) != nil { // until the mirror is back
			if t.Context().Err() != nil {
				t.Fatal("the store does not come back")
			}
		}
		if got := b.outcome(carried()); got != allows {
			t.Errorf("when the store is back: %s", got)
		}

		if found, err := a.RevokeChatGrant(a.ChatGrants()[0].ID); !found || err != nil {
			t.Fatalf("RevokeChatGrant = %v, %v", found, err)
		}
		if got := b.outcome(carried()); got != asks {
			t.Errorf("after it was revoked: %s", got)
		}
		for name, value := range map[string][]byte{"put back": kept.Value, "plain": []byte(`{"version":9999999999999999,"grants":[]}`)} {
			puts(key, value)
			a.reads()
			for i, x := range []*bench{a, b} {
				if got := x.outcome(carried()); got != asks {
					t.Errorf("an answer that was %s, replica %d: %s", name, i, got)
				}
			}
		}
		// One that is put back when it is long over allows nothing on a replica that is new, either.
		puts(key, kept.Value)
		late := replicaAt(t, e.URL(), sharedKey)
		late.pass(90 * time.Minute)
		if got := late.outcome(carried()); got != asks {
			t.Errorf("an answer that was put back when it was over: %s", got)
		}
	})
}
