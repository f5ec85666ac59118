//go:build unix

package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/grantshared"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// A person who has another name at the identity provider by now, and so at the replica that
// has not seen them before, cannot allow their own call there.
func TestRenamedAtAnotherReplica(t *testing.T) {
	const digits = " 3f9a1c2d5b60e4a781c0ffd2"
	e := storetest.NATS(t)
	a, b := replicaAt(t, e.URL(), sharedKey, bySRE), replicaAt(t, e.URL(), sharedKey, bySRE)
	req := personRun("mallory@example.com"+digits, "sre")
	req.Caller.Shared, req.Caller.CanAsk = true, false
	code := a.left(req)
	b.shows(code)
	view := b.View(approvers.Person{Name: "molly@example.com" + digits, Groups: []string{"sre"}})
	if _, err := view.Decide(code, says(queue.Once)); err == nil || !strings.Contains(err.Error(), "not the person who asks") {
		t.Errorf("Decide = %v", err)
	}
}

// sharing changes options, but has the answers that are kept shared, as the questions are.
func sharing(change func(*Options)) func(*Options) {
	return func(o *Options) {
		change(o)
		s := grantshared.New(o.Questions, 1)
		o.Grants, o.Ended = s, s.Ended
	}
}

// onlyGrace lets nobody else allow calls.
func onlyGrace(o *Options) {
	bySRE(o)
	o.Approvers = []approvers.Rule{{Who: []approvers.Who{{Kind: approvers.Named, Name: "grace"}}, Where: "config.yaml:9"}}
}

// An answer that a replica with other approvers took counts only where its person may give
// it: for a call that waits, and for one that is made again.
func TestAnswerUnderOtherApprovers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		strict, lax := replicaAt(t, e.URL(), sharedKey, sharing(onlyGrace)), replicaAt(t, e.URL(), sharedKey, sharing(bySRE))
		req := personRun("ada")
		req.Caller.Shared, req.Caller.CanAsk = true, false
		for _, c := range []struct {
			name   string
			by     queue.Verdict
			allows bool
		}{
			{"in the group that the other replica names", by(queue.Once, "eve", "sre"), false},
			{"the same, for always", by(queue.Always, "eve", "sre"), false},
			{"named by both", by(queue.Once, "grace", "sre"), true},
		} {
			code := strict.left(req)
			lax.shows(code)
			if _, err := lax.Decide(code, c.by); err != nil {
				t.Fatal(err)
			}
			permit, _, err := strict.Check(t.Context(), req, nil)
			if (permit != nil) != c.allows {
				t.Errorf("%s, the call made again: %v, %v", c.name, permit, err)
			}
			q := strict.ask(req)
			lax.shows(q.Code)
			if _, err := lax.Decide(q.Code, c.by); err != nil {
				t.Fatal(err)
			}
			<-q.Decided
			permit, _, err = strict.Check(t.Context(), req, strict.Answered(q))
			if (permit != nil) != c.allows {
				t.Errorf("%s, the call that waits: %v, %v", c.name, permit, err)
			}
			if !c.allows {
				strict.denied(err, "it may be allowed by grace (config.yaml:9)")
			}
		}
		if got := strict.outcome(req); got != asks {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// An answer that was given before somebody took back its person's answers counts no more,
// and is not kept: for a call that waits, and for one that is made again. One that was
// given after that counts.
func TestAnswerThatWasTakenBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replicaAt(t, e.URL(), sharedKey, sharing(bySRE)), replicaAt(t, e.URL(), sharedKey, sharing(bySRE))
		kept := b.book.Store.(*grantshared.Store)
		req := personRun("ada")
		req.Caller.Shared, req.Caller.CanAsk = true, false
		for d, all := range map[queue.Decision][]grants.Ended{queue.Always: {{Person: "grace"}, {Pack: req.Pack.ID}}, queue.Chat: {{By: "grace"}}, queue.Once: {{}}} {
			for _, end := range all {
				end.At = b.now().Add(-time.Hour) // the clock of the machine that ends it may be wrong
				code := a.left(req)
				b.shows(code)
				if _, err := b.Decide(code, by(d, "grace", "sre")); err != nil {
					t.Fatal(err)
				}
				if err := kept.End(end); err != nil {
					t.Fatal(err)
				}
				permit, _, err := a.Check(t.Context(), req, nil)
				if permit != nil {
					t.Fatalf("%+v, %s: the call made again is allowed", end, d)
				}
				a.denied(err, "taken back")
				q := a.ask(req)
				b.shows(q.Code)
				if _, err := b.Decide(q.Code, by(d, "grace", "sre")); err != nil {
					t.Fatal(err)
				}
				<-q.Decided
				if err := kept.End(end); err != nil {
					t.Fatal(err)
				}
				permit, _, err = a.Check(t.Context(), req, a.Answered(q))
				if permit != nil {
					t.Fatalf("%+v, %s: the call that waits is allowed", end, d)
				}
				a.denied(err, "taken back")
			}
		}
		if all, err := kept.Load(); err != nil || len(all) != 0 {
			t.Errorf("%d answers are kept, %v", len(all), err)
		}
		code := a.left(req)
		b.shows(code)
		if _, err := b.Decide(code, by(queue.Once, "grace", "sre")); err != nil {
			t.Fatal(err)
		}
		if got := a.outcome(req); got != allows {
			t.Errorf("an answer that was given later: %s", got)
		}
	})
}

// An answer that was used, and that somebody who can write to the store puts back when its
// claim is forgotten, counts no more once its time has been over for an hour.
func TestAnswerPutBackLater(t *testing.T) {
	e := storetest.NATS(t)
	a := replicaAt(t, e.URL(), sharedKey, sharing(everywhere))
	raw, err := store.Open(t.Context(), store.Options{URL: e.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	code := a.left(silent())
	a.page(code, queue.Once)
	answered, err := raw.Get(t.Context(), "q."+code)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.outcome(silent()); got != allows {
		t.Fatalf("the call: %s", got)
	}
	a.pass(a.pending + 61*time.Minute)
	if _, err := raw.Put(t.Context(), answered.Key, answered.Value, 0, 0); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*bench{"the same replica": a, "a new one": replicaAt(t, e.URL(), sharedKey, sharing(everywhere), func(o *Options) { o.Now = a.now })} {
		if got := b.outcome(silent()); got != asks {
			t.Errorf("%s: %s", name, got)
		}
	}
}
