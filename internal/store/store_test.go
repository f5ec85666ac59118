//go:build unix

package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func open(t *testing.T, url string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func follow(t *testing.T, url string) *store.Mirror {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.Follow(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// wants fails the test unless err is the wanted error.
func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
}

// eventually waits until is returns true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("after 30 s, not yet: %s", what)
		}
	}
}

// One entry: made once, replaced and deleted with its revision, and made again.
func TestEntry(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		a, b := open(t, e.URL()), open(t, e.URL())
		_, err := a.Get(ctx, "q.1")
		wants(t, "Get of nothing", err, store.ErrNotFound)
		_, err = a.Put(ctx, "q.1", []byte("x"), 7, 0)
		wants(t, "Put over nothing", err, store.ErrConflict)
		first, err := a.Put(ctx, "q.1", []byte("one"), 0, 0)
		wants(t, "Put", err, nil)
		_, err = b.Put(ctx, "q.1", []byte("two"), 0, 0)
		wants(t, "Put of what is there", err, store.ErrConflict)
		second, err := b.Put(ctx, "q.1", []byte("two"), first, 0)
		wants(t, "Put over the first", err, nil)
		if second <= first {
			t.Errorf("revision %d follows %d", second, first)
		}
		_, err = a.Put(ctx, "q.1", []byte("three"), first, 0)
		wants(t, "Put over the first again", err, store.ErrConflict)
		got, err := a.Get(ctx, "q.1")
		if err != nil || string(got.Value) != "two" || got.Rev != second || got.Key != "q.1" {
			t.Errorf("Get = %+v, %v", got, err)
		}
		wants(t, "Delete of the first", a.Delete(ctx, "q.1", first), store.ErrConflict)
		wants(t, "Delete", a.Delete(ctx, "q.1", second), nil)
		_, err = b.Get(ctx, "q.1")
		wants(t, "Get after Delete", err, store.ErrNotFound)
		wants(t, "Delete twice", b.Delete(ctx, "q.1", second), store.ErrConflict)
		_, err = b.Put(ctx, "q.1", nil, second, 0)
		wants(t, "Put over what was deleted", err, store.ErrConflict)
		third, err := b.Put(ctx, "q.1", nil, 0, 0)
		if err != nil || third <= second {
			t.Errorf("Put after Delete = %d, %v", third, err)
		}
		if got, err := a.Get(ctx, "q.1"); err != nil || len(got.Value) != 0 || got.Rev != third {
			t.Errorf("Get of an empty value = %+v, %v", got, err)
		}
	})
}

// An expired entry is gone for everyone, can be made again, and watchers notice.
func TestExpiry(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		m := follow(t, e.URL())
		rev, err := m.Put(ctx, "r.a", []byte("x"), 0, time.Second)
		wants(t, "Put", err, nil)
		// Constant other writes do not keep watchers from noticing it.
		writing, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			for writing.Err() == nil {
				_ = m.Sync(writing)
			}
		}()
		if err := m.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		if len(m.All("r.a")) == 0 {
			t.Error("the mirror does not have the entry")
		}
		eventually(t, "the entry is gone", func() bool {
			_, err := m.Get(ctx, "r.a")
			return errors.Is(err, store.ErrNotFound)
		})
		_, err = m.Put(ctx, "r.a", []byte("y"), rev, 0)
		wants(t, "Put over what expired", err, store.ErrConflict)
		eventually(t, "the mirror hears of it", func() bool { return len(m.All("r.a")) == 0 })
		_, err = m.Put(ctx, "r.a", []byte("y"), 0, 0)
		wants(t, "Put after it expired", err, nil)
	})
}

