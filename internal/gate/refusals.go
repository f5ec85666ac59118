package gate

import (
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
)

// codeOfDenials is the code under which denied calls are counted.
const codeOfDenials = "denied"

// codeOfPending is the code under which calls are counted that returned at once,
// since their client shows the question on a card.
const codeOfPending = "approval_pending"

// Refused records a call that was refused before anybody was asked. The first 100
// calls of a chat, and 500 of a person in an hour, get a line each; the others are
// counted in one line a minute. If the log cannot be written, nothing else follows:
// the call is already refused.
func (g *Gate) Refused(r lines.Refusal) {
	e := g.author.Refused(r)
	if g.refusals.Fold(&e, r.Code, g.now(), g.countRefusals) {
		return
	}
	g.appendRefusal(e)
}

func (g *Gate) appendRefusal(e audit.Entry) {
	if err := g.log.AppendLazy(e); err != nil {
		g.logger.Error("a refused call could not be recorded", "code", e.Code, "err", err)
	}
}

// countRefusals writes the line that counts a person's refusals without a line.
func (g *Gate) countRefusals(person string) {
	if more := g.refusals.Take(person); len(more) > 0 {
		g.appendRefusal(g.author.Counted(person, more))
	}
}

// Close writes the counts that are still unwritten. Do not refuse calls after it.
func (g *Gate) Close() {
	g.queue.Close()
	for _, person := range g.refusals.Everybody() {
		g.countRefusals(person)
	}
}
