package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// ErrUnavailable means that the store in which replicas share their questions cannot be
// reached. Whether what was asked of it was done is not known.
var ErrUnavailable = errors.New("the store of the questions cannot be reached")

const (
	questionPrefix = "q." // of the keys of questions; the code follows
	// maxRecord bounds a question in the store, in bytes. NATS refuses messages of 1 MiB.
	maxRecord = 768 << 10
	// maxSkew is how wrong a replica's clock may be. The clock of the store ends a
	// question; the one of a replica only ends those that somebody put back.
	maxSkew = time.Hour
	// shareTime is how long one change of a question may take.
	shareTime = 10 * time.Second
)

// A record is a question in the store. It says everything that replicas have in common
// about it; an [Entry] is made from it, or kept in step with it.
type record struct {
	ID      string    `json:"id"`
	Nonce   string    `json:"nonce"`
	Asked   time.Time `json:"asked"`
	Replica string    `json:"replica"` // that holds it last
	Holder  Holder    `json:"holder"`
	Shown   Pending   `json:"shown"`
	Call    call.Kept `json:"call"`
	Changed []string  `json:"changed,omitempty"`
	Ruling  *ruled    `json:"ruling,omitempty"`
}

// ruled is a ruling in the store.
type ruled struct {
	Verdict
	At time.Time `json:"at"`
}

// A board is the part of a queue that replicas share. Every change of a question that
// decides anything is made in the store first, against the revision that the change was
// planned with. So of several replicas that answer, take or end a question, one does.
type board struct {
	mirror  *store.Mirror
	feed    *store.Feed
	replica string // a random name
	stop    context.CancelFunc
	tasks   sync.WaitGroup // the goroutine that follows, and those that remove questions
}

func newBoard(m *store.Mirror) *board {
	return &board{mirror: m, feed: m.Feed(questionPrefix), replica: rand.Text()[:16]}
}

// Shared reports whether replicas share the questions.
func (q *Queue) Shared() bool { return q.board != nil }

// Close waits until what the queue still tells the other replicas is told. Questions of
// chats that go on elsewhere stay open.
func (q *Queue) Close() {
	if q.board != nil {
		q.board.stop()
		q.board.tasks.Wait()
	}
}

// follow keeps the entries in step with the store, for those who wait for an answer and
// those who show the queue.
func (q *Queue) follow() {
	ctx, stop := context.WithCancel(context.Background())
	q.board.stop = stop
	q.board.tasks.Go(func() {
		for {
			select {
			case <-q.board.feed.Wake():
				q.lock()()
			case <-ctx.Done():
				return
			}
		}
	})
}

// catchUp takes what has changed in the store. The caller holds the lock.
func (q *Queue) catchUp() {
	for _, key := range q.board.feed.Take() {
		q.meet(strings.TrimPrefix(key, questionPrefix))
	}
}

// meet brings an entry in step with the store. The caller holds the lock.
func (q *Queue) meet(code string) {
	if a := q.adding[code]; a != nil {
		a.told = true
		return
	}
	e := q.entries[code]
	stored, there := q.board.mirror.Entry(questionPrefix + code)
	if there && e != nil && stored.Rev <= e.rev {
		return
	}
	var r record
	open := there && json.Unmarshal(stored.Value, &r) == nil && r.Shown.Code == code && r.ID != "" && r.Nonce != "" && !q.longOver(&r)
	switch {
	case !open && e == nil:
		return // a claim; or of another version, and its own replica shows it
	case !open:
		// Another replica took it, or its time is over.
		q.forgetEntry(code)
		e.take()
		q.noteEnd(e, CodeWithdrawn, "it was taken by its call, or its time is over")
		q.change()
		return
	case e == nil:
		e = &Entry{Call: r.Call.Call(), Changed: r.Changed, id: r.ID, nonce: r.Nonce, decided: make(chan struct{}), taken: make(chan struct{})}
		e.shown = r.Shown
		e.size = e.measure()
		q.entries[code] = e
		q.all = q.all.plus(e.size)
	}
	q.follows(e, &r, stored.Rev)
}

// longOver reports whether the store must have removed a question long ago, so that
// somebody has put it back. Its claim may be forgotten by then.
func (q *Queue) longOver(r *record) bool { return q.now().After(r.Shown.Expires.Add(maxSkew)) }

// follows makes an entry what a record says. The caller holds the lock.
func (q *Queue) follows(e *Entry, r *record, rev uint64) {
	if r.Nonce != e.nonce {
		e.take() // another call has it now
	}
	e.replica = r.Replica
	e.rev, e.nonce, e.asked, e.holder, e.shown = rev, r.Nonce, r.Asked, r.Holder, r.Shown
	if r.Ruling != nil && (e.ruling == nil || !e.ruling.At.Equal(r.Ruling.At) || e.ruling.Decision != r.Ruling.Decision) {
		if e.ruling == nil {
			close(e.decided)
		}
		e.ruling = &Ruling{Verdict: r.Ruling.Verdict, At: r.Ruling.At, Entry: e, Shown: r.Shown, Before: e.ruling, Rev: rev}
	}
	q.change()
}

