package gate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// stillKept reports whether the grant that a ruling made still holds: nobody
// revoked it, and it is not void. It is true for a ruling that made none.
func (c *check) stillKept(r *queue.Ruling) bool {
	kept, err := r.Settled()
	if err != nil || kept == "" {
		return true // applyLate reports the error
	}
	is := func(g grants.Grant) bool { return g.Digest == kept && g.Void == nil }
	if slices.ContainsFunc(c.book.InChat(&c.Call.Caller), is) {
		return true
	}
	// Read the file again: it may have changed since the check began.
	stored, refused := c.loadGrants()
	return refused == nil && slices.ContainsFunc(stored, is)
}

// applyLate applies a ruling that was given while no call waited for it. The same
// call has now been made again.
func (c *check) applyLate(r *queue.Ruling) (*Permit, error) {
	c.answer, c.repeatable = answers.FromRuling(r, ""), false
	if _, err := r.Settled(); err != nil {
		return nil, c.deny("the answer to this call could not be recorded", "Make the call again; the user will then be asked.")
	}
	if r.Decision == queue.Deny {
		reason := fmt.Sprintf("the person denied it at %s", queue.Clock(r.At))
		if r.Nobody {
			reason = answers.NobodyDecided
		}
		return nil, c.deny(reason,
			"Do not call again unless the user asks for it; say what you wanted to do and why, or go on without it.")
	}
	reason := fmt.Sprintf("the person answered at %s, before the call was made again", queue.Clock(r.At))
	if c.queue.Shared() {
		return c.takeLate(r, reason)
	}
	p := c.newPermit()
	p.values = r.Values
	if err := c.record(queue.Once, r.Channel, reason, p.run); err != nil {
		return nil, err
	}
	return p, nil
}

// takeLate applies a ruling that another replica may have recorded, and keeps it for
// later calls if it says so.
func (c *check) takeLate(r *queue.Ruling, reason string) (*Permit, error) {
	c.answer = answers.FromRuling(r, "")
	if err := c.stands(r.Entry, r); err != nil {
		return nil, err
	}
	d := c.answer.Decide(c.Choices(), c.Call.Fields)
	if d.Decision == queue.Deny {
		return nil, c.deny(d.Reason, "Make the call again; the user will then be asked.")
	}
	if r.Entry.Call.FactsDigest() != c.OwnGrant().Digest {
		d.Decision = queue.Once // it was asked about other files than the ones that are there now
	}
	c.answer.Note = withNote(reason, c.answer.Note)
	return c.allow(d.Decision, d.Values)
}

// stands returns why an allowing answer, which was taken from the question of e, does not
// count on this replica now, or nil if it does: another replica may have other approvers,
// and somebody may have taken back the answers of its person since. The error is a
// denial.
func (c *check) stands(e *queue.Entry, r *queue.Ruling) error {
	if !c.queue.Shared() {
		return nil
	}
	if c.who.Allow(c.Call, r.Shown.Code, r.Verdict) != nil {
		return c.deny("the person who answered on another server may not allow it on this one: it may be allowed by "+c.need().String(),
			"Make the call again; those who may allow it will then be asked. Tell the user that the servers may differ in their approvers.")
	}
	if err := c.queue.CatchUp(e); err != nil {
		return c.undecided(err)
	}
	by := c.answeredBy()
	if c.ended(grants.Grant{Person: c.Call.Caller.Person, By: &by, Pack: c.Call.Pack.ID, Since: r.At}, r.Rev) {
		return c.deny("the answer to this call was taken back, with others, before the call went on", "Make the call again; the user will then be asked.")
	}
	return nil
}

// Pending returns the calls that wait for a person, and those whose answer waits
// for the call to be made again, oldest first.
func (g *Gate) Pending() []queue.Pending { return g.queue.Pending() }

// History returns the latest decisions, newest first, at most 200.
func (g *Gate) History() []queue.Past { return g.queue.History() }

// Ended returns the questions that ended last, and how, newest last, at most 200.
func (g *Gate) Ended() []queue.CodeError { return g.queue.Ended() }

// Changes returns a channel that is closed at the next change of the pending calls
// or the history. Take it before you read them, so that no change is missed.
func (g *Gate) Changes() <-chan struct{} { return g.queue.Changes() }

// Decide answers the pending call with this code. The caller must have made sure that
// the user is asking. Decide returns the call as it was decided about. The first
// answer counts; only a denial can take back another answer, and only until the call
// has gone on. The person in v must be one who may decide about the call. An error is
// a [*queue.CodeError], or a denial because the answer could not be recorded.
func (g *Gate) Decide(code string, v queue.Verdict) (queue.Pending, error) {
	// Decide and record one at a time: a denial must not overtake what it takes
	// back.
	defer g.oneByOne()()
	if asked := g.queue.CallOf(code); asked != nil { // otherwise the queue says what happened to it
		if err := g.who.Allow(asked, code, v); err != nil {
			return queue.Pending{}, err
		}
	}
	r, err := g.queue.Rule(code, v, g.pending)
	if errors.Is(err, queue.ErrUnavailable) {
		g.logger.Error("an answer could not be given, since the store that replicas share cannot be reached", "err", err)
		return queue.Pending{}, &DeniedError{Reason: unreachable, Hint: tryLater, Unavailable: true}
	}
	if err != nil {
		return queue.Pending{}, err
	}
	if !r.Late() {
		return r.Shown, nil // the call that waits applies the answer and records it
	}
	kept, err := g.decideLate(r)
	r.Settle(kept, err)
	if err != nil {
		g.queue.Drop(r.Entry, "the answer could not be recorded")
		return queue.Pending{}, err
	}
	return r.Shown, nil
}

// decideLate records a ruling on a question that no call of this process waits for,
// and keeps it for later calls if it says so. It returns the digest of the grant it
// made, if any.
func (g *Gate) decideLate(r *queue.Ruling) (kept string, err error) {
	e := r.Entry
	c := &check{Gate: g, box: e.Box, Case: g.caseOf(e.Call), changed: e.Changed, answer: answers.FromRuling(r, "")}
	if g.queue.Shared() {
		// The call that takes the answer keeps it for later ones, and records that.
		reason := "the call had returned; it is allowed when it is made again"
		switch {
		case r.Decision == queue.Deny:
			reason = "the call had returned; it is denied when it is made again"
		case !r.Shown.Waits.IsZero():
			reason = "the call waits on another server, which goes on"
		}
		return "", c.record(r.Decision, r.Channel, withNote(reason, r.Note), "")
	}
	c.Always = c.rule().Effect == rules.Ask
	if r.Decision == queue.Deny {
		if r.Before != nil {
			c.takeBack(r.Before)
		}
		return "", c.record(queue.Deny, r.Channel, withNote("the call had returned; it is denied when it is made again", r.Note), "")
	}
	err = c.keepAnswer(r.Decision, r.Channel, func(d queue.Decision, reason string) error {
		if reason == "" {
			reason = "the call had returned; it is allowed when it is made again before " + queue.Clock(r.Shown.Expires)
		}
		return c.record(d, r.Channel, withNote(reason, r.Note), "")
	})
	if err == nil && c.grant != "" {
		kept = c.WouldGrant().Digest
	}
	return kept, err
}
