package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

// An added question is one that this replica is writing to the store.
type added struct {
	*Entry
	told bool // the store has told of its code; what that says is read after the write
}

// addShared is [Queue.Add] where replicas share the questions. Two calls that are the
// same and come at once make two questions.
func (q *Queue) addShared(e *Entry, state string) (*Ticket, error) {
	ctx, cancel := context.WithTimeout(context.Background(), shareTime)
	defer cancel()
	for {
		unlock := q.lock()
		e.shown.Code, e.replica = "", q.board.replica
		a, err := &added{Entry: e}, q.place(e)
		if err == nil {
			e.mark(q.gone[e.Call.Caller.Chat])
			q.adding[e.shown.Code] = a
		}
		r, lasts := q.recordOf(e), e.shown.Expires.Sub(q.now())
		unlock()
		if err != nil {
			return nil, err
		}
		rev, err := q.write(ctx, r, 0, lasts)
		unlock = q.lock()
		delete(q.adding, e.shown.Code)
		if err == nil {
			e.rev = rev
			q.entries[e.shown.Code] = e
			q.all = q.all.plus(e.size)
			q.change()
		}
		t := e.ticket(state) // as it was written: if another call has taken it since, t says so
		if a.told {
			q.meet(e.shown.Code)
		}
		unlock()
		switch {
		case errors.Is(err, store.ErrConflict): // another replica gave the same code to a question of its own
		case err != nil:
			return nil, err
		default:
			return t, nil
		}
	}
}

// renewShared is [Queue.Renew]. of has the new holder and nonce.
func (q *Queue) renewShared(e *Entry, state string, of Entry, waits, expires time.Time, note string) (t *Ticket, err error) {
	got, err := q.alter(func() *Entry { return q.current(e) }, func(e *Entry) (step, error) {
		now := *e
		now.holder, now.nonce, now.asked, now.replica = of.holder, of.nonce, q.now(), q.board.replica
		now.shown.Waits, now.shown.Expires, now.shown.Note = waits, expires, note
		now.shown.Gone = false
		now.carry()
		now.mark(q.gone[e.Call.Caller.Chat])
		return step{now: q.recordOf(&now), lasts: expires.Sub(q.now())}, nil
	}, func(e *Entry) { t = e.ticket(state) })
	if err == nil && got == nil {
		err = ErrEnded
	}
	return t, err
}

// current returns the entry that is in the queue for a question; nil if that has ended.
// The caller holds the lock.
func (q *Queue) current(e *Entry) *Entry {
	if now := q.entries[e.shown.Code]; now != nil && now.id == e.id {
		return now
	}
	return nil
}

// redeemShared is [Queue.Redeem]. It spends nothing: what follows it does, with the
// nonce, and succeeds once.
func (q *Queue) redeemShared(state string, c *call.Call) (nonce string, err error) {
	t, err := q.states.read(state)
	if err != nil {
		return "", err
	}
	e, err := q.alter(func() *Entry { return q.find(t.Nonce) }, func(*Entry) (step, error) { return step{}, errNone }, nil)
	switch {
	case err != nil:
		return "", err
	case e == nil:
		return "", ErrSpent
	case e.Call.Caller.Person != c.Caller.Person || e.Call.Caller.Chat != c.Caller.Chat:
		return "", ErrTheirs
	case t.Call != e.Call.Digest():
		return "", ErrForged
	case t.Call != c.Digest():
		return t.Nonce, ErrOther
	}
	return t.Nonce, nil
}

// A Claim returns what takes the place of a question in the store when the answer of a run
// is taken, so that there is no moment at which the answer is gone and the run not claimed.
// It gets the question's ID, and is called again if the question changed meanwhile.
type Claim func(question string) ([]byte, error)

// takes returns the step that takes the answer to a question: a denial, and the answer of
// a call that claims nothing, leave nothing in its place.
func (e *Entry) takes(claim Claim) (s step, err error) {
	if claim != nil && (e.ruling == nil || e.ruling.Decision != Deny) {
		s.claim, err = claim(e.id)
	}
	return s, err
}

// Place returns the key and the revision of the claim that took the place of a question;
// the revision is 0 if none did.
func (q *Queue) Place(e *Entry) (key string, rev uint64) {
	defer q.lock()()
	return questionPrefix + e.shown.Code, e.rev
}

// Take removes the question with this nonce from the queue, since its answer is used, and
// returns it with the ruling that was made on it meanwhile. Each is nil if there is none.
// claim is nil if the answer allows no run. An error is [ErrUnavailable], or claim's.
func (q *Queue) Take(nonce, detail string, claim Claim) (*Entry, *Ruling, error) {
	if q.board == nil {
		return q.Finish(nonce, CodeAnswered, detail)
	}
	return q.finishShared(nonce, CodeAnswered, detail, claim)
}

