//go:build unix

package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/grantshared"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

func TestMain(m *testing.M) {
	status := m.Run()
	storetest.End()
	os.Exit(status)
}

const sharedKey = "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"

// replicaAt returns a gate that shares its questions in the store at url.
func replicaAt(t *testing.T, url, key string, options ...func(*Options)) *bench {
	t.Helper()
	m, keys := storetest.Replica(t, url, key)
	b := newBench(t, append([]func(*Options){everywhere, func(o *Options) {
		o.Questions, o.Keys, o.Grants = m, keys.States(), synced{new(memory), m}
		o.SharedChats = grantshared.NewChats(m, 1, o.Now)
	}}, options...)...)
	t.Cleanup(b.queue.Close)
	return b
}

// synced reads the store before the grants, as the ones that replicas share do.
type synced struct {
	*memory
	mirror *store.Mirror
}

func (s synced) Load() ([]grants.Grant, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.mirror.Sync(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", grants.ErrUnavailable, err)
	}
	return s.memory.Load()
}

// shows waits until a replica shows a question.
func (b *bench) shows(code string) queue.Pending {
	b.t.Helper()
	for {
		changed := b.Changes()
		for _, p := range b.Gate.Pending() {
			if p.Code == code {
				return p
			}
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			b.t.Fatalf("the question %s is not shown", code)
		}
	}
}

// aPerson's call over HTTP, of a client that carries questions, and of one that cannot ask.
func carried() call.Request {
	return with(openCall(), func(r *call.Request) { r.Caller.Carries, r.Caller.Shared, r.Caller.Person = true, true, "ada" })
}

func silent() call.Request {
	return with(toolRun(), func(r *call.Request) {
		r.Caller.CanAsk, r.Caller.Carries, r.Caller.Shared, r.Caller.Person = false, true, true, "ada"
	})
}

// A question of one replica is answered by the client on another, once.
func TestStateOnAnotherReplica(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey)
		req := carried()
		q := a.ask(req)
		if permit, err := b.answer(req, accept(q.State, "once")); err != nil || permit == nil {
			t.Fatalf("the answer on the other replica: %v", err)
		}
		if e := b.log.last(); e.Decision != "once" || e.Channel != queue.ChannelElicitation || e.Caller != "ada" {
			t.Errorf("the log of the other replica has %+v", e)
		}
		for name, again := range map[string]*bench{"the same": b, "the one that asked": a} {
			_, err := again.answer(req, accept(q.State, "once"))
			again.denied(err, queue.ErrSpent.Error())
			if denied, ok := errors.AsType[*DeniedError](err); !ok || !denied.Invalid {
				t.Errorf("the state again on %s: %v", name, err)
			}
		}
		// Another person, chat or call; a text that nobody signed; another key.
		q = a.ask(req)
		b.shows(q.Code)
		for name, c := range map[string]struct {
			req   call.Request
			state string
			err   error
		}{
			"another person": {with(req, func(r *call.Request) { r.Caller.Person = "eve" }), q.State, queue.ErrTheirs},
			"another chat":   {with(req, func(r *call.Request) { r.Caller.Chat = "http-2" }), q.State, queue.ErrTheirs},
			"forged":         {req, "x" + q.State, queue.ErrForged},
		} {
			_, err := b.answer(c.req, accept(c.state, "once"))
			if err == nil || !strings.Contains(err.Error(), c.err.Error()) {
				t.Errorf("%s: %v, want %v", name, err, c.err)
			}
		}
		rotated := replicaAt(t, e.URL(), strings.Repeat("ab", 32)+" "+sharedKey)
		if _, err := rotated.answer(req, accept(q.State, "once")); err != nil {
			t.Errorf("with two keys: %v", err)
		}
		q = rotated.ask(req)
		_, err := a.answer(req, accept(q.State, "once"))
		a.denied(err, queue.ErrForged.Error())
		// A state that belongs to another call of the chat is spent.
		q = a.ask(req)
		_, err = b.answer(with(req, func(r *call.Request) { r.Pack.Digest = "sha256:other" }), accept(q.State, "once"))
		b.denied(err, queue.ErrOther.Error())
		_, err = a.answer(req, accept(q.State, "once"))
		a.denied(err, queue.ErrSpent.Error())
	})
}