// forgetEntry drops an entry without a word. The caller holds the lock.
func (q *Queue) forgetEntry(code string) {
	if e := q.entries[code]; e != nil {
		q.all = q.all.minus(e.size)
	}
	delete(q.entries, code)
}

// recordOf returns the record of an entry as it is. The caller holds the lock.
func (q *Queue) recordOf(e *Entry) *record {
	r := &record{
		ID: e.id, Nonce: e.nonce, Asked: e.asked, Holder: e.holder, Shown: e.shown, Call: e.Call.Keep(), Changed: e.Changed, Replica: e.replica,
	}
	if e.ruling != nil {
		r.Ruling = &ruled{e.ruling.Verdict, e.ruling.At}
	}
	return r
}

func (q *Queue) write(ctx context.Context, r *record, rev uint64, lasts time.Duration) (uint64, error) {
	value, err := strictjson.Encode(r)
	if err != nil {
		return 0, fmt.Errorf("writing a question: %w", err)
	}
	if len(value) > maxRecord {
		return 0, ErrTooLong
	}
	now, err := q.board.mirror.Put(ctx, questionPrefix+r.Shown.Code, value, rev, max(lasts, time.Second))
	return now, written(err)
}

// written marks the error of a write that was perhaps carried out.
func written(err error) error {
	if err == nil || errors.Is(err, store.ErrConflict) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// A step is what a change makes of a question: the record as it will be, and for how long
// it lasts; or, at its end, the claim that takes its place, or nothing.
type step struct {
	now   *record
	lasts time.Duration
	claim []byte
}

// errNone is returned by a plan that changes nothing.
var errNone = errors.New("nothing to change")

// alter changes a question in the store, and then here. find and plan are called under
// the lock, and again if another replica changed the question meanwhile. It returns the
// entry as it is then, or nil if find found none. done is called under the lock, after the
// change.
func (q *Queue) alter(find func() *Entry, plan func(e *Entry) (step, error), done func(e *Entry)) (*Entry, error) {
	ctx, cancel := context.WithTimeout(context.Background(), shareTime)
	defer cancel()
	looked := false
	for {
		unlock := q.lock()
		e := find()
		if e == nil {
			unlock()
			if looked {
				return nil, nil
			}
			// Another replica may have asked it just now.
			if err := q.sync(ctx); err != nil {
				return nil, err
			}
			looked = true
			continue
		}
		next, err := plan(e)
		code, rev := e.shown.Code, e.rev
		unlock()
		switch {
		case errors.Is(err, errNone):
			return e, nil
		case err != nil:
			return e, err
		case next.now != nil:
			rev, err = q.write(ctx, next.now, rev, next.lasts)
		case next.claim != nil:
			rev, err = q.board.mirror.Put(ctx, questionPrefix+code, next.claim, rev, 0)
			err = written(err)
		default:
			err, rev = written(q.board.mirror.Delete(ctx, questionPrefix+code, rev)), 0
		}
		switch {
		case errors.Is(err, store.ErrConflict):
			if err := q.resolve(ctx, e, code); err != nil {
				return nil, err
			}
			looked = true
			continue
		case err != nil:
			return nil, err
		}
		unlock = q.lock()
		if next.now == nil {
			q.forgetEntry(code)
			e.rev = rev
		} else if e.rev < rev {
			q.follows(e, next.now, rev)
		}
		done(e)
		q.change()
		unlock()
		return e, nil
	}
}

// resolve finds out what became of a question that another replica changed.
func (q *Queue) resolve(ctx context.Context, e *Entry, code string) error {
	was := e.revision(q)
	if err := q.sync(ctx); err != nil {
		return err
	}
	if e.revision(q) != was {
		return nil
	}
	// Its time may be over, and the mirror does not know that yet.
	switch _, err := q.board.mirror.Get(ctx, questionPrefix+code); {
	case errors.Is(err, store.ErrNotFound):
		defer q.lock()()
		if q.entries[code] == e {
			q.forgetEntry(code)
			q.noteEnd(e, CodeExpired, "nobody answered in time")
			q.change()
		}
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// revision returns the revision of the store that an entry is in step with; 0 if it has
// ended.
func (e *Entry) revision(q *Queue) uint64 {
	defer q.lock()()
	if q.entries[e.shown.Code] != e {
		return 0
	}
	return e.rev
}

// sync takes everything that any replica changed before the call.
func (q *Queue) sync(ctx context.Context) error {
	if err := q.board.mirror.Sync(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// remove removes the question of an entry that was dropped here from the store. If that
// fails, the question ends when its time is over. The caller holds the lock.
func (q *Queue) remove(e *Entry) {
	code, rev := e.shown.Code, e.rev
	q.board.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shareTime)
		defer cancel()
		_ = q.board.mirror.Delete(ctx, questionPrefix+code, rev)
	})
}