// Of many concurrent claims of the same key, one succeeds.
func TestClaims(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		const keys, claimants = 60, 3
		var won [keys]atomic.Int32
		var lost atomic.Int32
		var wg sync.WaitGroup
		for range claimants {
			s := open(t, e.URL())
			for i := range keys {
				wg.Go(func() {
					_, err := s.Put(t.Context(), "n."+strconv.Itoa(i), nil, 0, time.Minute)
					switch {
					case err == nil:
						won[i].Add(1)
					case errors.Is(err, store.ErrConflict):
						lost.Add(1)
					default:
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		for i := range won {
			if n := won[i].Load(); n != 1 {
				t.Errorf("%d have claimed key %d, want one", n, i)
			}
		}
		if n := lost.Load(); n != keys*(claimants-1) {
			t.Errorf("%d have lost, want %d", n, keys*(claimants-1))
		}
	})
}

// A watcher is told every entry, and then every change, in order.
func TestWatch(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		s := open(t, e.URL())
		gone, err := s.Put(t.Context(), "old.gone", nil, 0, 0)
		wants(t, "Put", err, nil)
		_, err = s.Put(t.Context(), "old.there", []byte("v"), 0, 0)
		wants(t, "Put", err, nil)
		wants(t, "Delete", s.Delete(t.Context(), "old.gone", gone), nil)

		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var heard []string
		var revs []uint64
		synced := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- s.Watch(ctx, func(c store.Change) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case c.Synced:
					close(synced)
					return
				case c.Gone:
					heard = append(heard, "-"+c.Key)
				default:
					heard = append(heard, c.Key+"="+string(c.Value))
				}
				revs = append(revs, c.Rev)
			})
		}()
		<-synced
		mu.Lock()
		first := slices.DeleteFunc(slices.Clone(heard), func(s string) bool { return s == "-old.gone" })
		heard, revs = nil, nil
		mu.Unlock()
		if !slices.Equal(first, []string{"old.there=v"}) {
			t.Errorf("at the beginning there were %q", first)
		}
		const writers, each = 3, 20
		var wg sync.WaitGroup
		for w := range writers {
			from := open(t, e.URL())
			wg.Go(func() {
				var rev uint64
				for i := range each {
					var err error
					if rev, err = from.Put(t.Context(), fmt.Sprint("w.", w), []byte(strconv.Itoa(i)), rev, 0); err != nil {
						t.Error(err)
						return
					}
				}
				if err := from.Delete(t.Context(), fmt.Sprint("w.", w), rev); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		eventually(t, "all writers' deletions are heard", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(slices.DeleteFunc(slices.Clone(heard), func(s string) bool { return !strings.HasPrefix(s, "-w.") })) == writers
		})
		mu.Lock()
		if !slices.IsSorted(revs) {
			t.Errorf("revisions are not in order: %v", revs)
		}
		mu.Unlock()
		cancel()
		wants(t, "Watch", <-ended, context.Canceled)
	})
}

// After Sync, a mirror has everything written before it, and misses nothing while it
// is cut off.
func TestMirror(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		proxy := e.Proxy(t)
		m := follow(t, proxy.URL())
		other := open(t, e.URL())
		var revs []uint64
		put := func(key string) {
			t.Helper()
			rev, err := other.Put(ctx, key, []byte(key), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			revs = append(revs, rev)
		}
		sync := func() {
			t.Helper()
			if err := m.Sync(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 20 {
			put(fmt.Sprint("g.", i))
			sync()
			if got, ok := m.All("g.")[fmt.Sprint("g.", i)]; !ok || got.Rev != revs[i] || string(got.Value) != fmt.Sprint("g.", i) {
				t.Fatalf("after Sync, the mirror has %+v", got)
			}
		}
		proxy.Cut()
		eventually(t, "Sync fails when the store is away", func() bool { return errors.Is(m.Sync(ctx), store.ErrAway) })
		put("g.new")
		wants(t, "Delete", other.Delete(ctx, "g.3", revs[3]), nil)
		_, err := other.Put(ctx, "g.4", []byte("changed"), revs[4], 0)
		wants(t, "Put", err, nil)
		proxy.Mend()
		eventually(t, "Sync works again", func() bool { return m.Sync(ctx) == nil })
		all := m.All("g.")
		if _, have := all["g.3"]; len(all) != 20 || have || string(all["g.4"].Value) != "changed" || string(all["g.new"].Value) != "g.new" {
			t.Errorf("after the cut, the mirror has %v", all)
		}
	})
}

// A mark is not below any write before it, also after writes that failed, and a mirror
// gets to it.
func TestMark(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		a, b := open(t, e.URL()), open(t, e.URL())
		m := follow(t, e.URL())
		seen := uint64(0)
		for i := range 10 {
			key := fmt.Sprint("g.", i)
			rev, err := a.Put(ctx, key, nil, 0, 0)
			wants(t, "Put", err, nil)
			if i%2 == 1 {
				wants(t, "Delete", a.Delete(ctx, key, rev), nil)
			}
			_, err = a.Put(ctx, "g.0", nil, 0, 0)
			wants(t, "Put of what is there", err, store.ErrConflict)
			mark, back, err := b.Mark(ctx, seen)
			if err != nil || back || mark < rev || mark < seen {
				t.Fatalf("after the revision %d, Mark(%d) = %d, %v, %v", rev, seen, mark, back, err)
			}
			seen = mark
			wants(t, "Sync", m.Sync(ctx), nil)
		}
		if n := len(m.All("g.")); n != 5 {
			t.Errorf("the mirror has %d entries, want 5", n)
		}
	})
}

