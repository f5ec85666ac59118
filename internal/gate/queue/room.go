package queue

import (
	"errors"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// Bounds of a queue.
const (
	maxPending = 2048     // questions at one time
	maxText    = 4 << 20  // bytes of their texts: what shows them all has to be sent and read
	maxKept    = 32 << 20 // bytes of all that they keep, which is more than is shown
	maxPast    = 200      // decisions remembered, and as many codes that came to an end
)

// A Size is how much of a queue is used, or may be.
type Size struct {
	Questions int
	Text      int // bytes that are shown
	Kept      int // bytes, those of Text among them
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

// part is what one of so many people has of s.
func (s Size) part(people int) Size {
	return Size{max(1, s.Questions/people), s.Text / people, s.Kept / people}
}

// measure is what a question takes up, from the moment it is asked.
func (e *Entry) measure() Size {
	req := e.Call.Request
	req.Pack.Files = nil // shared by all requests about the pack
	text := e.shown.Card.Size()
	return Size{1, text, text + call.Size(req)}
}

// person is whose room the question takes up.
func (e *Entry) person() string { return e.Call.Caller.Person }

// Why there is no room for a question.
var (
	ErrFull    = errors.New("too many calls wait for an answer")
	ErrTooLong = errors.New("the call, or the question about it, is longer than the room that one of so many people has")
)

// put gives a question a code and a place. When its person has no room left, older
// questions of the same person make room; with an error it has no place. The caller
// holds the lock.
func (q *Queue) put(e *Entry) error {
	e.size = e.measure()
	if !e.size.within(q.share) {
		return ErrTooLong
	}
	for !q.used(e.person()).plus(e.size).within(q.share) {
		if !q.makeRoom(e.person()) {
			return ErrFull
		}
	}
	// More people than were announced: nobody loses anything to them.
	if !q.all.plus(e.size).within(q.most) {
		return ErrFull
	}
	for e.shown.Code == "" || q.entries[e.shown.Code] != nil {
		e.shown.Code = newCode()
	}
	q.entries[e.shown.Code] = e
	q.all = q.all.plus(e.size)
	return nil
}

// used is how much of the queue a person uses. The caller holds the lock.
func (q *Queue) used(person string) (s Size) {
	for _, e := range q.entries {
		if e.person() == person {
			s = s.plus(e.size)
		}
	}
	return s
}

// makeRoom drops the oldest question of a person that no call of this process
// waits for, of the chat of theirs that has the most of them. Those that somebody
// allowed go only when there are no others, and a denial stays for its time: the
// call that is made again must not be asked about. The caller holds the lock.
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