// Of many answers with one state on three replicas, one allows; and the same of a call that
// is made again while its answer waits.
func TestAnswersAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		var all []*bench
		for range 3 {
			all = append(all, replicaAt(t, e.URL(), sharedKey))
		}
		atOnce := func(name string, of func(b *bench) (*Permit, error)) {
			t.Helper()
			var wg sync.WaitGroup
			permits := make(chan *Permit, 12)
			for i := range cap(permits) {
				wg.Go(func() {
					if p, _ := of(all[i%3]); p != nil {
						permits <- p
					}
				})
			}
			wg.Wait()
			if len(permits) != 1 {
				t.Errorf("%s: %d calls are allowed, want 1", name, len(permits))
			}
		}
		for round := range 5 {
			req := with(carried(), func(r *call.Request) { r.Pack.ID = fmt.Sprint("pack", round) })
			q := all[round%3].ask(req)
			atOnce("answers with a state", func(b *bench) (*Permit, error) {
				p, _, err := b.Check(t.Context(), req, accept(q.State, "once"))
				return p, err
			})
			late := with(silent(), func(r *call.Request) { r.Pack.ID = fmt.Sprint("pack", round) })
			code := all[round%3].left(late)
			on := all[(round+1)%3]
			on.shows(code)
			if _, err := on.Decide(code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err != nil {
				t.Fatal(err)
			}
			atOnce("calls made again", func(b *bench) (*Permit, error) {
				p, _, err := b.Check(t.Context(), late, nil)
				return p, err
			})
		}
	})
}

// Of two people who answer on two replicas, the first counts, and the other is told. A
// denial takes an answer back as long as the call has not gone on.
func TestFirstAnswerCounts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b, c := replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey)
		for range 5 {
			q := a.ask(silent()) // its call waits on a
			for _, x := range []*bench{b, c} {
				if p := x.shows(q.Code); p.Person != "ada" || p.Card.Title != q.Title || p.Waits.IsZero() {
					t.Fatalf("another replica shows %+v", p)
				}
			}
			errs := make(chan error, 2)
			for _, x := range []*bench{b, c} {
				go func() {
					_, err := x.Decide(q.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelTerminal})
					errs <- err
				}()
			}
			one, two := <-errs, <-errs
			if one != nil {
				one, two = two, one
			}
			told, ok := errors.AsType[*queue.CodeError](two)
			if one != nil || !ok || told.Problem != queue.CodeAnswered {
				t.Fatalf("two answers at once: %v and %v", one, two)
			}
			<-q.Decided
			permit, err := a.answer(silent(), a.Answered(q))
			if err != nil {
				t.Fatalf("the call that waited: %v", err)
			}
			if e := a.log.last(); e.Decision != "once" || e.Channel != queue.ChannelTerminal || e.Run != permit.RunID() {
				t.Errorf("its log has %+v", e)
			}
			if err := b.book.Store.(synced).mirror.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Decide(q.Code, queue.Verdict{Decision: queue.Deny, Channel: queue.ChannelPage}); err == nil {
				t.Error("an answer after the call went on is taken")
			}
		}
		code := a.left(silent())
		b.shows(code)
		if _, err := b.Decide(code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err != nil {
			t.Fatal(err)
		}
		if e := b.log.last(); e.Decision != "once" || !strings.Contains(e.Reason, "the call had returned") {
			t.Errorf("the log of the replica of the answer has %+v", e)
		}
		if err := c.book.Store.(synced).mirror.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Decide(code, queue.Verdict{Decision: queue.Deny, Channel: queue.ChannelPage}); err != nil {
			t.Fatal(err)
		}
		if err := a.book.Store.(synced).mirror.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, _, err := a.Check(t.Context(), silent(), nil)
		a.denied(err, "denied")
	})
}

// A call that waits on one replica and is made again on another waits there; and what was
// left when a server ended is found by the others.
func TestCallMovesOn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey)
		q := a.ask(silent())
		b.shows(q.Code)
		moved := b.ask(silent())
		if moved.Code != q.Code {
			t.Errorf("the question %s is asked again as %s", q.Code, moved.Code)
		}
		<-q.Taken
		if _, err := a.Postpone(q); !errors.Is(err, ErrDenied) {
			t.Errorf("the call that waited before: %v", err)
		}
		if _, err := a.Decide(q.Code, queue.Verdict{Decision: queue.Chat, Channel: queue.ChannelPage}); err != nil {
			t.Fatal(err)
		}
		<-moved.Decided
		if _, err := b.answer(silent(), b.Answered(moved)); err != nil {
			t.Fatal(err)
		}
		if got := b.outcome(silent()); got != allows {
			t.Errorf("after an answer for the chat: %s", got)
		}

		// A server ends while a call waits; the answer comes before the call does.
		other := with(silent(), func(r *call.Request) { r.Pack.ID = "other" })
		q = a.ask(other)
		ending, end := context.WithCancel(t.Context())
		end()
		if _, _, err := a.Check(ending, other, &answers.Answer{State: q.State, Reason: "the server ends", Ended: true}); !errors.Is(err, ErrDenied) {
			t.Errorf("a call of a server that ends: %v", err)
		}
		b.shows(q.Code)
		if _, err := b.Decide(q.Code, queue.Verdict{Decision: queue.Always, Channel: queue.ChannelPage}); err != nil {
			t.Fatal(err)
		}
		if permit, _, err := b.Check(t.Context(), other, nil); err != nil || permit == nil {
			t.Errorf("the call made again: %v", err)
		}
		if all, _ := b.book.Store.Load(); len(all) != 1 || all[0].Pack != "other" {
			t.Errorf("the grants are %+v", all)
		}
	})
}