// A standby of PostgreSQL may lag, so it does not say that a replica is up to date. A
// connection may lead there after the primary failed.
func TestMarkOfAStandby(t *testing.T) {
	e := storetest.Postgres(t)
	s := open(t, e.URL())
	_, err := s.Put(t.Context(), "g.1", []byte("x"), 0, 0)
	wants(t, "Put", err, nil)
	_, _, err = s.Mark(t.Context(), 0)
	wants(t, "Mark", err, nil)
	e.Standby(t)
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err = s.Get(t.Context(), "g.1"); err == nil {
			break // connections from before are gone
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("Get of a standby: %v", err)
		}
	}
	_, _, err = s.Mark(t.Context(), 0)
	wants(t, "Mark of a standby", err, store.ErrAway)
}

// A store that was set back, as from a backup, is read again. Its revisions begin
// below what the mirror has seen, so that they do not show that the mirror lags.
func TestSetBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		m := follow(t, e.URL())
		for i := range 20 {
			_, err := m.Put(ctx, fmt.Sprint("g.old", i), []byte("x"), 0, 0)
			wants(t, "Put", err, nil)
		}
		wants(t, "Sync", m.Sync(ctx), nil)
		e.Empty(t)
		other := open(t, e.URL())
		_, err := other.Put(ctx, "g.new", []byte("x"), 0, 0)
		wants(t, "Put in the store that was set back", err, nil)
		wants(t, "Sync", m.Sync(ctx), nil)
		if all := slices.Collect(maps.Keys(m.All("g."))); !slices.Equal(all, []string{"g.new"}) {
			t.Errorf("the mirror has %q, want what the store has now", all)
		}
	})
}

