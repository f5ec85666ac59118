package queue

import (
	"errors"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/quota"
)

// Bounds of a queue.
const (
	maxPending = 2048     // questions at one time
	maxText    = 4 << 20  // bytes of their texts, since a page that shows them sends and reads them all
	maxKept    = 32 << 20 // bytes of everything that they keep, which is more than is shown
	maxPast    = 200      // remembered decisions, and as many codes of questions that have ended
)

// A Size is how much of a queue is used, or may be used.
type Size struct {
	Questions int
	Text      int // bytes that are shown
	Kept      int // bytes, including those of Text
}

func (s Size) plus(b Size) Size {
	return Size{s.Questions + b.Questions, s.Text + b.Text, s.Kept + b.Kept}
}

func (s Size) minus(b Size) Size {
	return Size{s.Questions - b.Questions, s.Text - b.Text, s.Kept - b.Kept}
}

// within reports whether s is no more than most.
func (s Size) within(most Size) bool {
	return s.Questions <= most.Questions && s.Text <= most.Text && s.Kept <= most.Kept
}

// part returns the share of s for one of this many people.
func (s Size) part(people int) Size {
	return Size{max(1, s.Questions/people), s.Text / people, s.Kept / people}
}

// measure returns how much room a question takes up.
func (e *Entry) measure() Size {
	req := e.Call.Request
	req.Pack.Files = nil // shared by all requests about the pack
	text := e.shown.Card.Size()
	return Size{1, text, text + call.Size(req)}
}

// person returns the person whose room the question takes up.
func (e *Entry) person() string { return e.Call.Caller.Person }

// Errors for a question that the queue has no room for.
var (
	ErrFull    = errors.New("too many calls wait for an answer")
	ErrTooLong = errors.New("the call, or the question about it, is longer than the room that one of so many people has")
)

// put gives a question a code and a place. If its person has no room left, older
// questions of the same person are dropped. If there is an error, the question has no
// place. The caller holds the lock.
func (q *Queue) put(e *Entry) error {
	if err := q.place(e); err != nil {
		return err
	}
	q.entries[e.shown.Code] = e
	q.all = q.all.plus(e.size)
	return nil
}

// place is put without taking the place. The caller holds the lock.
func (q *Queue) place(e *Entry) error {
	e.size = e.measure()
	if !e.size.within(q.share) {
		return ErrTooLong
	}
	if over := q.over(e); over != nil {
		return over // the older ones stay
	}
	for !q.used(e.person()).plus(e.size).within(q.share) {
		if !q.makeRoom(e.person()) {
			return ErrFull
		}
	}
	// There are more people than expected: nobody loses their questions to them.
	if !q.all.plus(e.size).within(q.most) {
		return ErrFull
	}
	for e.shown.Code == "" || q.entries[e.shown.Code] != nil || q.adding[e.shown.Code] != nil {
		e.shown.Code = newCode()
	}
	return nil
}

// over returns who would have more open questions with e than they may, or nil. The
// questions of all replicas count. The caller holds the lock.
func (q *Queue) over(e *Entry) *quota.Exceeded {
	if !q.limits.Any() {
		return nil
	}
	open := quota.New(q.limits)
	for _, other := range q.adding {
		open.Add(other.use())
	}
	for _, other := range q.entries {
		if other.ruling == nil {
			open.Add(other.use())
		}
	}
	return open.Over(e.use())
}

// use returns what the question counts as while it is open.
func (e *Entry) use() quota.Use {
	return quota.Use{Person: e.person(), Groups: e.Call.Caller.Groups, Amount: 1}
}

// used returns how much of the queue a person uses. The caller holds the lock.
func (q *Queue) used(person string) (s Size) {
	for _, e := range q.entries {
		if e.person() == person {
			s = s.plus(e.size)
		}
	}
	return s
}

// makeRoom drops the oldest question of a person that no call of this process waits
// for, from the chat of theirs that has most such questions. It drops questions that
// were allowed only if there are no others. It keeps denials until they expire: a
// call that is made again must not be asked about again. The caller holds the lock.
func (q *Queue) makeRoom(person string) bool {
	open := make(map[string][]*Entry) // :: chat → its questions
	var allowed []*Entry
	for _, e := range q.entries {
		switch {
		case e.person() != person, e.holder.waits():
		case e.ruling == nil:
			open[e.Call.Caller.Chat] = append(open[e.Call.Caller.Chat], e)
		case e.ruling.Decision != Deny:
			allowed = append(allowed, e)
		}
	}
	var greedy []*Entry
	for _, all := range open {
		if len(all) > len(greedy) {
			greedy = all
		}
	}
	if len(greedy) == 0 {
		greedy = allowed
	}
	if len(greedy) == 0 {
		return false
	}
	oldest := slices.MinFunc(greedy, func(a, b *Entry) int { return a.shown.Asked.Compare(b.shown.Asked) })
	q.end(oldest.shown.Code, CodeWithdrawn, "too many questions were open")
	return true
}