// A lateStore acknowledges the write of a question late, once: something happens before.
type lateStore struct {
	store.Store
	meanwhile func()
}

func (s *lateStore) Put(ctx context.Context, key string, value []byte, rev uint64, ttl time.Duration) (uint64, error) {
	now, err := s.Store.Put(ctx, key, value, rev, ttl)
	if then := s.meanwhile; then != nil && strings.HasPrefix(key, "q.") {
		s.meanwhile = nil
		then()
	}
	return now, err
}

// A call is made again on another replica before the first one knows that its question was
// written. The first one learns that it was taken.
func TestCallMovesOnAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey)
		mirror := a.book.Store.(synced).mirror
		var moved *Question
		mirror.Store = &lateStore{mirror.Store, func() {
			moved = b.ask(silent())
			if err := mirror.Sync(t.Context()); err != nil {
				t.Error(err)
			}
		}}
		q := a.ask(silent())
		if moved.Code != q.Code {
			t.Errorf("the question %s is asked again as %s", q.Code, moved.Code)
		}
		select {
		case <-q.Taken:
		case <-time.After(time.Minute):
			t.Error("the call that asked first does not learn that another one took its question")
		}
		if _, err := a.Decide(q.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err != nil {
			t.Fatal(err)
		}
		<-moved.Decided
		if _, err := b.answer(silent(), b.Answered(moved)); err != nil {
			t.Error(err)
		}
	})
}

// Without the store, or with one that answers late, nothing is decided.
func TestQuestionsWithoutStore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		proxy := e.Proxy(t)
		a := replicaAt(t, proxy.URL(), sharedKey)
		q := a.ask(carried())
		waits := a.ask(silent())
		unavailable := func(name string, err error) {
			t.Helper()
			if denied, ok := errors.AsType[*DeniedError](err); !ok || !denied.Unavailable {
				t.Errorf("%s: %v, want a denial since the store cannot be reached", name, err)
			}
		}
		proxy.Cut()
		_, _, err := a.Check(t.Context(), with(carried(), func(r *call.Request) { r.Pack.ID = "other" }), nil)
		unavailable("a question", err)
		_, _, err = a.Check(t.Context(), carried(), accept(q.State, "once"))
		unavailable("an answer", err)
		_, err = a.Decide(waits.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage})
		unavailable("an answer on the page", err)
		if a.Answered(waits) != nil {
			t.Error("the call that waits has an answer")
		}
		proxy.Mend()
	})
}

// A clock that is wrong by minutes neither ends a question nor keeps one.
func TestReplicaWithAWrongClock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey)
		for _, off := range []time.Duration{30 * time.Minute, -time.Hour} {
			b.pass(off)
			q := a.ask(carried())
			if _, err := b.answer(carried(), accept(q.State, "once")); err != nil {
				t.Errorf("with a clock that is off by %s: %v", off, err)
			}
			code := a.left(silent())
			b.shows(code)
			if _, err := b.Decide(code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err != nil {
				t.Errorf("with a clock that is off by %s: %v", off, err)
			}
			if permit, _, err := b.Check(t.Context(), silent(), nil); err != nil || permit == nil {
				t.Errorf("with a clock that is off by %s: %v", off, err)
			}
		}
		// A question ends by the clock of the store.
		short, other := replicaAt(t, e.URL(), sharedKey, func(o *Options) { o.Pending = 2 * time.Second }), b
		q := short.ask(with(carried(), func(r *call.Request) { r.Pack.ID = "short" }))
		other.shows(q.Code)
		for {
			changed := other.Changes()
			if len(other.Gate.Pending()) == 0 {
				break
			}
			select {
			case <-changed:
			case <-time.After(time.Minute):
				t.Fatal("the question does not end")
			}
		}
		_, err := other.answer(with(carried(), func(r *call.Request) { r.Pack.ID = "short" }), accept(q.State, "once"))
		other.denied(err, queue.ErrSpent.Error())
	})
}

