//go:build unix

package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var key = strings.Repeat("0c", 32)

// mirror follows the store as a replica does.
func mirror(t *testing.T, url string) *store.Mirror {
	t.Helper()
	m, _ := storetest.Replica(t, url, key)
	return m
}

// replica returns the claims of a replica. reported gets its reports.
func replica(t *testing.T, m *store.Mirror, reported chan<- audit.Entry) *Claims {
	t.Helper()
	c, err := Open(t.Context(), m, Options{Logger: slog.New(slog.DiscardHandler), Keep: time.Minute, alive: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c.Watch(func(e audit.Entry) error { reported <- e; return nil })
	t.Cleanup(c.Close)
	return c
}

func line(run string) audit.Entry {
	return audit.Entry{Event: audit.EventRunEnd, Run: run, Pack: "triage", Cause: "cut"}
}

// Of many claims of one run on three replicas, one succeeds, also when the run has ended.
func TestClaim(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		reported := make(chan audit.Entry, 100)
		var all []*Claims
		for range 3 {
			all = append(all, replica(t, mirror(t, e.URL()), reported))
		}
		for round := range 5 {
			id := fmt.Sprint("answer", round)
			ends := make(chan func(), 30)
			var wg sync.WaitGroup
			for i := range 12 {
				wg.Go(func() {
					run := fmt.Sprint("run", round, i)
					claimed, err := all[i%3].Claim(t.Context(), id, line(run))
					if err != nil {
						t.Errorf("Claim = %v", err)
					}
					if claimed {
						ends <- func() { all[i%3].End(run) }
					}
				})
			}
			wg.Wait()
			if len(ends) != 1 {
				t.Fatalf("%d claims of one run succeeded, want 1", len(ends))
			}
			(<-ends)()
			if claimed, err := all[round%3].Claim(t.Context(), id, line("run")); claimed || err != nil {
				t.Errorf("a claim when the run has ended = %v, %v, want false", claimed, err)
			}
		}
		if len(reported) > 0 {
			t.Errorf("a run is reported as cut: %+v", <-reported)
		}
	})
}

// A run whose replica died is reported once, by one of the others. Those of replicas that
// are alive, and those that ended, are not.
func TestCut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		reported := make(chan audit.Entry, 100)
		dead := replica(t, mirror(t, e.URL()), reported)
		b, c := replica(t, mirror(t, e.URL()), reported), replica(t, mirror(t, e.URL()), reported)
		for id, of := range map[string]*Claims{"died": dead, "ended": dead, "goes-on": b} {
			claimed, err := of.Claim(t.Context(), id, line("run-"+id))
			if !claimed || err != nil {
				t.Fatalf("Claim = %v, %v", claimed, err)
			}
			if id == "ended" {
				of.End("run-" + id)
			}
		}
		dead.stop() // as after kill -9, it does not say that it ends
		<-dead.stopped
		if got := <-reported; got.Run != "run-died" || got.Cause != "cut" || got.Pack != "triage" {
			t.Errorf("the report is %+v", got)
		}
		// What another replica looked at later, it did not report again.
		for _, of := range []*Claims{b, c} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := of.mirror.Sync(ctx); err != nil {
				t.Fatal(err)
			}
			of.Close()
			of.stop = nil
			of.tidy(ctx, func(e audit.Entry) error { t.Errorf("reported again: %+v", e); return nil })
		}
		for len(reported) > 0 {
			t.Errorf("also reported: %+v", <-reported)
		}
		if claimed, err := c.Claim(t.Context(), "died", line("run-again")); claimed || err != nil {
			t.Errorf("a claim of the run that was cut = %v, %v, want false", claimed, err)
		}
	})
}

// Without the store, nothing is claimed; and what was perhaps claimed is not reported as cut.
func TestClaimWithoutStore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		reported := make(chan audit.Entry, 100)
		proxy := e.Proxy(t)
		c := replica(t, mirror(t, proxy.URL()), reported)
		proxy.Cut()
		if claimed, err := c.Claim(t.Context(), "a", line("run-a")); claimed || !errors.Is(err, store.ErrAway) {
			t.Errorf("Claim without the store = %v, %v", claimed, err)
		}
		proxy.Mend()
		// A write whose answer was lost leaves a claim of which this replica knows nothing.
		unknown := fmt.Appendf(nil, `{"replica":%q,"state":"running","cut":{"seq":0,"time":"2026-01-01T00:00:00Z","event":"run.end","run":"run-b","prev":""}}`, c.replica)
		var lost uint64
		for {
			if err := c.mirror.Sync(t.Context()); err != nil {
				continue
			}
			var err error
			if lost, err = c.mirror.Put(t.Context(), claimPrefix+"b", unknown, 0, 0); err != nil {
				t.Fatal(err)
			}
			break
		}
		feed := c.mirror.Feed(claimPrefix)
		for {
			if e, ok := c.mirror.Entry(claimPrefix + "b"); ok && e.Rev > lost {
				if !strings.Contains(string(e.Value), string(ended)) {
					t.Errorf("the claim is %s", e.Value)
				}
				break
			}
			<-feed.Wake()
		}
		if len(reported) > 0 {
			t.Errorf("a run is reported as cut: %+v", <-reported)
		}
	})
}

