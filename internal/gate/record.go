package gate

import (
	"cmp"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// record writes one decision. Denials, decisions on questions and acts of a person
// are on disk when it returns. What a grant or a rule allows, or what is only
// metadata, is written at once and reaches the disk within a second. A decision
// about a run is on disk before the program starts, because syncing the run's start
// syncs every line before it. A client can cause some denials as often as it likes;
// beyond the bound of refusals these are only counted.
func (c *check) record(d queue.Decision, channel, reason, run string) error {
	lazy := d != queue.Deny && c.answer == nil && !c.Call.Caller.Act
	return c.write(d.String(), channel, reason, run, lazy)
}

// recordPending writes that a call returned without an answer.
func (c *check) recordPending(reason string) error {
	return c.write(pendingWord, "", reason, "", false)
}

// pendingWord is the decision that the log has for a call that returned without an
// answer.
const pendingWord = "pending"

func (c *check) write(decision, channel, reason, run string, lazy bool) error {
	e := c.author.Decision(c.Call)
	e.Decision, e.Channel, e.Reason, e.Run = decision, channel, withNote(reason, c.short), run
	e.Grant, e.Rule, e.Changed = c.grant, c.ruled, c.changed
	e.Approver = c.approver(decision)
	write := c.log.Append
	if lazy {
		write = c.log.AppendLazy
	}
	folded := false
	switch {
	case decision == queue.Deny.String() && c.repeatable:
		folded = c.refusals.Fold(&e, codeOfDenials, c.now(), c.countRefusals)
	case decision == pendingWord && c.atOnce:
		folded = c.refusals.Fold(&e, codeOfPending, c.now(), c.countRefusals)
	}
	if !folded {
		if err := c.failed(e, lines.Write(e, write)); err != nil {
			return err
		}
	}
	if c.Call.Kind != call.KindList {
		if reason == answers.ChoseToDeny {
			reason = "" // the decision says so
		}
		c.queue.Remember(queue.Past{
			Time: c.now(), Chat: c.Call.Caller.Chat, Call: c.Call.Caller.Call, Kind: c.Call.Kind, Pack: prompt.Name(c.Call.Pack.ID),
			Title: prompt.Title(&c.Call.Request), Decision: decision, Channel: channel, Reason: safetext.Line(reason), Run: run,
		})
	}
	return nil
}

// errLost is returned if a line of the log may not have reached the disk.
var errLost = errors.New("the log did not reach the disk meanwhile, and may have lost a line")

// append writes entries that must be on disk before anything goes on. It fails if
// the log's failure count is no longer failures: then an earlier line may be lost.
// It waits for the disk once.
func (g *Gate) append(failures int, entries ...audit.Entry) error {
	for i, e := range entries {
		write := g.log.AppendLazy
		if i == len(entries)-1 {
			write = g.log.Append
		}
		if err := g.failed(e, lines.Write(e, write)); err != nil {
			return err
		}
	}
	if g.log.Failures() != failures {
		return g.failed(entries[len(entries)-1], errLost)
	}
	return nil
}

// failed turns an error of the log into a denial. The cause goes only to the
// server's own log, because it may hold paths.
func (g *Gate) failed(e audit.Entry, err error) error {
	if err == nil {
		return nil
	}
	g.logger.Error("audit line not written; the call is denied", "event", string(e.Event), "pack", e.Pack, "run", e.Run, "err", err)
	if errors.Is(err, audit.ErrUnavailable) {
		return &DeniedError{
			Reason:      "the store of the audit log cannot be reached",
			Hint:        "Nothing may happen without a record. Tell the user, who can tell the server's administrator; make the call again later.",
			Unavailable: true,
		}
	}
	return &DeniedError{
		Reason: "the audit log cannot be written",
		Hint:   "Nothing may happen without a record. Tell the user to look at the server's log; a full disk or a damaged audit file are the usual causes.",
	}
}

// withNote appends to a reason how the answer was given.
func withNote(reason, note string) string {
	switch {
	case note == "":
		return reason
	case reason == "":
		return note
	default:
		return reason + "; " + note
	}
}

// permit records a decision that no person had to make now. It allows the call only
// if that worked.
func (c *check) permit(d queue.Decision, channel, reason string) (*Permit, error) {
	p := c.newPermit()
	p.byGrant = channel == queue.ChannelGrant
	if err := c.record(d, channel, reason, p.run); err != nil {
		return nil, err
	}
	return p, nil
}

func (c *check) newPermit() *Permit {
	p := &Permit{gate: c.Gate, box: c.box, call: c.Call, failures: c.log.Failures()}
	if p.call.Kind.Starts() {
		p.run = cmp.Or(c.run, newRunID())
		p.claim = cmp.Or(c.asked, p.run)
	}
	return p
}

// deny records a denial and returns it.
func (c *check) deny(reason, hint string) error {
	channel := ""
	if c.answer != nil {
		channel = c.answer.Channel
	}
	return c.denyBy(channel, reason, hint, "")
}

// denyBy is deny for a decision made on this channel. If code is not empty, a
// person can still allow the call under it.
func (c *check) denyBy(channel, reason, hint, code string) error {
	logged := reason
	if c.answer != nil {
		logged = withNote(reason, c.answer.Note)
	}
	if err := c.record(queue.Deny, channel, logged, ""); err != nil {
		return err
	}
	return &DeniedError{Reason: reason, Hint: hint, Code: code}
}

// deniedOver is deny for a call that would be over a limit of its person, or of a group.
func (c *check) deniedOver(reason, hint string) error {
	err := c.deny(reason, hint)
	if e, ok := errors.AsType[*DeniedError](err); ok && e.Reason == reason { // it could be recorded
		e.OverLimit = true
	}
	return err
}