// A chain grows only at its end, for writers that know the end.
func TestChain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		a, b := open(t, e.URL()), open(t, e.URL())
		_, _, err := a.Last(ctx, "x.1")
		wants(t, "Last of nothing", err, store.ErrNotFound)
		if err := a.Read(ctx, "x.1", 0, func(uint64, []byte) error { return errors.New("a block") }); err != nil {
			t.Errorf("Read of nothing = %v", err)
		}
		_, err = a.Append(ctx, "x.1", 9, []byte("no"))
		wants(t, "Append after nothing", err, store.ErrConflict)
		var pos uint64
		var want []string
		var at []uint64
		for i := range 300 { // more than one fetch
			block := fmt.Sprint("block ", i)
			next, err := a.Append(ctx, "x.1", pos, []byte(block))
			if err != nil || next <= pos {
				t.Fatalf("Append = %d, %v", next, err)
			}
			if i == 1 {
				_, err := b.Append(ctx, "x.1", pos, []byte("at the same place"))
				wants(t, "Append at the same place", err, store.ErrConflict)
				_, err = b.Append(ctx, "x.1", 0, []byte("at the beginning"))
				wants(t, "Append at the beginning", err, store.ErrConflict)
			}
			pos, want, at = next, append(want, block), append(at, next)
		}
		b2, err := b.Append(ctx, "x.2", 0, []byte("another"))
		wants(t, "Append to another", err, nil)
		last, block, err := b.Last(ctx, "x.1")
		if err != nil || last != pos || string(block) != "block 299" {
			t.Errorf("Last = %d, %q, %v", last, block, err)
		}
		var got []string
		if err := b.Read(ctx, "x.1", 0, func(_ uint64, block []byte) error { got = append(got, string(block)); return nil }); err != nil || !slices.Equal(got, want) {
			t.Errorf("Read = %q, %v", got, err)
		}
		stop := errors.New("stop")
		wants(t, "Read", b.Read(ctx, "x.1", 0, func(uint64, []byte) error { return stop }), stop)
		before, err := b.Chains(ctx)
		if names := slices.Sorted(maps.Keys(before)); err != nil || !slices.Equal(names, []string{"x.1", "x.2"}) {
			t.Errorf("Chains = %q, %v", names, err)
		}
		_, err = a.Append(ctx, "x.2", b2, []byte("more"))
		wants(t, "Append to another", err, nil)
		if now, err := b.Chains(ctx); err != nil || now["x.2"] == before["x.2"] || now["x.1"] != before["x.1"] {
			t.Errorf("after x.2 grew, Chains = %v, %v; before, it was %v", now, err, before)
		}
		// Its beginning can be removed, and the rest stays.
		wants(t, "Trim", a.Trim(ctx, "x.1", at[149]), nil)
		got = nil
		if err := b.Read(ctx, "x.1", 0, func(_ uint64, block []byte) error { got = append(got, string(block)); return nil }); err != nil || !slices.Equal(got, want[150:]) {
			t.Errorf("Read after Trim = %q, %v", got, err)
		}
		got = nil
		if err := b.Read(ctx, "x.1", at[297], func(_ uint64, block []byte) error { got = append(got, string(block)); return nil }); err != nil || !slices.Equal(got, want[298:]) {
			t.Errorf("Read after a position = %q, %v", got, err)
		}
		last2, _, err := b.Last(ctx, "x.2")
		wants(t, "Last", err, nil)
		wants(t, "Trim of all", a.Trim(ctx, "x.2", last2), nil)
		if now, err := b.Chains(ctx); err != nil || len(now) != 1 {
			t.Errorf("after one was trimmed away, Chains = %v, %v", now, err)
		}
		// Of many appends at the same place, one succeeds.
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				if _, err := []store.Store{a, b}[i%2].Append(ctx, "x.1", pos, nil); err == nil {
					won.Add(1)
				} else if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := won.Load(); n != 1 {
			t.Errorf("%d have appended at one place", n)
		}
	})
}

// An unreachable or silent store causes an error in time; a slow one works.
func TestStoreIsUnreachable(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		proxy := e.Proxy(t)
		s := open(t, proxy.URL())
		rev, err := s.Put(ctx, "q.1", nil, 0, 0)
		wants(t, "Put", err, nil)
		pos, err := s.Append(ctx, "x.1", 0, []byte("one"))
		wants(t, "Append", err, nil)
		proxy.Slow(30 * time.Millisecond)
		if _, err := s.Get(ctx, "q.1"); err != nil {
			t.Errorf("Get from a slow store = %v", err)
		}
		proxy.Slow(0)
		for how, fails := range map[string]func(){"cut": proxy.Cut, "stalled": proxy.Stall} {
			t.Run(how, func(t *testing.T) {
				fails()
				defer proxy.Mend()
				begun := time.Now()
				var wg sync.WaitGroup
				for what, op := range map[string]func() error{
					"Get":    func() error { _, err := s.Get(ctx, "q.1"); return err },
					"Put":    func() error { _, err := s.Put(ctx, "q.2", nil, 0, 0); return err },
					"Delete": func() error { return s.Delete(ctx, "q.1", rev+1) },
					"Append": func() error { _, err := s.Append(ctx, "x.1", pos+1, nil); return err },
					"Last":   func() error { _, _, err := s.Last(ctx, "x.1"); return err },
					"Chains": func() error { _, err := s.Chains(ctx); return err },
					"Mark":   func() error { _, _, err := s.Mark(ctx, 0); return err },
					"Watch":  func() error { return s.Watch(ctx, func(store.Change) {}) },
				} {
					wg.Go(func() { wants(t, what, op(), store.ErrAway) })
				}
				wg.Wait()
				if took := time.Since(begun); took > 25*time.Second {
					t.Errorf("they took %v", took)
				}
			})
			eventually(t, "the store is back", func() bool { _, err := s.Get(ctx, "q.1"); return err == nil })
		}
	})
}

