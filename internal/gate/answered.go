package gate

import (
	"errors"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// personTime is the least time in which a person can answer a question. A program
// that declines automatically takes a few milliseconds. A person has to notice the
// form, read a line of about six words (1.4 s at 250 words a minute), and press a
// key (0.2 s at the very least). A faster answer is a reflex that was meant for
// something else.
const personTime = time.Second

// byItself returns why no person can have given the answer, or "" if a person may
// have.
func (c *check) byItself() string {
	if c.answer.Failed {
		return "the client could not show the question"
	}
	if _, asked := c.queue.Asked(c.nonce); c.answer.Declined && !asked.IsZero() && c.now().Sub(asked) < personTime {
		return "the client declined by itself, faster than a person can"
	}
	return ""
}

// askElsewhere handles a question that the client answered without a person. The
// person is asked elsewhere, as for a client that cannot ask. If that is not
// possible, the call is denied.
func (c *check) askElsewhere(why string) (*Permit, *Question, error) {
	if !c.ask.Elsewhere() {
		c.withdraw(why)
		return nil, nil, c.deny(why, "Nobody decided this. Tell the user: their client does not let them answer, and the configuration has no other channel. "+
			"With approval.channels: [elicitation, page, terminal] they can answer on a page or in a terminal.")
	}
	c.unshown = true
	if nobody := c.nobodyMay(); nobody != "" {
		c.withdraw(why)
		return nil, nil, c.deny(why+"; "+nobody, "Nobody decided this. Tell the user: their client does not let them answer.")
	}
	e, _ := c.queue.Asked(c.nonce)
	if e == nil {
		return nil, nil, c.deny(queue.ErrSpent.Error(), "Make the call again; the user will then be asked.")
	}
	c.changed = e.Changed
	// First this, since another call may have just ended the question. Then the log has
	// one line: the denial.
	q, err := c.renew(e, "The client did not let you answer: "+why+". If that was you, deny it here.")
	if err != nil {
		return nil, nil, err
	}
	if err := c.write(pendingWord, c.answer.Channel, why+"; the question stays open elsewhere", "", false); err != nil {
		c.queue.Drop(e, "the question could not be recorded")
		return nil, nil, err
	}
	return nil, q, nil
}

// withdraw ends the question of an answer that decides nothing. Where replicas share the
// questions and the store cannot be reached, it stays open until its time is over.
func (c *check) withdraw(why string) {
	if _, _, err := c.queue.Finish(c.nonce, queue.CodeWithdrawn, why); err != nil {
		c.logger.Warn("a question could not be withdrawn", "err", err)
	}
}

// answered applies the answer to a question. stale is nil if the answer's state
// belongs to a question about this exact request; otherwise it says why not.
func (c *check) answered(stale error) (*Permit, *Question, error) {
	const again = "Make the call again, without an answer or a state; the user will then be asked."
	if stale != nil {
		if errors.Is(stale, queue.ErrUnavailable) {
			return nil, nil, c.undecided(stale)
		}
		e, _, err := c.queue.Finish(c.nonce, queue.CodeWithdrawn, "something about the call changed since the question")
		if err != nil {
			return nil, nil, c.undecided(err)
		}
		denied := c.deny(stale.Error(), again)
		// An answer without a state is a mistake of the client. A state that does
		// not fit was made up or taken from elsewhere, unless what the call is
		// about has changed since.
		if errors.Is(stale, queue.ErrNoState) || e != nil && e.Call.SameCall(&c.Call.Request) {
			return nil, nil, denied
		}
		return nil, nil, invalid(denied)
	}
	c.repeatable = false
	verdict := c.rule()
	c.Always, c.short = verdict.Effect == rules.Ask, c.falls(verdict)
	d := c.answer.Decide(c.Choices(), c.Call.Fields)
	if why := c.byItself(); why != "" {
		return c.askElsewhere(why)
	}
	if d.Decision == queue.Deny && !d.Explicit && !c.answer.Declined && c.ask.Elsewhere() {
		// The client garbled the answer. A person can still allow the call for when
		// it is made again.
		e, shown, answer, err := c.queue.Leave(c.nonce, "The client's answer was of no use. You can still allow the call for when it is made again.")
		if err != nil {
			return nil, nil, c.undecided(err)
		}
		if e != nil && answer == nil {
			c.changed = e.Changed
			return nil, nil, c.denyBy(c.answer.Channel, d.Reason, "Tell the user that their answer did not arrive. They can allow the call "+c.ask.Where(shown.Code)+
				" and ask you to make exactly the same call again. Otherwise go on without it.", shown.Code)
		}
	}
	// Hold the lock from here: a decision on another channel is now either
	// complete, with what it kept, or too late.
	unlock := c.oneByOne()
	var claim queue.Claim
	if d.Decision != queue.Deny {
		claim = c.claim()
	}
	e, other, err := c.queue.Take(c.nonce, queue.Answered(d.Decision, c.answer.Channel, c.now()), claim)
	if err != nil {
		unlock()
		return nil, nil, c.undecided(err)
	}
	if e == nil {
		// The question ended after the state was checked: another call took its
		// answer, or it was withdrawn.
		unlock()
		denied := c.deny(queue.ErrSpent.Error(), again)
		if c.queue.Shared() {
			denied = invalid(denied) // another replica took it before this one heard of it
		}
		return nil, nil, denied
	}
	c.changed = e.Changed
	c.took(e)
	if other != nil && other.Decision != queue.Deny && d.Decision == queue.Deny {
		c.takeBack(other)
	}
	if other != nil && other.Decision == queue.Deny && !other.Late() && other.Before != nil {
		c.takeBack(other.Before) // a late answer, given after a waiting call was denied
	}
	unlock()
	if other != nil && (other.Decision == queue.Deny || d.Decision != queue.Deny) {
		// The first answer counts, and a denial anywhere wins.
		c.answer = answers.FromRuling(other, "")
		d = c.answer.Decide(c.Choices(), c.Call.Fields)
	}
	if d.Decision != queue.Deny && other != nil {
		if err := c.stands(e, other); err != nil {
			return nil, nil, err
		}
	}
	if d.Decision != queue.Deny && other == nil && !c.selfDecides() {
		// It came from the client, so it is the asker's own, no matter who filled in the form.
		return nil, nil, c.deny("the answer came from the person who asks, and the call may be allowed by "+c.need().String(),
			"Make the call again, without an answer or a state; the others will then be asked.")
	}
	if d.Decision == queue.Deny {
		return nil, nil, c.deny(d.Reason,
			"Do not call again unless the user asks for it; say what you wanted to do and why, or go on without it.")
	}
	if other != nil && other.Late() && !c.queue.Shared() {
		// The late answer is already recorded and kept.
		permit, err := c.applyLate(other)
		return permit, nil, err
	}
	if d.Decision != queue.Once && e.Call.FactsDigest() != c.OwnGrant().Digest {
		// The person was asked about other files than the ones that are there now.
		d.Decision = queue.Once
		answer := *c.answer
		answer.Note = withNote("what the answer would be bound to changed while it was asked for, so it holds once", answer.Note)
		c.answer = &answer
	}
	permit, err := c.allow(d.Decision, d.Values)
	return permit, nil, err
}

// oneByOne waits until no other decision is being made, and returns the function that
// lets the next one begin. Where replicas share the questions, the store keeps decisions
// apart, and what makes an answer hold for more than its call is the call.
func (g *Gate) oneByOne() (done func()) {
	if g.queue.Shared() {
		return func() {}
	}
	g.deciding.Lock()
	return g.deciding.Unlock
}

// takeBack takes back the grant that a ruling made.
func (c *check) takeBack(r *queue.Ruling) {
	kept, _ := r.Settled()
	if kept == "" {
		return
	}
	if err := c.book.TakeBack(&c.Call.Caller, kept); err != nil {
		c.logger.Error("an answer that was taken back may still be kept", "err", err, "hint", "packs-mcp approvals grants")
	}
}

// allow records a person's answer, keeps it for later calls if it says so, and only
// then allows the call.
func (c *check) allow(d queue.Decision, values map[string]string) (*Permit, error) {
	p := c.newPermit()
	p.values = values
	if err := c.keepAnswer(d, c.answer.Channel, func(d queue.Decision, reason string) error {
		return c.record(d, c.answer.Channel, withNote(reason, c.answer.Note), p.run)
	}); err != nil {
		return nil, err
	}
	return p, nil
}
