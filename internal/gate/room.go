package gate

import (
	"errors"
	"reflect"
	"slices"
)

// Bounds of a queue.
const (
	maxPending = 2048     // questions at one time
	maxText    = 4 << 20  // bytes of their texts: what shows them all has to be sent and read
	maxKept    = 32 << 20 // bytes of all that they keep, which is more than is shown
	maxPast    = 200      // decisions remembered, and as many codes that came to an end
)

// An amount is how much of a queue is used, or may be.
type amount struct {
	entries int
	text    int // bytes
	kept    int // bytes, text among them
}

func (a amount) plus(b amount) amount {
	return amount{a.entries + b.entries, a.text + b.text, a.kept + b.kept}
}

func (a amount) minus(b amount) amount {
	return amount{a.entries - b.entries, a.text - b.text, a.kept - b.kept}
}

// within reports whether a is no more than most.
func (a amount) within(most amount) bool {
	return a.entries <= most.entries && a.text <= most.text && a.kept <= most.kept
}

// part is what one of so many people has of a.
func (a amount) part(people int) amount {
	return amount{max(1, a.entries/people), a.text / people, a.kept / people}
}

// measure is what a question takes up, from the moment it is asked.
func (e *entry) measure() amount {
	req := e.call.Request
	req.Pack.Files = nil // shared by all requests about the pack
	text := len(e.shown.Text)
	return amount{1, text, text + bytesIn(reflect.ValueOf(req))}
}

// bytesIn is how many bytes the texts and the lists in a request take up: of all
// its fields, also of one that is added. What an interface holds is not counted;
// there is nothing of a client's in any.
func bytesIn(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		n = v.Len()
	case reflect.Struct:
		for _, field := range v.Fields() {
			n += bytesIn(field)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			n = bytesIn(v.Elem())
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		for i := range v.Len() {
			n += bytesIn(v.Index(i))
		}
	}
	return n
}

// person is whose room the question takes up.
func (e *entry) person() string { return e.call.Caller.Person }

// Why there is no room for a question.
var (
	errFull  = errors.New("too many calls wait for an answer")
	errShare = errors.New("the call, or the question about it, is longer than the room that one of so many people has")
)

// add puts a question into the queue. When its person has no room left, older
// questions of the same person make room; with an error it was not put there.
func (q *queue) add(e *entry) error {
	defer q.lock()()
	e.size = e.measure()
	if !e.size.within(q.share) {
		return errShare
	}
	for !q.used(e.person()).plus(e.size).within(q.share) {
		if !q.makeRoom(e.person()) {
			return errFull
		}
	}
	// More people than were announced: nobody loses anything to them.
	if !q.all.plus(e.size).within(q.most) {
		return errFull
	}
	for e.shown.Code == "" || q.entries[e.shown.Code] != nil {
		e.shown.Code = newCode()
	}
	e.mark(q.gone[e.call.Caller.Chat])
	q.entries[e.shown.Code] = e
	q.all = q.all.plus(e.size)
	q.change()
	return nil
}

// used is how much of the queue a person uses. The caller holds the lock.
func (q *queue) used(person string) (a amount) {
	for _, e := range q.entries {
		if e.person() == person {
			a = a.plus(e.size)
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
			open[e.call.Caller.Chat] = append(open[e.call.Caller.Chat], e)
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
