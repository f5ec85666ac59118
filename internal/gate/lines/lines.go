// Package lines makes the lines of the audit log about calls, and keeps callers from
// filling the log: it bounds how long a line is, and how many lines there are about calls
// of one person on which nobody decided.
//
// It makes no decision, and writes to no log.
package lines

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// maxArguments bounds the arguments of a call, and those of its program, in a log
// line, in bytes. Few questions are that long. Longer arguments come with calls
// that are denied or that nobody had to allow, and anybody can make many of those.
const maxArguments = 64 << 10

// spare leaves long arguments out of an entry; their digest stays. The start of a
// run keeps them, so that nobody can hide what ran by making it long.
func spare(e audit.Entry) audit.Entry {
	if e.Event == audit.EventRunStart {
		return e
	}
	if len(e.Args.String()) > maxArguments {
		e.Args = strictjson.Compact{}
	}
	argv := 0
	for _, a := range e.Argv {
		argv += len(a) + len(`"",`)
	}
	if argv > maxArguments {
		e.Argv = nil
	}
	return e
}

// Write writes an entry without arguments that are too long. If the entry is still
// too long, it writes it without any arguments or lists, so that no call can keep
// itself out of the log.
func Write(e audit.Entry, write func(audit.Entry) error) error {
	e = spare(e)
	err := write(e)
	if errors.Is(err, audit.ErrTooLong) {
		e.Args = strictjson.Compact{} // the digest still identifies them
		e.Argv, e.Artifacts, e.Changed, e.Contacts = nil, nil, nil, nil
		e.Applied, e.Held, e.Refused = nil, nil, nil
		e.Reads, e.Writes, e.Closed = nil, nil, nil
		err = write(e)
	}
	return err
}

// The bounds of the lines about refusals. They are counted for each person, so that
// one caller cannot use up another's.
const (
	ofChat        = 100 // lines of one chat
	ofPerson      = 500 // lines of all chats of a person, in an hour
	period        = time.Hour
	withArguments = 256 << 10 // bytes of arguments in the lines of one person, in an hour
)

// Refusals bound the lines about refused calls.
type Refusals struct {
	every time.Duration // between two lines that count calls

	mu     sync.Mutex
	chats  map[string]int      // :: chat → its lines
	people map[string]*refused // :: person → theirs
}

// NewRefusals returns Refusals without any yet. Every is the time between two lines that
// count the calls of a person without a line.
func NewRefusals(every time.Duration) *Refusals {
	return &Refusals{every: every, chats: make(map[string]int), people: make(map[string]*refused)}
}

// refused is the record of one person's refused calls.
type refused struct {
	hour  time.Time      // when the hour began
	lines int            // in this hour
	args  int            // bytes of arguments in these lines
	more  map[string]int // :: code → calls that got no line
	timer *time.Timer    // writes a line about more; nil if there is nothing to write
}

// Fold reports whether a refusal, or a denial that no person decided, gets no line;
// it then counts the call. For a call that gets a line, it removes the arguments
// from e if its person has used up their bytes; the digest stays. count is called
// when it is time to write the line that counts a person's calls.
func (r *Refusals) Fold(e *audit.Entry, code string, now time.Time, count func(person string)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	person := e.Caller
	p := r.people[person]
	if p == nil {
		p = &refused{hour: now}
		r.people[person] = p
	}
	if now.Sub(p.hour) >= period || now.Before(p.hour) {
		p.hour, p.lines, p.args = now, 0, 0
	}
	if r.chats[e.Chat] < ofChat && p.lines < ofPerson {
		r.chats[e.Chat]++
		p.lines++
		*e = spare(*e)
		if p.args+len(e.Args.String()) > withArguments {
			e.Args = strictjson.Compact{}
		}
		p.args += len(e.Args.String())
		return false
	}
	if p.more == nil {
		p.more = make(map[string]int)
	}
	p.more[code]++
	if p.timer == nil {
		p.timer = time.AfterFunc(r.every, func() { count(person) })
	}
	return true
}

// Take returns and resets the counts of a person.
func (r *Refusals) Take(person string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.people[person]
	if p == nil || p.timer == nil {
		return nil
	}
	p.timer.Stop()
	more := p.more
	p.timer, p.more = nil, nil
	return more
}

// Forget drops what is known about a chat that has ended. Its counted calls stay
// with its person.
func (r *Refusals) Forget(chat string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.chats, chat)
}

// Everybody returns the people whose calls were refused, sorted.
func (r *Refusals) Everybody() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.people))
}
