// Package queue holds the questions about calls that wait for a person: the code by
// which people refer to each, the state that carries it through a client, how long it
// can be answered, what was answered, and how many questions there may be.
//
// It does not decide whether a call happens, and it writes nothing to the log:
// package gate does. It does not put calls into words; see package prompt.
//
// The questions are in the memory of this process, or in a store that replicas share.
// There, each answer, and each use of one, is a change of the question's revision, which
// one replica makes.
package queue

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

// An Entry is a question that is open, or that was answered and whose call has not
// been made again. Its exported fields are set before [Queue.Add] and never change.
type Entry struct {
	Call    *call.Call
	Box     sandbox.Report // how the call's program is confined, as the question says
	Changed []string       // what has changed, as the question says

	id      string        // random; other than the code and the nonce, it is never used again
	size    Size          // how much of the queue's room it uses; never changes
	decided chan struct{} // closed with the first ruling

	// Guarded by the queue's lock.
	shown Pending
	nonce string        // of the state that carries the question; valid as long as the entry is in the queue
	asked time.Time     // when that state was made
	taken chan struct{} // closed when another call takes the question
	// Where replicas share the questions: the revision in the store, and the replica
	// whose call holds it.
	rev     uint64
	replica string
	holder  Holder
	ruling  *Ruling // what a person decided on the page or in the terminal; nil until then
}

// A Holder says who has the question.
type Holder int

const (
	HeldByNobody Holder = iota // its call has returned without an answer
	HeldByCall                 // a call in this process waits for the answer
	HeldByForm                 // the same, and the client also shows the question
	HeldByClient               // the client shows it, and will return the answer with another call
)

// ID returns what identifies the question for good.
func (e *Entry) ID() string { return e.id }

// waits reports whether a call of this process waits for the answer.
func (h Holder) waits() bool { return h == HeldByCall || h == HeldByForm }

// A Ticket is a question in the form in which a call takes it to a person.
type Ticket struct {
	Shown   Pending         // the question with its code
	State   string          // comes back with the answer, unchanged; see [Queue.Redeem]
	Nonce   string          // of the state: identifies the question to the queue
	Decided <-chan struct{} // closed when a person answered on the page or in the terminal
	Taken   <-chan struct{} // closed when the same call, made again, takes the question
}

// Options configure a queue.
type Options struct {
	Now    func() time.Time // nil is time.Now
	People int              // how many people share the room equally; 0 is one
	Most   Size             // of all questions together; fields that are 0 have defaults
	Limits quota.Limits     // of open questions
	// Shared is the store in which replicas share the questions, sealed; nil: this
	// server is alone. Keys then make states, the first one, and check them, all.
	Shared *store.Mirror
	Keys   [][]byte
}

// A Queue holds the questions of a gate, which the page and the terminal show. Its
// room is divided equally among people, and shares cannot be lent: if one person's
// share is full, the others' are not affected. It is safe for concurrent use. Make
// one with [New].
type Queue struct {
	now    func() time.Time
	states *states
	most   Size // of all questions together
	share  Size // of one person
	limits quota.Limits
	board  *board // nil: this server is alone

	mu      sync.Mutex
	entries map[string]*Entry // :: code → question
	adding  map[string]*added // :: code → question that is about to be shared, and counts as open
	all     Size              // what the entries take up
	ended   []CodeError       // codes of questions that have ended, newest last
	past    []Past            // newest last
	gone    map[string]bool   // :: chat → its client's connection has ended, and its calls have not
	changed chan struct{}     // closed at the next change
}

// New returns an empty queue. An error means that the system provides no randomness.
func New(o Options) (*Queue, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	people := max(1, o.People)
	st, err := newStates(o.Now, people)
	if err != nil {
		return nil, err
	}
	most := Size{
		Questions: cmp.Or(o.Most.Questions, maxPending), Text: cmp.Or(o.Most.Text, maxText), Kept: cmp.Or(o.Most.Kept, maxKept),
	}
	q := &Queue{
		now: o.Now, states: st, most: most, share: most.part(people), limits: o.Limits,
		entries: make(map[string]*Entry), adding: make(map[string]*added), gone: make(map[string]bool), changed: make(chan struct{}),
	}
	if o.Shared != nil {
		if len(o.Keys) == 0 {
			return nil, errors.New("questions cannot be shared without keys")
		}
		st.keys = o.Keys
		q.board = newBoard(o.Shared)
		q.follow()
	}
	return q, nil
}

