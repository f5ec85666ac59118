package gate

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// Bounds of a queue.
const (
	maxPending = 2048 // questions at one time
	maxPast    = 200  // decisions remembered, and as many codes that came to an end
)

// A question that is open, or that was answered and whose call has not been
// made again.
type entry struct {
	shown  Pending
	chat   string
	call   string // digest of the exact call
	req    Request
	box    sandbox.Report
	nonce  string // of the state that carries the question
	asking bool   // a call waits for the answer, here or in the client
	// verdict is what a person decided on the page or in the terminal; nil until
	// then.
	verdict *Verdict
	at      time.Time     // of verdict
	decided chan struct{} // closed with the first verdict
}

// A queue holds the questions of a gate: what the page and the terminal show.
// It decides nothing.
type queue struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[string]*entry // :: code → question
	ended   []CodeError       // codes that came to an end, newest last
	past    []Past            // newest last
	changed chan struct{}     // closed at the next change
}

func newQueue(now func() time.Time) *queue {
	return &queue{now: now, entries: make(map[string]*entry), changed: make(chan struct{})}
}

// lock locks the queue, and drops what is too old.
func (q *queue) lock() (unlock func()) {
	q.mu.Lock()
	now := q.now()
	for code, e := range q.entries {
		if now.After(e.shown.Expires) {
			q.end(code, CodeExpired, "nobody answered until "+clock(e.shown.Expires))
			if e.verdict != nil {
				q.ended[len(q.ended)-1].Detail = "it was answered, and was not made again until " + clock(e.shown.Expires)
			}
		}
	}
	return q.mu.Unlock
}

// clock is a time of day as people read it.
func clock(t time.Time) string { return t.Local().Format("15:04:05") }

// end drops a question and remembers its code. The caller holds the lock.
func (q *queue) end(code string, problem CodeProblem, detail string) {
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

// add puts a question into the queue. It reports false when there is no room.
func (q *queue) add(e *entry) bool {
	defer q.lock()()
	if len(q.entries) >= maxPending && !q.makeRoom() {
		return false
	}
	for e.shown.Code == "" || q.entries[e.shown.Code] != nil {
		e.shown.Code = newCode()
	}
	q.entries[e.shown.Code] = e
	q.change()
	return true
}

// makeRoom drops the oldest question that no call waits for, of the chat that
// has the most of them. The caller holds the lock.
func (q *queue) makeRoom() bool {
	left := make(map[string][]*entry) // :: chat → its questions
	for _, e := range q.entries {
		if !e.asking {
			left[e.chat] = append(left[e.chat], e)
		}
	}
	var greedy []*entry
	for _, all := range left {
		if len(all) > len(greedy) {
			greedy = all
		}
	}
	if len(greedy) == 0 {
		return false
	}
	oldest := slices.MinFunc(greedy, func(a, b *entry) int { return a.shown.Asked.Compare(b.shown.Asked) })
	q.end(oldest.shown.Code, CodeWithdrawn, "too many questions were open")
	return true
}

// again finds the question about this very call that an earlier call of the
// chat left behind. A verdict that was given is spent; without one, the call
// that is made now waits for it.
func (q *queue) again(chat, call string) (e *entry, verdict *Verdict) {
	defer q.lock()()
	for _, code := range slices.Sorted(maps.Keys(q.entries)) {
		e := q.entries[code]
		if e.asking || e.chat != chat || e.call != call {
			continue
		}
		if e.verdict != nil {
			q.end(code, CodeAnswered, "it was answered, and the call was made")
			return e, e.verdict
		}
		e.asking = true
		return e, nil
	}
	return nil, nil
}

// leave marks a question as one that no call waits for any more, unless it was
// answered in this very moment.
func (q *queue) leave(nonce, note string) (e *entry, answered bool) {
	defer q.lock()()
	e = q.find(nonce)
	if e == nil {
		return nil, false
	}
	if e.verdict != nil {
		return e, true
	}
	e.asking, e.shown.Waits = false, time.Time{}
	e.shown.Note = note
	q.change()
	return e, false
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

// finish takes the question that a state carries out of the queue, and returns
// the verdict that was given on it meanwhile.
func (q *queue) finish(nonce string, problem CodeProblem, detail string) *Verdict {
	defer q.lock()()
	e := q.find(nonce)
	if e == nil {
		return nil
	}
	q.end(e.shown.Code, problem, detail)
	return e.verdict
}

// verdictOf returns what was decided about a question on another channel.
func (q *queue) verdictOf(nonce string) *Verdict {
	defer q.lock()()
	if e := q.find(nonce); e != nil {
		return e.verdict
	}
	return nil
}

// forget drops the questions of a chat that has ended.
func (q *queue) forget(chat string) {
	defer q.lock()()
	for code, e := range q.entries {
		if e.chat == chat {
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
		if e.verdict != nil && e.verdict.Decision == Deny {
			continue // kept for the call that is made again; nobody has to look at it
		}
		p := e.shown
		if e.asking && p.Waits.IsZero() {
			p.Note = "The client shows this question, too."
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Pending) int {
		if c := a.Asked.Compare(b.Asked); c != 0 {
			return c
		}
		return strings.Compare(a.Code, b.Code)
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
	code = canonicalCode(code)
	q := g.queue
	unlock := q.lock()
	e := q.entries[code]
	if e == nil {
		defer unlock()
		for _, was := range slices.Backward(q.ended) {
			if was.Code == code {
				return Pending{}, &was
			}
		}
		return Pending{}, &CodeError{Code: safetext.Line(code), Problem: CodeUnknown}
	}
	if problem := e.refuses(v); problem != nil {
		defer unlock()
		return Pending{}, problem
	}
	first := e.verdict == nil
	late := !e.asking
	v.Values = maps.Clone(v.Values)
	e.verdict, e.at = &v, g.now()
	e.shown.Answered = v.Decision
	if late {
		e.shown.Expires = e.at.Add(g.pending)
		e.shown.Note = "Allowed. It holds once, when the client makes the call again."
		if v.Decision == Deny {
			e.shown.Note = "Denied."
		}
	}
	shown := e.shown
	if first {
		close(e.decided)
	}
	q.change()
	unlock()
	if !late {
		// Whoever waits applies the answer, and records it.
		return shown, nil
	}
	if err := g.decideLate(e, v); err != nil {
		q.finish(e.nonce, CodeWithdrawn, "the answer could not be recorded")
		return Pending{}, err
	}
	return shown, nil
}

// refuses says why a verdict cannot be given on a question; nil when it can.
// The caller holds the queue's lock.
func (e *entry) refuses(v Verdict) *CodeError {
	code := e.shown.Code
	if e.verdict != nil && (v.Decision != Deny || e.verdict.Decision == Deny) {
		return &CodeError{Code: code, Problem: CodeAnswered, Detail: fmt.Sprintf("it was answered before: %s, %s at %s",
			spoken(e.verdict.Decision), spokenChannel(e.verdict.Channel), clock(e.at))}
	}
	value := v.Decision.String()
	if !slices.ContainsFunc(e.shown.Choices, func(c Choice) bool { return c.Value == value }) {
		return &CodeError{Code: code, Problem: CodeInvalid, Detail: fmt.Sprintf("%q is none of the answers that are offered", safetext.Line(value))}
	}
	if v.Decision == Deny {
		return nil
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
