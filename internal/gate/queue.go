package gate

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// An entry is a question that is open, or that was answered and whose call has
// not been made again. Its fields are guarded by the queue's lock, but for
// those that never change: call, box, changed, size and decided.
type entry struct {
	shown   Pending
	call    *call.Call
	box     sandbox.Report
	changed []string // what the question says has changed
	nonce   string   // of the state that carries the question; it works as long as the entry is there
	size    amount   // what it takes up of the queue's room
	holder  holder
	ruling  *ruling       // what a person decided on the page or in the terminal; nil until then
	decided chan struct{} // closed with the first ruling
}

// A holder says who has a question.
type holder int

const (
	heldByNobody holder = iota // its call has returned without an answer
	heldByCall                 // a call of this process waits for the answer
	heldByClient               // the client shows it, and brings the answer with another call
)

// A ruling is a verdict on an entry. When no call of this process waits for it, it
// is recorded and kept at once, by whoever decided.
type ruling struct {
	Verdict
	at       time.Time
	recorded chan struct{} // closed when that is done; nil when a call does it
	err      error         // of recording it; read it when recorded is closed
	kept     string        // digest of the grant that it made, to be read likewise
}

// settled waits until a ruling is in the log, and says whether it is.
func (r *ruling) settled() error {
	if r.recorded == nil {
		return nil
	}
	<-r.recorded
	return r.err
}

// A queue holds the questions of a gate: what the page and the terminal show.
// It decides nothing. Its room is divided among people in equal parts, which
// nobody can lend or take: what is full is so for one.
type queue struct {
	now   func() time.Time
	spend func(nonce string) // voids a state, when its question ends or gets another
	most  amount             // of all together
	share amount             // of one person

	mu      sync.Mutex
	entries map[string]*entry // :: code → question
	all     amount            // what entries take up
	ended   []CodeError       // codes that came to an end, newest last
	past    []Past            // newest last
	gone    map[string]bool   // :: chat → its client's connection has ended, and its calls have not
	changed chan struct{}     // closed at the next change
}

// newQueue makes a queue for so many people.
func newQueue(now func() time.Time, spend func(nonce string), people int) *queue {
	most := amount{maxPending, maxText, maxKept}
	return &queue{
		now: now, spend: spend, most: most, share: most.part(people),
		entries: make(map[string]*entry), gone: make(map[string]bool), changed: make(chan struct{}),
	}
}

// lock locks the queue, and drops what is too old.
func (q *queue) lock() (unlock func()) {
	q.mu.Lock()
	now := q.now()
	for code, e := range q.entries {
		if now.After(e.shown.Expires) {
			detail := "nobody answered until " + clock(e.shown.Expires)
			if e.ruling != nil {
				detail = "it was answered, and was not made again until " + clock(e.shown.Expires)
			}
			q.end(code, CodeExpired, detail)
		}
	}
	return q.mu.Unlock
}

// clock is a time of day as people read it.
func clock(t time.Time) string { return t.Local().Format("15:04:05") }

// end drops a question with its state, and remembers its code. The caller holds
// the lock.
func (q *queue) end(code string, problem CodeProblem, detail string) {
	if e := q.entries[code]; e != nil {
		q.spend(e.nonce)
		q.all = q.all.minus(e.size)
	}
	delete(q.entries, code)
	q.ended = append(q.ended, CodeError{Code: code, Problem: problem, Detail: detail})
	q.ended = q.ended[max(0, len(q.ended)-maxPast):]
	q.change()
}

