//go:build unix

package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// waitingOf limits the questions that wait for an answer.
func waitingOf(each int64, group map[string]int64) func(*Options) {
	return func(o *Options) { o.WaitingOf = quota.Limits{Each: each, Group: group} }
}

// in puts the person of a call into groups.
func in(req call.Request, groups ...string) call.Request {
	return with(req, func(r *call.Request) { r.Caller.Groups = groups })
}

// overLimit checks that a call is denied because of a limit, and that the open questions
// stay as they are.
func (b *bench) overLimit(what string, req call.Request, words string) {
	b.t.Helper()
	open := b.codes()
	_, q, err := b.Check(b.t.Context(), req, nil)
	denied, ok := errors.AsType[*DeniedError](err)
	if q != nil || !ok || !denied.OverLimit || !strings.Contains(denied.Reason, words) || !strings.Contains(denied.Hint, "Call again") {
		b.t.Errorf("%s: %v, %v, want a denial for a limit that says %q", what, q, err, words)
	}
	if now := b.codes(); !slices.Equal(now, open) {
		b.t.Errorf("%s: the open questions were %v and are %v", what, open, now)
	}
	if e := b.log.all()[len(b.log.all())-1]; e.Decision != "deny" || !strings.Contains(e.Reason, words) {
		b.t.Errorf("%s: the log has %+v, want the denial", what, e)
	}
}

// A person may have so many open questions, in however many chats. A further call is
// denied, and the older questions can still be answered.
func TestWaitingOfAPerson(t *testing.T) {
	b := newBench(t, everywhere, waitingOf(2, nil))
	first, second := b.ask(of("ada", "1", 1)), b.ask(carrying(of("ada", "2", 2)))
	for n := range 20 {
		b.overLimit("another chat", of("ada", fmt.Sprint("dodge ", n), 3), "the limit for calls of this person that wait for an answer is reached: 2 (http.questions_each)")
		b.overLimit("a chat that has one", carrying(of("ada", "2", 3)), "http.questions_each")
	}
	if got := b.outcome(of("bob", "1", 1)); got != asks {
		t.Errorf("another person: %s", got)
	}
	// The old are kept: they are answered, and their calls go on.
	b.page(first.Code, queue.Once)
	permit, _, err := b.Check(t.Context(), of("ada", "1", 1), b.Answered(first))
	if err != nil {
		t.Fatalf("the call that waited: %v", err)
	}
	if _, err := permit.Run(t.Context()); err != nil {
		t.Errorf("its run: %v", err)
	}
	if _, err := b.answer(carrying(of("ada", "2", 2)), accept(second.State, "once")); err != nil {
		t.Errorf("the call whose client carried the question: %v", err)
	}
	for _, chat := range []string{"3", "4"} {
		if got := b.outcome(of("ada", chat, 4)); got != asks {
			t.Errorf("when two were answered, chat %s: %s", chat, got)
		}
	}
}

// The people of a group may have so many open questions together. Somebody of several
// groups counts in each.
func TestWaitingOfAGroup(t *testing.T) {
	b := newBench(t, everywhere, waitingOf(0, map[string]int64{"sre": 2, "on call": 1, "ghosts": 1}))
	b.ask(in(of("ada", "1", 1), "staff", "sre", "sre"))
	b.ask(in(of("bob", "1", 1), "sre", "on call"))
	b.overLimit("the group is full", in(of("eve", "1", 1), "sre"), `the limit for calls of the group "sre" that wait for an answer is reached: 2 (http.questions_group)`)
	b.overLimit("the other group of bob", in(of("joe", "1", 1), "on call", "staff"), `the group "on call"`)
	for _, req := range []call.Request{in(of("kim", "1", 1), "staff"), of("kim", "2", 1), in(of("ada", "2", 2), "staff")} {
		if got := b.outcome(req); got != asks {
			t.Errorf("a call of %s in %v: %s", req.Caller.Person, req.Caller.Groups, got)
		}
	}
}

// However a question ends, it makes room. One that its call left behind waits on, and the
// same call, made again, is not a new one.
func TestWaitingEnds(t *testing.T) {
	one := of("ada", "1", 1)
	for name, ends := range map[string]func(b *bench, q *Question){
		"denied":         func(b *bench, q *Question) { b.page(q.Code, queue.Deny) },
		"allowed":        func(b *bench, q *Question) { b.page(q.Code, queue.Once) },
		"expired":        func(b *bench, _ *Question) { b.pass(11 * time.Minute) },
		"its chat ended": func(b *bench, _ *Question) { b.EndChat(one.Caller.Chat) },
		"its call was cancelled": func(b *bench, q *Question) {
			ctx, cancel := context.WithCancel(b.t.Context())
			cancel()
			if _, _, err := b.Check(ctx, one, b.decline(q)); !errors.Is(err, ErrDenied) {
				b.t.Errorf("a call that was cancelled: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everywhere, waitingOf(1, map[string]int64{"sre": 1}))
			q := b.ask(in(one, "sre"))
			for range 3 { // a denial takes no place
				b.overLimit("a second one", in(of("ada", "2", 2), "sre"), "http.questions_each")
				b.overLimit("a colleague's", in(of("bob", "1", 1), "sre"), "http.questions_group")
			}
			ends(b, q)
			if got := b.outcome(in(of("bob", "1", 1), "sre")); got != asks {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
	b := newBench(t, everywhere, waitingOf(1, nil))
	code := b.left(one)
	b.overLimit("a second one", of("ada", "2", 2), "http.questions_each")
	if q := b.ask(one); q.Code != code {
		t.Errorf("the same call, made again, has the question %s, want %s", q.Code, code)
	}
}

// Replicas count the questions of all of them. Calls that come to one at once, before the
// store has the first, count too.
func TestWaitingOfReplicas(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		a, b := replicaAt(t, e.URL(), sharedKey, waitingOf(3, nil)), replicaAt(t, e.URL(), sharedKey, waitingOf(3, nil))
		var burst sync.WaitGroup
		results := make(chan string, 20)
		for n := range 20 {
			burst.Go(func() { results <- a.outcome(shared(of("ada", fmt.Sprint(n), n))) })
		}
		burst.Wait()
		close(results)
		asked := 0
		for got := range results {
			if got == asks {
				asked++
			} else if !strings.Contains(got, "http.questions_each") {
				t.Errorf("a call of the burst: %s", got)
			}
		}
		if asked != 3 {
			t.Errorf("of 20 calls at once, %d were asked about, want 3", asked)
		}
		codes := a.codes()
		for _, code := range codes {
			b.shows(code)
		}
		b.overLimit("at the other replica", shared(of("ada", "x", 100)), "http.questions_each")
		b.page(codes[0], queue.Deny)
		if got := b.outcome(shared(of("ada", "x", 100))); got != asks {
			t.Errorf("after an answer: %s", got)
		}
	})
}

// shared is a call of a chat that replicas have in common.
func shared(req call.Request) call.Request {
	return with(carrying(req), func(r *call.Request) { r.Caller.Shared = true })
}
