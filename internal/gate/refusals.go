package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
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

// Refused records a call that was refused before anybody was asked. The first 100
// calls of a chat, and 500 of a person in an hour, get a line each; the others are
// counted in one line a minute. If the log cannot be written, nothing else follows:
// the call is already refused.
func (g *Gate) Refused(r Refusal) {
	e := audit.Entry{
		Event: audit.EventRefusal, Server: g.server, Chat: r.Caller.Chat, Caller: r.Caller.Person, Client: r.Caller.Client, Call: r.Caller.Call,
		Tool: r.Method, Pack: call.Beginning(r.Pack), Code: r.Code, ArgsDigest: r.Arguments.Digest(), Reason: call.Cut(safetext.Line(r.Reason), maxRefusal),
	}
	if g.refusals.Fold(&e, r.Code, g.now(), g.countRefusals) {
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

// countRefusals writes the line that counts a person's refusals without a line.
func (g *Gate) countRefusals(person string) {
	more := g.refusals.Take(person)
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

// Close writes the counts that are still unwritten. Do not refuse calls after it.
func (g *Gate) Close() {
	g.queue.Close()
	for _, person := range g.refusals.Everybody() {
		g.countRefusals(person)
	}
}