// change wakes up whoever shows the queue. The caller holds the lock.
func (q *queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// codeAlphabet has no letters or digits that are read or heard as others.
const codeAlphabet = "23456789ABCDEFGHJKMNPQRSTVWXYZ"

// newCode returns eight characters with a dash in the middle: 39 bits, which
// are worth something only to somebody whom the page or the terminal lets in.
func newCode() string {
	var b strings.Builder
	for b.Len() < 9 {
		if b.Len() == 4 {
			b.WriteByte('-')
		}
		var random [1]byte
		_, _ = rand.Read(random[:]) // never fails
		if n := int(random[0]); n < 256/len(codeAlphabet)*len(codeAlphabet) {
			b.WriteByte(codeAlphabet[n%len(codeAlphabet)])
		}
	}
	return b.String()
}

// canonicalCode is a code as it was made, from what a person typed.
func canonicalCode(typed string) string {
	code := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(strings.TrimSpace(typed)))
	if len(code) != 8 {
		return strings.ToUpper(strings.TrimSpace(typed))
	}
	return code[:4] + "-" + code[4:]
}

// again finds the question about this very call that an earlier call of the
// chat left behind, and what was decided about it: a denial before anything
// else, then an answer, and otherwise the question that is open for longest. An
// answer is spent by that. An open question is the caller's from now on.
func (q *queue) again(asked *call.Call, now holder, waits time.Time) (e *entry, answer *ruling) {
	defer q.lock()()
	rank := func(e *entry) int {
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
		case other.call.Caller.Chat != asked.Caller.Chat, other.call.Digest() != asked.Digest(), other.holder == heldByCall:
		case other.ruling == nil && other.holder == heldByClient: // another call's
		case e == nil, rank(other) < rank(e), rank(other) == rank(e) && other.shown.Asked.Before(e.shown.Asked):
			e = other
		}
	}
	if e == nil {
		return nil, nil
	}
	if e.ruling != nil {
		q.end(e.shown.Code, CodeAnswered, "it was answered, and the call was made")
		return e, e.ruling
	}
	e.holder, e.shown.Waits = now, waits
	return e, nil
}

// give lets a question be carried by another state, and waited for anew. It
// reports false when the question has ended.
func (q *queue) give(e *entry, nonce string, waits, expires time.Time) bool {
	defer q.lock()()
	if q.entries[e.shown.Code] != e {
		return false
	}
	q.spend(e.nonce)
	e.nonce, e.shown.Waits, e.shown.Expires, e.shown.Note = nonce, waits, expires, ""
	if e.holder == heldByClient {
		e.shown.Note = noteCarried
	}
	e.mark(q.gone[e.call.Caller.Chat])
	q.change()
	return true
}

// noteCarried is said of a question that the client shows by itself.
const noteCarried = "The client shows this question, too."

// mark marks a question as one whose client is gone, if a call waits for it.
func (e *entry) mark(gone bool) {
	if gone && e.holder == heldByCall {
		e.shown.Gone, e.shown.Note = true, noteGone
	}
}

// leave marks a question as one that nobody holds any more, unless it was
// answered in this very moment. It returns the question as it is then shown, and
// that answer.
func (q *queue) leave(nonce, note string) (e *entry, shown Pending, answer *ruling) {
	defer q.lock()()
	e = q.find(nonce)
	if e == nil {
		return nil, Pending{}, nil
	}
	if e.ruling == nil {
		e.holder, e.shown.Waits, e.shown.Note = heldByNobody, time.Time{}, note
		e.shown.Gone = false // nothing starts by an answer
		q.change()
	}
	return e, e.shown, e.ruling
}

// find returns the question that a state carries. The caller holds the lock.
func (q *queue) find(nonce string) *entry {
	for _, e := range q.entries {
		if nonce != "" && e.nonce == nonce {
			return e
		}
	}
	return nil
}

// has reports whether a question is there for a state.
func (q *queue) has(nonce string) bool {
	defer q.lock()()
	return q.find(nonce) != nil
}

// finish takes the question that a state carries out of the queue, with the
// ruling that was given on it meanwhile; nil when there is none. What was taken
// out does not change any more.
func (q *queue) finish(nonce string, problem CodeProblem, detail string) *entry {
	defer q.lock()()
	e := q.find(nonce)
	if e != nil {
		q.end(e.shown.Code, problem, detail)
	}
	return e
}