// CatchUp returns when this replica knows everything that any replica wrote before the
// answer of an entry was taken. An error is [ErrUnavailable].
func (q *Queue) CatchUp(e *Entry) error {
	if q.board == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), shareTime)
	defer cancel()
	if _, rev := q.Place(e); rev != 0 {
		return written(q.board.mirror.Reach(ctx, rev))
	}
	return q.sync(ctx) // the question was removed, and no claim is in its place
}

// againShared is [Queue.Again]. The caller renews an open question.
func (q *Queue) againShared(asked *call.Call, claim Claim) (e *Entry, answer *Ruling, err error) {
	unlock := q.lock()
	e = q.leftBehind(asked)
	unlock()
	if e == nil {
		return nil, nil, nil // the grants were read just now, and with them the store
	}
	e, err = q.alter(func() *Entry { return q.leftBehind(asked) }, func(e *Entry) (step, error) {
		if answer = e.ruling; answer == nil {
			return step{}, errNone
		}
		return e.takes(claim)
	}, func(e *Entry) { q.noteEnd(e, CodeAnswered, answeredAndMade) })
	if err != nil || e == nil {
		return nil, nil, err // what was planned did not happen
	}
	return e, answer, nil
}

// noteEnd remembers how a question ended. The caller holds the lock.
func (q *Queue) noteEnd(e *Entry, problem CodeProblem, detail string) {
	q.ended = append(q.ended, CodeError{Code: e.shown.Code, Problem: problem, Detail: detail})
	q.ended = q.ended[max(0, len(q.ended)-maxPast):]
}

// leaveShared is [Queue.Leave]. The state that carried the question is spent.
func (q *Queue) leaveShared(nonce, note string) (e *Entry, shown Pending, answer *Ruling, err error) {
	e, err = q.alter(func() *Entry { return q.find(nonce) }, func(e *Entry) (step, error) {
		if answer, shown = e.ruling, e.shown; answer != nil {
			return step{}, errNone
		}
		now := *e
		now.holder, now.nonce = HeldByNobody, rand.Text()
		now.shown.Waits, now.shown.Note, now.shown.Gone, now.shown.Carried = time.Time{}, note, false, false
		shown = now.shown
		return step{now: q.recordOf(&now), lasts: now.shown.Expires.Sub(q.now())}, nil
	}, func(*Entry) {})
	if err != nil || e == nil {
		return nil, Pending{}, nil, err
	}
	return e, shown, answer, nil
}

// finishShared is [Queue.Finish] and [Queue.Take].
func (q *Queue) finishShared(nonce string, problem CodeProblem, detail string, claim Claim) (e *Entry, answer *Ruling, err error) {
	if nonce == "" {
		return nil, nil, nil
	}
	e, err = q.alter(func() *Entry { return q.find(nonce) }, func(e *Entry) (step, error) {
		answer = e.ruling
		return e.takes(claim)
	}, func(e *Entry) { q.noteEnd(e, problem, detail) })
	if err != nil || e == nil {
		return nil, nil, err
	}
	return e, answer, nil
}

// ruleShared is [Queue.Rule].
func (q *Queue) ruleShared(code string, v Verdict, lasts time.Duration) (r *Ruling, err error) {
	e, err := q.alter(func() *Entry { return q.entries[code] }, func(e *Entry) (step, error) {
		if problem := e.refuses(v); problem != nil {
			return step{}, problem
		}
		r = q.rules(e, v, lasts)
		now := *e
		now.ruling, now.shown = r, r.Shown
		return step{now: q.recordOf(&now), lasts: lasts}, nil
	}, func(e *Entry) {
		// The one that was made from the record does not know who records it.
		if e.ruling != nil && e.ruling.At.Equal(r.At) {
			r.Rev = e.ruling.Rev
			e.ruling = r
		}
	})
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		defer q.lock()()
		return nil, q.endOf(code)
	}
	return r, nil
}

// withdrawShared is [Queue.Withdraw]. Without the store, it reports false.
func (q *Queue) withdrawShared(e *Entry, detail string) bool {
	answered := false
	_, err := q.alter(func() *Entry { return q.current(e) }, func(e *Entry) (step, error) {
		if answered = e.ruling != nil; answered {
			return step{}, errNone
		}
		return step{}, nil
	}, func(e *Entry) { q.noteEnd(e, CodeWithdrawn, detail) })
	return err == nil && !answered
}

// lookFor catches up with the store if this replica does not know a question yet.
func (q *Queue) lookFor(code string) {
	unlock := q.lock()
	known := q.entries[code] != nil
	unlock()
	if !known {
		ctx, cancel := context.WithTimeout(context.Background(), shareTime)
		defer cancel()
		_ = q.sync(ctx) // without the store, the question stays unknown
	}
}