// take writes the claim of a run in the place of a question, as the replica does that takes
// its answer, and returns its key and revision.
func take(t *testing.T, c *Claims, question, run string) (key string, rev uint64) {
	t.Helper()
	key = takenPrefix + question
	asked, err := c.mirror.Put(t.Context(), key, []byte(`{"id":"x"}`), 0, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	value, err := c.Entry("answer-"+question, line(run))
	if err != nil {
		t.Fatal(err)
	}
	if rev, err = c.mirror.Put(t.Context(), key, value, asked, 0); err != nil {
		t.Fatal(err)
	}
	return key, rev
}

// The claim that took the place of a question ends with its run, and nothing starts for the
// same answer again. Questions are no claims.
func TestClaimInPlaceOfAQuestion(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		reported := make(chan audit.Entry, 100)
		a, b := replica(t, mirror(t, e.URL()), reported), replica(t, mirror(t, e.URL()), reported)
		if _, err := a.mirror.Put(t.Context(), takenPrefix+"OPEN", []byte(`{"id":"x","replica":"gone","state":"running"}`), 0, 0); err != nil {
			t.Fatal(err)
		}
		for _, run := range []string{"starts", "does not start"} {
			key, rev := take(t, a, "K7QM-2F9X", run)
			a.Took(run, key, rev)
			if run == "starts" {
				if claimed, err := a.Claim(t.Context(), "answer-K7QM-2F9X", line(run)); !claimed || err != nil {
					t.Fatalf("Claim = %v, %v", claimed, err)
				}
				if got, err := a.mirror.Get(t.Context(), key); err != nil || got.Rev != rev {
					t.Errorf("while the run goes on, its claim is %s, %v", got.Value, err)
				}
			}
			a.End(run)
			if got, err := a.mirror.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("when a run that %s has ended, its claim is %s, %v", run, got.Value, err)
			}
		}
		// Somebody restores the question in the engine.
		key, rev := take(t, b, "K7QM-2F9X", "again")
		b.Took("again", key, rev)
		if claimed, err := b.Claim(t.Context(), "answer-K7QM-2F9X", line("again")); claimed || err != nil {
			t.Errorf("another run of the answer is claimed: %v, %v", claimed, err)
		}
		b.End("again")
		for _, c := range []*Claims{a, b} {
			c.Close()
			c.stop = nil
		}
		if err := b.mirror.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := b.mirror.All(takenPrefix); len(left) != 1 {
			t.Errorf("in the place of questions there are %d entries, want the open question", len(left))
		}
		if len(reported) > 0 {
			t.Errorf("a run is reported as cut: %+v", <-reported)
		}
	})
}

// A run whose replica died just after it took the answer is reported as cut, once. If the
// replica only lost touch, the run does not start any more.
func TestTakenAndCut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		reported := make(chan audit.Entry, 100)
		dead := replica(t, mirror(t, e.URL()), reported)
		replica(t, mirror(t, e.URL()), reported)
		replica(t, mirror(t, e.URL()), reported)
		key, rev := take(t, dead, "K7QM-2F9X", "run-taken")
		dead.stop() // as after kill -9, it does not say that it ends
		<-dead.stopped
		if got := <-reported; got.Run != "run-taken" || got.Cause != "cut" {
			t.Errorf("the report is %+v", got)
		}
		if got, err := dead.mirror.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the claim of a run that was cut is %s, %v", got.Value, err)
		}
		dead.Took("run-taken", key, rev)
		if claimed, err := dead.Claim(t.Context(), "answer-K7QM-2F9X", line("run-taken")); claimed || err != nil {
			t.Errorf("a run that was reported as cut is claimed: %v, %v", claimed, err)
		}
		dead.End("run-taken")
		if len(reported) > 0 {
			t.Errorf("also reported: %+v", <-reported)
		}
	})
}