// rulingOn returns what was decided about a question on another channel.
func (q *queue) rulingOn(nonce string) *ruling {
	defer q.lock()()
	if e := q.find(nonce); e != nil {
		return e.ruling
	}
	return nil
}

// noteGone is said of a question whose client is gone.
const noteGone = "The client is gone, so nobody may take the result, and its server ends within seconds."

// abandon marks the questions of a chat whose client is gone, those that are still
// to come among them, when a call waits for the answer. The others end.
func (q *queue) abandon(chat string) {
	defer q.lock()()
	q.gone[chat] = true
	for code, e := range q.entries {
		switch {
		case e.call.Caller.Chat != chat:
		case e.holder != heldByCall:
			q.end(code, CodeWithdrawn, "its client closed")
		default:
			e.shown.Gone, e.shown.Note = true, noteGone
			q.change()
		}
	}
}

// forget drops the questions of a chat that has ended.
func (q *queue) forget(chat string) {
	defer q.lock()()
	delete(q.gone, chat)
	for code, e := range q.entries {
		if e.call.Caller.Chat == chat {
			q.end(code, CodeWithdrawn, "its client closed")
		}
	}
}

// remember adds a decision to the history.
func (q *queue) remember(p Past) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.past = append(q.past, p)
	q.past = q.past[max(0, len(q.past)-maxPast):]
	q.change()
}

// outcome adds to the history how a run ended.
func (q *queue) outcome(run, text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.past {
		if q.past[i].Run == run {
			q.past[i].Outcome = text
			q.change()
		}
	}
}

// Pending returns the calls that wait for a person, and those whose answer
// waits for the call, oldest first.
func (g *Gate) Pending() []Pending {
	defer g.queue.lock()()
	var all []Pending
	for _, e := range g.queue.entries {
		// A denial is kept for the call that is made again; nobody has to look at it.
		if e.ruling == nil || e.ruling.Decision != Deny {
			all = append(all, e.shown)
		}
	}
	slices.SortFunc(all, func(a, b Pending) int {
		return cmp.Or(a.Asked.Compare(b.Asked), strings.Compare(a.Code, b.Code))
	})
	return all
}

// History returns the newest decisions, the newest first, at most 200.
func (g *Gate) History() []Past {
	defer g.queue.lock()()
	past := slices.Clone(g.queue.past)
	slices.Reverse(past)
	return past
}

// Changes returns a channel that is closed when the queue or the history
// changes next. Taking it before reading misses nothing.
func (g *Gate) Changes() <-chan struct{} {
	defer g.queue.lock()()
	return g.queue.changed
}

// Decide answers the pending call with this code, for whoever proved to be the
// user: the caller makes sure of that. It returns the call as it was decided
// about. The first answer counts; only a denial takes another answer back, as
// long as the call has not gone on. An error is a [*CodeError], or a denial
// because the answer could not be recorded.
func (g *Gate) Decide(code string, v Verdict) (Pending, error) {
	// One at a time, with their records: a denial must not be overtaken by what it
	// takes back.
	g.deciding.Lock()
	defer g.deciding.Unlock()
	e, before, now, shown, err := g.queue.rule(canonicalCode(code), v, g.pending)
	if err != nil {
		return Pending{}, err
	}
	if now.recorded == nil {
		return shown, nil // whoever waits applies the answer, and records it
	}
	now.err = g.decideLate(e, before, now, shown.Expires)
	close(now.recorded)
	if now.err != nil {
		g.queue.drop(e, "the answer could not be recorded")
		return Pending{}, now.err
	}
	return shown, nil
}

