package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// The bounds of the lines about refusals. Whoever makes the calls decides nothing
// about anybody else's: what a person's chats go beyond is counted for that person.
const (
	refusalsOfChat   = 100 // lines of one chat
	refusalsOfPerson = 500 // lines of all chats of a person, in an hour
	refusalsPerHour  = time.Hour
	refusalsFolded   = time.Minute // between two lines that count the others
	refusalsWithArgs = 256 << 10   // bytes of arguments in the lines of a person, in an hour
)

// codeOfDenials is how the line that counts refusals calls denied calls.
const codeOfDenials = "denied"

// A Refusal is a call that was refused before anybody was asked: it names what is
// not there, say.
type Refusal struct {
	Caller    call.Caller
	Method    string          // the base tool that was called, or the method
	Pack      string          // as the caller named it; may be empty
	Arguments *call.Arguments // of which the digest is recorded
	Code      string          // the error that the caller got, one of few
	Reason    string          // in words
}

// refusals bound the lines about refused calls.
type refusals struct {
	every time.Duration // between two lines that count

	mu     sync.Mutex
	chats  map[string]int      // :: chat → its lines
	people map[string]*refused // :: person → theirs
}

// refused is what is known of one person's refused calls.
type refused struct {
	hour  time.Time      // when the hour began
	lines int            // in this hour
	args  int            // bytes of the arguments in these
	more  map[string]int // :: code → calls that have no line
	timer *time.Timer    // writes a line about these; nil: there are none
}

// Refused records a call that was refused before anybody was asked. The first 100
// of a chat, and 500 of a person in an hour, are a line each; the others are
// counted in a line a minute. A log that cannot be written is no reason to do
// anything else: the call is refused already.
func (g *Gate) Refused(r Refusal) {
	e := audit.Entry{
		Event: audit.EventRefusal, Server: g.server, Chat: r.Caller.Chat, Caller: r.Caller.Person, Client: r.Caller.Client, Call: r.Caller.Call,
		Tool: r.Method, Pack: call.Beginning(r.Pack), Code: r.Code, ArgsDigest: r.Arguments.Digest(), Reason: call.Cut(safetext.Line(r.Reason), maxRefusal),
	}
	if g.refusals.fold(&e, r.Code, g.now(), g.countRefusals) {
		return
	}
	g.appendRefusal(e)
}

// maxRefusal is how many bytes a line has of the reason of a refusal, and of each
// error that a program wrote about.
const maxRefusal = 500

func (g *Gate) appendRefusal(e audit.Entry) {
	if err := g.log.AppendLazy(e); err != nil {
		g.logger.Error("a refused call could not be recorded", "code", e.Code, "err", err)
	}
}

// fold reports whether a refusal, or a denial that no person decided, gets no line
// of its own, and counts it then. Of those that get one, it takes the arguments out
// of e when its person has had enough of them; their digest stays. count is called
// when it is time for a line about those of a person.
func (r *refusals) fold(e *audit.Entry, code string, now time.Time, count func(person string)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	person := e.Caller
	p := r.people[person]
	if p == nil {
		p = &refused{hour: now}
		r.people[person] = p
	}
	if now.Sub(p.hour) >= refusalsPerHour || now.Before(p.hour) {
		p.hour, p.lines, p.args = now, 0, 0
	}
	if r.chats[e.Chat] < refusalsOfChat && p.lines < refusalsOfPerson {
		r.chats[e.Chat]++
		p.lines++
		*e = spare(*e)
		if p.args+len(e.Args) > refusalsWithArgs {
			e.Args = nil
		}
		p.args += len(e.Args)
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

// countRefusals writes the line about those refusals of a person that have none.
func (g *Gate) countRefusals(person string) {
	more := g.refusals.take(person)
	if len(more) == 0 {
		return
	}
	codes := slices.SortedFunc(maps.Keys(more), func(a, b string) int { return cmp.Or(more[b]-more[a], strings.Compare(a, b)) })
	e := audit.Entry{Event: audit.EventRefusal, Server: g.server, Caller: person}
	var each []string
	for _, code := range codes {
		e.Count += more[code]
		each = append(each, fmt.Sprintf("%s %d", code, more[code]))
	}
	e.Reason = "more calls were refused: " + strings.Join(each, ", ")
	g.appendRefusal(e)
}

// take returns what is counted for a person, and begins anew.
func (r *refusals) take(person string) map[string]int {
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

// forget drops what is known of a chat that has ended. What is counted of its
// calls is its person's.
func (r *refusals) forget(chat string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.chats, chat)
}

// Close writes what is still to be written. Calls may not be refused afterwards.
func (g *Gate) Close() {
	g.refusals.mu.Lock()
	people := slices.Sorted(maps.Keys(g.refusals.people))
	g.refusals.mu.Unlock()
	for _, person := range people {
		g.countRefusals(person)
	}
}