// lock locks the queue, and drops what has expired. What replicas share expires by the
// clock of the store, since their own ones may differ.
func (q *Queue) lock() (unlock func()) {
	q.mu.Lock()
	if q.board != nil {
		q.catchUp()
		return q.mu.Unlock
	}
	now := q.now()
	for code, e := range q.entries {
		if now.After(e.shown.Expires) {
			detail := "nobody answered until " + Clock(e.shown.Expires)
			if e.ruling != nil {
				detail = "it was answered, and was not made again until " + Clock(e.shown.Expires)
			}
			q.end(code, CodeExpired, detail)
		}
	}
	return q.mu.Unlock
}

// end drops a question and its state, and remembers its code. The caller holds the
// lock.
func (q *Queue) end(code string, problem CodeProblem, detail string) {
	if e := q.entries[code]; e != nil {
		q.states.spend(e.nonce)
		if q.board != nil {
			q.remove(e)
		}
	}
	q.forgetEntry(code)
	q.ended = append(q.ended, CodeError{Code: code, Problem: problem, Detail: detail})
	q.ended = q.ended[max(0, len(q.ended)-maxPast):]
	q.change()
}

// change wakes up everybody who shows the queue. The caller holds the lock.
func (q *Queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// mint makes a state for a question about a call. It is valid until expires.
func (q *Queue) mint(c *call.Call, expires time.Time) (state, nonce string, err error) {
	if q.board != nil {
		state, nonce, err = q.states.sign(c.Digest(), expires) // the store knows that it is open
	} else {
		state, nonce, err = q.states.mint(c.Caller.Person, c.Caller.Chat, c.Digest(), expires)
	}
	if err != nil {
		return "", "", fmt.Errorf("the question could not be made: %w", err)
	}
	return state, nonce, nil
}

// ticket returns a question in the form in which a call takes it. The caller holds
// the lock.
func (e *Entry) ticket(state string) *Ticket {
	return &Ticket{Shown: e.shown, State: state, Nonce: e.nonce, Decided: e.decided, Taken: e.taken}
}

// Add puts a question into the queue, which then owns it. shown is what people see of
// it; Add sets its code. If its person has no room left, older questions of the same
// person are dropped. If there is an error, which may be [ErrFull], [ErrTooLong] or a
// [*quota.Exceeded], nothing was asked.
func (q *Queue) Add(e *Entry, shown Pending, holder Holder) (*Ticket, error) {
	state, nonce, err := q.mint(e.Call, shown.Expires)
	if err != nil {
		return nil, err
	}
	e.id = rand.Text()
	e.shown, e.holder, e.nonce, e.asked, e.decided, e.taken = shown, holder, nonce, q.now(), make(chan struct{}), make(chan struct{})
	e.carry()
	if q.board != nil {
		return q.addShared(e, state)
	}
	defer q.lock()()
	if other := q.justAdded(e); other != nil {
		q.states.spend(other.nonce)
		other.take()
		other.nonce, other.asked, other.shown.Waits, other.shown.Expires = nonce, q.now(), shown.Waits, shown.Expires
		q.change()
		return other.ticket(state), nil
	}
	if err := q.put(e); err != nil {
		q.states.spend(nonce)
		return nil, err
	}
	e.mark(q.gone[e.Call.Caller.Chat])
	q.change()
	return e.ticket(state), nil
}

// justAdded returns an open question about the call of e that another call waits for.
// It returns nil if a client shows either of the two. The caller holds the lock.
func (q *Queue) justAdded(e *Entry) *Entry {
	if e.holder != HeldByCall {
		return nil
	}
	for _, other := range q.entries {
		if other.holder == HeldByCall && other.ruling == nil && other.Call.Caller.Chat == e.Call.Caller.Chat && other.Call.Digest() == e.Call.Digest() {
			return other
		}
	}
	return nil
}

// ErrEnded says that a question has ended meanwhile.
var ErrEnded = errors.New("the question is no longer open")

// Renew asks a question again: one that an earlier call left behind and that
// [Queue.Again] found, or one that its client turned out not to show. It gets a new
// state, and the wait starts anew.
func (q *Queue) Renew(e *Entry, holder Holder, waits, expires time.Time, note string) (*Ticket, error) {
	state, nonce, err := q.mint(e.Call, expires)
	if err != nil {
		return nil, err
	}
	if q.board != nil {
		return q.renewShared(e, state, Entry{holder: holder, nonce: nonce}, waits, expires, note)
	}
	defer q.lock()()
	if q.entries[e.shown.Code] != e {
		q.states.spend(nonce)
		return nil, ErrEnded
	}
	q.states.spend(e.nonce)
	e.take()
	e.holder, e.nonce, e.asked, e.shown.Waits, e.shown.Expires, e.shown.Note = holder, nonce, q.now(), waits, expires, note
	e.carry()
	e.mark(q.gone[e.Call.Caller.Chat])
	q.change()
	return e.ticket(state), nil
}

// Redeem spends the state that came with an answer to a question about the call.
// nonce identifies the question, even if only the call differs. It is empty if the
// state does not belong to the caller. An authentic state cannot be used again,
// whatever Redeem returns, unless it belongs to somebody else, who can then still
// answer.
func (q *Queue) Redeem(state string, c *call.Call) (nonce string, err error) {
	if q.board != nil {
		return q.redeemShared(state, c)
	}
	nonce, err = q.states.redeem(state, c.Caller.Person, c.Caller.Chat, c.Digest())
	if err == nil && !q.has(nonce) {
		err = ErrSpent
	}
	return nonce, err
}

// Again finds the question about exactly this call that an earlier call of the chat
// left behind, and what was decided about it. A denial takes precedence, then any
// other answer, and otherwise the question that has been open longest. Finding an
// answer spends it. The caller takes over an open question, even if the earlier call
// still waits: its client may have given it up without saying so. A question that a
// client shows stays with the call for which it is shown. claim is nil if the call is no
// run. An error is [ErrUnavailable], or claim's.
func (q *Queue) Again(asked *call.Call, now Holder, waits time.Time, claim Claim) (e *Entry, answer *Ruling, err error) {
	if q.board != nil {
		return q.againShared(asked, claim)
	}
	defer q.lock()()
	e = q.leftBehind(asked)
	switch {
	case e == nil:
		return nil, nil, nil
	case e.ruling != nil:
		q.end(e.shown.Code, CodeAnswered, answeredAndMade)
		return e, e.ruling, nil
	}
	e.holder, e.shown.Waits = now, waits
	return e, nil, nil
}

// answeredAndMade is how a question ends whose answer was waiting for its call.
const answeredAndMade = "it was answered, and the call was made"

// leftBehind returns the question that [Queue.Again] finds. The caller holds the lock.
func (q *Queue) leftBehind(asked *call.Call) (e *Entry) {
	rank := func(e *Entry) int {
		switch {
		case e.ruling != nil && e.ruling.Decision == Deny:
			return 0
		case e.ruling != nil:
			return 1
		default:
			return 2
		}
	}
	for _, other := range q.entries {
		switch {
		case other.Call.Caller.Chat != asked.Caller.Chat, other.Call.Digest() != asked.Digest(), other.holder == HeldByForm:
		case other.ruling != nil && other.holder == HeldByCall && q.isHere(other): // the call that waits applies it
		case other.ruling == nil && other.holder == HeldByClient: // it belongs to another call
		case e == nil, rank(other) < rank(e), rank(other) == rank(e) && other.shown.Asked.Before(e.shown.Asked):
			e = other
		}
	}
	return e
}

// isHere reports whether the call that holds a question is one of this process.
func (q *Queue) isHere(e *Entry) bool { return q.board == nil || e.replica == q.board.replica }

// take tells the call that waits for the question that another call has taken it. It
// is called together with making the new state, since several calls may have found
// the question before.
func (e *Entry) take() {
	close(e.taken)
	e.taken = make(chan struct{})
}

// noteCarried is the note on a question that the client shows too.
const noteCarried = "The client shows this question, too."

// noteStillShown is the note on such a question once it was allowed elsewhere.
const noteStillShown = "Allowed. The client still shows its form, and goes on when it is answered there, too. A denial there takes this back."

// carry sets the note on a question that its client shows and returns, if it is one.
func (e *Entry) carry() {
	if e.shown.Carried = e.holder == HeldByClient; e.shown.Carried {
		e.shown.Note = noteCarried
	}
}

// mark marks a question whose client is gone, if a call waits for it.
func (e *Entry) mark(gone bool) {
	if gone && e.holder.waits() {
		e.shown.Gone, e.shown.Note = true, noteGone
	}
}

// Leave marks a question as one that nobody holds any more, unless it was answered
// just now. It returns the question as it is then shown, and that answer. An error is
// [ErrUnavailable].
func (q *Queue) Leave(nonce, note string) (e *Entry, shown Pending, answer *Ruling, err error) {
	if q.board != nil {
		return q.leaveShared(nonce, note)
	}
	defer q.lock()()
	e = q.find(nonce)
	if e == nil {
		return nil, Pending{}, nil, nil
	}
	if e.ruling == nil {
		e.holder, e.shown.Waits, e.shown.Note = HeldByNobody, time.Time{}, note
		e.shown.Gone, e.shown.Carried = false, false // an answer starts nothing
		q.change()
	}
	return e, e.shown, e.ruling, nil
}

// find returns the question for a state's nonce. The caller holds the lock.
func (q *Queue) find(nonce string) *Entry {
	for _, e := range q.entries {
		if nonce != "" && e.nonce == nonce {
			return e
		}
	}
	return nil
}

// has reports whether there is a question for a state's nonce.
func (q *Queue) has(nonce string) bool {
	defer q.lock()()
	return q.find(nonce) != nil
}

// Finish removes the question with this nonce from the queue, and returns it with the
// ruling that was made on it meanwhile. Each is nil if there is none. An error is
// [ErrUnavailable].
func (q *Queue) Finish(nonce string, problem CodeProblem, detail string) (*Entry, *Ruling, error) {
	if q.board != nil {
		return q.finishShared(nonce, problem, detail, nil)
	}
	defer q.lock()()
	e := q.find(nonce)
	if e == nil {
		return nil, nil, nil
	}
	q.end(e.shown.Code, problem, detail)
	return e, e.ruling, nil
}

// Asked returns the question with this nonce, and when it was asked with that state;
// nil if there is none.
func (q *Queue) Asked(nonce string) (*Entry, time.Time) {
	defer q.lock()()
	if e := q.find(nonce); e != nil {
		return e, e.asked
	}
	return nil, time.Time{}
}

// RulingOn returns what was decided about a question over another channel.
func (q *Queue) RulingOn(nonce string) *Ruling {
	defer q.lock()()
	if e := q.find(nonce); e != nil {
		return e.ruling
	}
	return nil
}

// noteGone is the note on a question whose client is gone.
const noteGone = "The client is gone, so nobody may take the result, and its server ends within seconds."

// Abandon marks the questions of a chat whose client is gone, including questions
// still to come, if a call waits for the answer. The others end.
func (q *Queue) Abandon(chat string) {
	defer q.lock()()
	q.gone[chat] = true
	for code, e := range q.entries {
		switch {
		case e.Call.Caller.Chat != chat, !q.isHere(e):
		case !e.holder.waits():
			q.end(code, CodeWithdrawn, "its client closed")
		default:
			e.shown.Gone, e.shown.Note = true, noteGone
			q.change()
		}
	}
}

// Forget drops the questions and states of a chat that has ended.
func (q *Queue) Forget(chat string) {
	q.states.forget(chat)
	defer q.lock()()
	delete(q.gone, chat)
	for code, e := range q.entries {
		if e.Call.Caller.Chat == chat {
			q.end(code, CodeWithdrawn, "its client closed")
		}
	}
}

// Part forgets a chat that has ended here and may go on at another replica. Its
// questions stay open.
func (q *Queue) Part(chat string) {
	defer q.lock()()
	delete(q.gone, chat)
}

// CallOf returns the call of a question, by its code as a person typed it; nil if no
// question has that code.
func (q *Queue) CallOf(typed string) *call.Call {
	code := canonicalCode(typed)
	if q.board != nil {
		q.lookFor(code)
	}
	defer q.lock()()
	if e := q.entries[code]; e != nil {
		return e.Call
	}
	return nil
}

// Drop removes a question from the queue.
func (q *Queue) Drop(e *Entry, detail string) {
	defer q.lock()()
	if q.entries[e.shown.Code] == e {
		q.end(e.shown.Code, CodeWithdrawn, detail)
	}
}

// Withdraw removes a question that nobody has answered from the queue. It reports
// false if somebody has.
func (q *Queue) Withdraw(e *Entry, detail string) bool {
	if q.board != nil {
		return q.withdrawShared(e, detail)
	}
	defer q.lock()()
	if e.ruling != nil {
		return false
	}
	if q.entries[e.shown.Code] == e {
		q.end(e.shown.Code, CodeWithdrawn, detail)
	}
	return true
}