// rule puts a verdict on a question, for so long when its call has returned. It
// returns the ruling that was there before, and the new one.
func (q *queue) rule(code string, v Verdict, lasts time.Duration) (e *entry, before, now *ruling, shown Pending, err error) {
	defer q.lock()()
	e = q.entries[code]
	if e == nil {
		for _, was := range slices.Backward(q.ended) {
			if was.Code == code {
				return nil, nil, nil, Pending{}, &was
			}
		}
		return nil, nil, nil, Pending{}, &CodeError{Code: safetext.Line(code), Problem: CodeUnknown}
	}
	if problem := e.refuses(v); problem != nil {
		return nil, nil, nil, Pending{}, problem
	}
	v.Values = maps.Clone(v.Values)
	if e.shown.Gone && v.Decision != Deny {
		v.Note = withNote("the client was gone, and it was chosen to run all the same", v.Note)
	}
	before, now = e.ruling, &ruling{Verdict: v, at: q.now()}
	e.ruling, e.shown.Answered = now, v.Decision
	if e.holder != heldByCall {
		now.recorded = make(chan struct{})
		e.shown.Waits, e.shown.Expires = time.Time{}, now.at.Add(lasts)
		e.shown.Note = "Allowed. It holds once, when the client makes the call again."
	}
	if before == nil {
		close(e.decided)
	}
	q.change()
	return e, before, now, e.shown, nil
}

// drop takes a question out of the queue.
func (q *queue) drop(e *entry, detail string) {
	defer q.lock()()
	if q.entries[e.shown.Code] == e {
		q.end(e.shown.Code, CodeWithdrawn, detail)
	}
}

// withdraw takes a question out of the queue that nobody has answered. It
// reports false when somebody has.
func (q *queue) withdraw(e *entry, detail string) bool {
	defer q.lock()()
	if e.ruling != nil {
		return false
	}
	if q.entries[e.shown.Code] == e {
		q.end(e.shown.Code, CodeWithdrawn, detail)
	}
	return true
}

// refuses says why a verdict cannot be given on a question; nil when it can.
// The caller holds the queue's lock.
func (e *entry) refuses(v Verdict) *CodeError {
	code := e.shown.Code
	if e.ruling != nil && (v.Decision != Deny || e.ruling.Decision == Deny) {
		return &CodeError{Code: code, Problem: CodeAnswered, Detail: fmt.Sprintf("it was answered before: %s, %s at %s",
			spoken(e.ruling.Decision), spokenChannel(e.ruling.Channel), clock(e.ruling.at))}
	}
	value := v.Decision.String()
	if !offers(e.shown.Choices, v.Decision) {
		return &CodeError{Code: code, Problem: CodeInvalid, Detail: fmt.Sprintf("%q is none of the answers that are offered", safetext.Line(value))}
	}
	if v.Decision == Deny {
		return nil
	}
	if e.shown.Gone && !v.Gone {
		return &CodeError{Code: code, Problem: CodeGone, Detail: "its client is gone, so nobody may take the result; it is not allowed unless you say that it is to run all the same"}
	}
	if problem := missingValue(e.shown.Fields, v.Values); problem != "" {
		return &CodeError{Code: code, Problem: CodeInvalid, Detail: problem}
	}
	return nil
}

// maxValue bounds what a person fills in, in bytes.
const maxValue = 16 << 10

// missingValue says what is wrong with the values that were filled in; empty
// for nothing.
func missingValue(fields []Field, values map[string]string) string {
	for _, f := range fields {
		switch v := values[f.Name]; {
		case strings.TrimSpace(v) == "":
			return fmt.Sprintf("it needs a value for %q", f.Name)
		case len(v) > maxValue:
			return fmt.Sprintf("the value for %q is too long", f.Name)
		case strings.ContainsRune(v, 0):
			return fmt.Sprintf("the value for %q has a NUL character", f.Name)
		}
	}
	for n := range values {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == n }) {
			return fmt.Sprintf("it has no field %q", safetext.Line(n))
		}
	}
	return ""
}

func spoken(d Decision) string {
	if d == Deny {
		return "denied"
	}
	return "allowed"
}

func spokenChannel(channel string) string {
	switch channel {
	case ChannelPage:
		return "on the page"
	case ChannelTerminal:
		return "in a terminal"
	case ChannelElicitation, ChannelPrompt:
		return "in the client"
	default:
		return "by " + channel
	}
}
