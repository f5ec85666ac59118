//go:build unix

package grantshared_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/grantshared"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// replica returns the grants as one replica sees them, with this many people.
func replica(t *testing.T, url, key string, people int) *grantshared.Store {
	t.Helper()
	m, _ := storetest.Replica(t, url, key)
	return grantshared.New(m, people)
}

var (
	since = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	key   = strings.Repeat("0c", 32)
)

// of returns the nth grant of a person.
func of(person string, n int) grants.Grant {
	g := grants.Grant{
		ID: fmt.Sprint(person, n), Subject: "s", Since: since.Add(time.Duration(n) * time.Second), Covers: "it", Person: person, Kind: call.KindOpen, Pack: "triage",
		Facts: []call.Fact{{Name: "pack", Values: []string{person, fmt.Sprint(n)}}},
	}
	g.Digest = call.DigestOf(g.Facts)
	return g
}

func add(s *grantshared.Store, more ...grants.Grant) error {
	return s.Update(func(all []grants.Grant) ([]grants.Grant, error) { return append(all, more...), nil })
}

func ids(t *testing.T, s *grantshared.Store) (all []string) {
	t.Helper()
	have, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range have {
		all = append(all, g.ID)
	}
	return all
}

// A grant that one replica gives, ends or voids changes on all others at once.
func TestReplicas(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replica(t, e.URL(), key, 2), replica(t, e.URL(), key, 2)
		want := []string{}
		for n := range 10 {
			if err := add([]*grantshared.Store{a, b}[n%2], of("ada", n)); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprint("ada", n))
			for _, s := range []*grantshared.Store{a, b} {
				if diff := cmp.Diff(want, ids(t, s)); diff != "" {
					t.Fatalf("after %d (-want +got):\n%s", n, diff)
				}
			}
		}
		all, err := b.Load()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(of("ada", 3), all[3]); diff != "" {
			t.Errorf("the grant differs (-want +got):\n%s", diff)
		}
		all[3].Facts[0].Values[0] = "changed" // the result is the caller's own copy
		err = a.Update(func(all []grants.Grant) ([]grants.Grant, error) {
			all[4].Void = &grants.Void{At: since, Changes: []string{"it"}}
			return append(all[:3], all[4:]...), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if all, err = b.Load(); err != nil || len(all) != 9 || all[3].ID != "ada4" || all[3].Void == nil {
			t.Errorf("after one was revoked and one void, there are %+v, %v", all, err)
		}
		// It can be given again.
		if err := add(b, of("ada", 3)); err != nil || len(ids(t, a)) != 10 {
			t.Errorf("giving it again: %v, %q", err, ids(t, a))
		}
		fails := errors.New("no record")
		if err := a.Update(func([]grants.Grant) ([]grants.Grant, error) { return nil, fails }); !errors.Is(err, fails) || len(ids(t, b)) != 10 {
			t.Errorf("Update = %v, and then there are %q", err, ids(t, b))
		}
		// With another key nobody can read a grant, and none counts.
		if other := ids(t, replica(t, e.URL(), strings.Repeat("0d", 32), 1)); other != nil {
			t.Errorf("with another key there are %q", other)
		}
	})
}

// Of two replicas that change the same grant at once, one succeeds.
func TestConflict(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replica(t, e.URL(), key, 1), replica(t, e.URL(), key, 1)
		if err := add(a, of("", 1)); err != nil {
			t.Fatal(err)
		}
		err := a.Update(func(all []grants.Grant) ([]grants.Grant, error) {
			if err := b.Update(func([]grants.Grant) ([]grants.Grant, error) { return nil, nil }); err != nil {
				t.Error(err)
			}
			all[0].Covers = "more"
			return all, nil
		})
		if !errors.Is(err, store.ErrConflict) || ids(t, a) != nil {
			t.Errorf("Update of what was revoked meanwhile = %v, and then there are %q", err, ids(t, a))
		}
		// Different grants can be given at once.
		var wg sync.WaitGroup
		for n := range 10 {
			wg.Go(func() {
				if err := add([]*grantshared.Store{a, b}[n%2], of("", n)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(ids(t, b)); n != 10 {
			t.Errorf("there are %d, want 10", n)
		}
	})
}

// What was taken back stays so when somebody takes it back again from a machine whose clock
// is behind. Where the store knows what came first, the clocks do not count.
func TestEndedAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replica(t, e.URL(), key, 1), replica(t, e.URL(), key, 1)
		given := grants.Grant{Person: "ada", Pack: "triage", Since: since}
		for _, at := range []time.Time{since.Add(time.Minute), since.Add(-time.Hour)} {
			if err := a.End(grants.Ended{Person: "ada", At: at}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Load(); err != nil {
				t.Fatal(err)
			}
			if !b.Ended(given, 0) {
				t.Errorf("after it was taken back at %s, the answer of %s counts", at, since)
			}
		}
		if !b.Ended(given, 1) {
			t.Error("an answer counts that was given before")
		}
		if given.Since = since.Add(-time.Hour); b.Ended(given, 1<<40) {
			t.Error("an answer does not count that was given after that, at a server whose clock is behind")
		}
	})
}

// Without the store, nothing is known and nothing is kept.
func TestStoreIsUnreachable(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		proxy := e.Proxy(t)
		s := replica(t, proxy.URL(), key, 1)
		if err := add(s, of("", 1)); err != nil {
			t.Fatal(err)
		}
		proxy.Cut()
		if all, err := s.Load(); !errors.Is(err, grants.ErrUnavailable) || !errors.Is(err, store.ErrAway) || all != nil {
			t.Errorf("Load = %v, %v", all, err)
		}
		called := false
		err := s.Update(func(all []grants.Grant) ([]grants.Grant, error) { called = true; return all, nil })
		if !errors.Is(err, grants.ErrUnavailable) || called {
			t.Errorf("Update = %v, and it asked for changes: %v", err, called)
		}
		proxy.Mend()
		loads(t, s)
		err = s.Update(func(all []grants.Grant) ([]grants.Grant, error) { proxy.Cut(); return append(all, of("", 2)), nil })
		if !errors.Is(err, grants.ErrUnknown) {
			t.Errorf("Update of a store that goes away meanwhile = %v, want ErrUnknown", err)
		}
	})
}

// loads waits until a store has its one grant.
func loads(t *testing.T, s grants.Store) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		if all, err := s.Load(); err == nil && len(all) == 1 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the store is back: Load = %v, %v", all, err)
		}
	}
}

// Each person has an equal share of the room, and void grants make room.
func TestRoom(t *testing.T) {
	s := replica(t, storetest.NATS(t).URL(), key, 5000) // each share is 2
	if err := add(s, of("ada", 1), of("ada", 2), of("grace", 1)); err != nil {
		t.Fatal(err)
	}
	if err := add(s, of("ada", 3)); !errors.Is(err, grantshared.ErrFull) {
		t.Errorf("a third grant: %v", err)
	}
	err := s.Update(func(all []grants.Grant) ([]grants.Grant, error) {
		for i := range all {
			if all[i].ID == "ada2" {
				all[i].Void = &grants.Void{At: since}
			}
		}
		return append(all, of("ada", 3)), nil
	})
	if diff := cmp.Diff([]string{"ada1", "grace1", "ada3"}, ids(t, s)); err != nil || diff != "" {
		t.Errorf("Update = %v; (-want +got):\n%s", err, diff)
	}
	wrong := of("grace", 2)
	wrong.Facts = nil
	if err := add(s, wrong); err == nil {
		t.Error("a grant whose digest is not its own is kept")
	}
}