// Who can write to the store, and has no key, can make up no question and no answer, and
// can read none. An old value that is put back allows no second run.
func TestForgedQuestions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a := replicaAt(t, e.URL(), sharedKey)
		raw, err := store.Open(t.Context(), store.Options{URL: e.URL()})
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		code := a.left(silent())
		key := "q." + code
		open, err := raw.Get(t.Context(), key)
		if err != nil || bytes.Contains(open.Value, []byte("triage")) || bytes.Contains(open.Value, []byte("ada")) {
			t.Fatalf("the entry is %q, %v", open.Value, err)
		}
		for name, value := range map[string][]byte{"plain": []byte(`{"id":"x","nonce":"y"}`), "changed": append([]byte("x"), open.Value...)} {
			if _, err := raw.Put(t.Context(), "q.AAAA-AAAA", value, 0, time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := a.book.Store.(synced).mirror.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if all := a.Gate.Pending(); len(all) != 1 || all[0].Code != code {
				t.Errorf("with a %s entry, the questions are %+v", name, all)
			}
			if e, err := raw.Get(t.Context(), "q.AAAA-AAAA"); err != nil || raw.Delete(t.Context(), e.Key, e.Rev) != nil {
				t.Fatal(err)
			}
		}
		if _, err := raw.Put(t.Context(), "q.BBBB-BBBB", open.Value, 0, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := a.book.Store.(synced).mirror.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all := a.Gate.Pending(); len(all) != 1 {
			t.Errorf("an entry under another key is shown: %+v", all)
		}
		claims := &claimed{bench: a}
		a.runs = claims
		if _, err := a.Decide(code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err != nil {
			t.Fatal(err)
		}
		answered, err := raw.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			permit, _, err := a.Check(t.Context(), silent(), nil)
			if err != nil || permit == nil {
				t.Fatalf("the call: %v", err)
			}
			if _, err := permit.Run(t.Context()); (err == nil) != (i == 0) {
				t.Errorf("run %d: %v", i, err)
			}
			claim, err := raw.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := raw.Put(t.Context(), key, answered.Value, claim.Rev, time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := a.book.Store.(synced).mirror.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if a.runner.count() != 1 {
			t.Errorf("%d runs of one answer", a.runner.count())
		}
	})
}

// One write of the store takes an answer and claims its run. A denial, and an answer that
// starts nothing, leave no claim.
func TestAnswerIsTakenWithItsClaim(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replicaAt(t, e.URL(), sharedKey), replicaAt(t, e.URL(), sharedKey)
		a.runs = &claimed{bench: a}
		mirror := a.book.Store.(synced).mirror
		once, deny := queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}, queue.Verdict{Channel: queue.ChannelPage}
		opens := with(silent(), func(r *call.Request) { *r = carried(); r.Caller.CanAsk = false })
		for _, c := range []struct {
			name    string
			req     call.Request
			verdict queue.Verdict
			waits   bool // the call waits for the answer, and is not made again
			claims  bool
		}{
			{"a call that waits", silent(), once, true, true},
			{"a call that is made again", silent(), once, false, true},
			{"a denial of a call that waits", silent(), deny, true, false},
			{"a denial of a call that is made again", silent(), deny, false, false},
			{"a document, of a call that waits", opens, once, true, false},
			{"a document, of a call that is made again", opens, once, false, false},
		} {
			q, answer := &Question{}, (*answers.Answer)(nil)
			if c.waits {
				q = a.ask(c.req)
			} else {
				q.Code = a.left(c.req)
			}
			b.shows(q.Code)
			if _, err := b.Decide(q.Code, c.verdict); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if c.waits {
				<-q.Decided
				answer = a.Answered(q)
			}
			permit, _, err := a.Check(t.Context(), c.req, answer)
			if (permit != nil) != (c.verdict.Decision == queue.Once) {
				t.Fatalf("%s: %v, %v", c.name, permit, err)
			}
			left, err := mirror.Get(t.Context(), "q."+q.Code)
			switch {
			case c.claims && (err != nil || !strings.HasPrefix(string(left.Value), "claim of "+permit.RunID()+" for ")):
				t.Errorf("%s: in the place of its question there is %q, %v", c.name, left.Value, err)
			case !c.claims && !errors.Is(err, store.ErrNotFound):
				t.Errorf("%s: in the place of its question there is %q, %v", c.name, left.Value, err)
			}
			for name, x := range map[string]*bench{"this replica": a, "the other": b} {
				if err := x.book.Store.(synced).mirror.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				if all := x.Gate.Pending(); len(all) > 0 {
					t.Errorf("%s: %s still shows %+v", c.name, name, all)
				}
			}
		}
	})
}
