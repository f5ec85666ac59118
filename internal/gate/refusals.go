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
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// The bounds of the lines about refusals. They are counted for each person, so that
// one caller cannot use up another's.
const (
	refusalsOfChat   = 100 // lines of one chat
	refusalsOfPerson = 500 // lines of all chats of a person, in an hour
	refusalsPerHour  = time.Hour
	refusalsFolded   = time.Minute // between two lines that count calls without a line
	refusalsWithArgs = 256 << 10   // bytes of arguments in the lines of one person, in an hour
)

// codeOfDenials is the code under which denied calls are counted.
const codeOfDenials = "denied"

// codeOfPending is the code under which calls are counted that returned at once,
// since their client shows the question on a card.
const codeOfPending = "approval_pending"

// A Refusal is a call that was refused before anybody was asked, for example
// because it names something that does not exist.
type Refusal struct {
	Caller    call.Caller
	Method    string          // the base tool that was called, or the method
	Pack      string          // as the caller named it; may be empty
	Arguments *call.Arguments // only their digest is recorded
	Code      string          // the code of the error that the caller got
	Reason    string          // in words
}

// refusals bounds the lines about refused calls.
type refusals struct {
	every time.Duration // between two lines that count calls

	mu     sync.Mutex
	chats  map[string]int      // :: chat → its lines
	people map[string]*refused // :: person → theirs
}

// refused is the record of one person's refused calls.
type refused struct {
	hour  time.Time      // when the hour began
	lines int            // in this hour
	args  int            // bytes of arguments in these lines
	more  map[string]int // :: code → calls that got no line
	timer *time.Timer    // writes a line about more; nil if there is nothing to write
}

// Refused records a call that was refused before anybody was asked. The first 100
// calls of a chat, and 500 of a person in an hour, get a line each; the others are
// counted in one line a minute. If the log cannot be written, nothing else follows:
// the call is already refused.
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

// maxRefusal is how many bytes of a refusal's reason, or of each error that a
// program wrote, a line keeps.
const maxRefusal = 500

func (g *Gate) appendRefusal(e audit.Entry) {
	if err := g.log.AppendLazy(e); err != nil {
		g.logger.Error("a refused call could not be recorded", "code", e.Code, "err", err)
	}
}

// fold reports whether a refusal, or a denial that no person decided, gets no line;
// it then counts the call. For a call that gets a line, it removes the arguments
// from e if its person has used up their bytes; the digest stays. count is called
// when it is time to write the line that counts a person's calls.
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
		if p.args+len(e.Args.String()) > refusalsWithArgs {
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

// countRefusals writes the line that counts a person's refusals without a line.
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

// take returns and resets the counts of a person.
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

// forget drops what is known about a chat that has ended. Its counted calls stay
// with its person.
func (r *refusals) forget(chat string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.chats, chat)
}

// Close writes the counts that are still unwritten. Do not refuse calls after it.
func (g *Gate) Close() {
	g.queue.Close()
	g.refusals.mu.Lock()
	people := slices.Sorted(maps.Keys(g.refusals.people))
	g.refusals.mu.Unlock()
	for _, person := range people {
		g.countRefusals(person)
	}
}