// Acknowledged writes survive a restart of the engine.
func TestRestart(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		m := follow(t, e.URL())
		var pos uint64
		for i := range 10 {
			_, err := m.Put(ctx, fmt.Sprint("g.", i), []byte("v"), 0, 0)
			wants(t, "Put", err, nil)
			if pos, err = m.Append(ctx, "x.1", pos, []byte("b")); err != nil {
				t.Fatal(err)
			}
		}
		e.Restart()
		eventually(t, "the mirror is up to date", func() bool { return m.Sync(ctx) == nil })
		if n := len(m.All("g.")); n != 10 {
			t.Errorf("after the restart there are %d entries, want 10", n)
		}
		_, err := m.Put(ctx, "g.1", nil, 0, 0)
		wants(t, "Put of what is there", err, store.ErrConflict)
		last, _, err := m.Last(ctx, "x.1")
		if err != nil || last != pos {
			t.Errorf("Last = %d, %v, want %d", last, err, pos)
		}
	})
}

// Without the keys, nobody can read, make up or move an entry.
func TestSeal(t *testing.T) {
	first, second := strings.Repeat("1a", 32), strings.Repeat("2b", 32)
	keys := func(text string) store.Keys {
		k, err := store.ParseKeys(text)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		ctx := t.Context()
		plain := open(t, e.URL())
		old, both, new := store.Seal(plain, keys(first)), store.Seal(plain, keys(second+"\n"+first)), store.Seal(plain, keys(second))
		if _, err := old.Put(ctx, "q.1", []byte("secret"), 0, 0); err != nil {
			t.Fatal(err)
		}
		raw, err := plain.Get(ctx, "q.1")
		if err != nil || strings.Contains(string(raw.Value), "secret") {
			t.Errorf("the engine has %q, %v", raw.Value, err)
		}
		if got, err := both.Get(ctx, "q.1"); err != nil || string(got.Value) != "secret" {
			t.Errorf("with both keys: %q, %v", got.Value, err)
		}
		_, err = new.Get(ctx, "q.1")
		wants(t, "Get with another key", err, store.ErrForged)
		if _, err := both.Put(ctx, "q.2", []byte("new"), 0, 0); err != nil {
			t.Fatal(err)
		}
		if got, err := new.Get(ctx, "q.2"); err != nil || string(got.Value) != "new" {
			t.Errorf("what both wrote, with the new key: %q, %v", got.Value, err)
		}
		for what, value := range map[string][]byte{"moved": raw.Value, "made up": []byte("secret"), "empty": nil} {
			key := "f." + strings.ReplaceAll(what, " ", "-")
			if _, err := plain.Put(ctx, key, value, 0, 0); err != nil {
				t.Fatal(err)
			}
			_, err = both.Get(ctx, key)
			wants(t, "Get of what is "+what, err, store.ErrForged)
		}
		m, err := store.Follow(ctx, store.Seal(open(t, e.URL()), keys(second+" "+first)), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if forged := m.All("f."); len(forged) != 0 || len(m.All("q.")) != 2 {
			t.Errorf("the mirror has %v and %v", m.All("q."), forged)
		}
	})
	for _, wrong := range []string{"", "ab", first + "0", strings.Repeat("x", 64), first + " " + second + " " + first} {
		if _, err := store.ParseKeys(wrong); err == nil || wrong != "" && strings.Contains(err.Error(), wrong) {
			t.Errorf("ParseKeys(%q) = %v", wrong, err)
		}
	}
}

// No error repeats a password.
func TestOpenKeepsSecrets(t *testing.T) {
	for _, url := range []string{"nats://ada:hush@127.0.0.1:1/x?replicas=1", "nats://ada:hush@127.0.0.1:1/?replicas=many", "postgres://ada:hush@127.0.0.1:1/x", "postgres://ada:hush@127.0.0.1:x/?sslmode=odd", "http://ada:hush@h/", "nats://ada:hush@", "nats://ada:hush@127.0.0.1:1,127.0.0.1:2/%zz", "nats://ada:hush%zz@127.0.0.1:1", "nats://ada:hush hush@127.0.0.1:1", "nats://ada:x,hush@127.0.0.1:1", "nats://ada:1/hush@127.0.0.1:1", "nats://ada:x?hush@127.0.0.1:1", "nats://ada:hush@[::1:1"} {
		if _, err := store.Open(t.Context(), store.Options{URL: url}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("Open = %v", err)
		}
	}
}
