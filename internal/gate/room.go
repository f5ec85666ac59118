package gate

import (
	"errors"
	"slices"
)

// Bounds of a queue.
const (
	maxPending = 2048    // questions at one time
	maxText    = 4 << 20 // bytes of their texts: what shows them all has to be sent and read
	maxPast    = 200     // decisions remembered, and as many codes that came to an end
)

// An amount is how much of a queue is used, or may be.
type amount struct {
	entries int
	text    int // bytes
}

// fits reports whether one more question, of so many bytes, keeps a within most.
func (a amount) fits(text int, most amount) bool {
	return a.entries < most.entries && a.text+text <= most.text
}

// person is whose room the question takes up.
func (e *entry) person() string { return e.req.Caller.Person }

// Why there is no room for a question.
var (
	errFull  = errors.New("too many calls wait for an answer")
	errShare = errors.New("the question about it is longer than the room that one of so many people has")
)

// add puts a question into the queue. When its person has no room left, older
// questions of the same person make room; with an error it was not put there.
func (q *queue) add(e *entry) error {
	defer q.lock()()
	size := len(e.shown.Text)
	if size > q.share.text {
		return errShare
	}
	for !q.used(e.person()).fits(size, q.share) {
		if !q.makeRoom(e.person()) {
			return errFull
		}
	}
	// More people than were announced: nobody loses anything to them.
	if now := (amount{len(q.entries), q.text}); !now.fits(size, q.most) {
		return errFull
	}
	for e.shown.Code == "" || q.entries[e.shown.Code] != nil {
		e.shown.Code = newCode()
	}
	q.entries[e.shown.Code] = e
	q.text += size
	q.change()
	return nil
}

// used is how much of the queue a person uses. The caller holds the lock.
func (q *queue) used(person string) (a amount) {
	for _, e := range q.entries {
		if e.person() == person {
			a.entries++
			a.text += len(e.shown.Text)
		}
	}
	return a
}

// makeRoom drops the oldest question of a person that no call of this process
// waits for, of the chat of theirs that has the most of them. Those that somebody
// allowed go only when there are no others, and a denial stays for its time: the
// call that is made again must not be asked about. The caller holds the lock.
func (q *queue) makeRoom(person string) bool {
	open := make(map[string][]*entry) // :: chat → its questions
	var allowed []*entry
	for _, e := range q.entries {
		switch {
		case e.person() != person, e.holder == heldByCall:
		case e.ruling == nil:
			open[e.chat] = append(open[e.chat], e)
		case e.ruling.Decision != Deny:
			allowed = append(allowed, e)
		}
	}
	var greedy []*entry
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
	oldest := slices.MinFunc(greedy, func(a, b *entry) int { return a.shown.Asked.Compare(b.shown.Asked) })
	q.end(oldest.shown.Code, CodeWithdrawn, "too many questions were open")
	return true
}
