package gate

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// elicits reports whether the client shows the question.
func (c *check) elicits() bool {
	return !c.unshown && c.selfDecides() && c.Call.Caller.CanAsk && c.ask.Has(queue.ChannelElicitation)
}

// holder returns who holds the question that the request leads to.
func (c *check) holder() queue.Holder {
	switch {
	case !c.elicits():
		return queue.HeldByCall
	case c.Call.Caller.Carries:
		return queue.HeldByClient
	default:
		return queue.HeldByForm
	}
}

// question asks about the request. It adds an entry to the queue and returns a
// question that the client can carry.
func (c *check) question(stored []grants.Grant) (*Permit, *Question, error) {
	if why := c.nobodyMay(); why != "" {
		return nil, nil, unasked(c.deny(why, "Do not try it in another way. Tell the user who may allow this, and that these people cannot be asked here."))
	}
	if c.showsCard() && !c.byCard() && !c.ask.Elsewhere() {
		return nil, nil, c.unaskedInChat()
	}
	if !c.elicits() && !c.ask.Elsewhere() && !c.showsCard() {
		return nil, nil, unasked(c.deny("this client cannot show questions, so nobody could be asked",
			"Tell the user: every call needs a person's approval, this client does not support MCP elicitation, and the configuration has no other channel. "+
				"With approval.channels: [page, terminal] they are asked on a page or in a terminal; or they can try the pack with: packs-mcp try PACK_DIR"))
	}
	earlier, changed, err := c.book.ChangedSince(&c.Call.Caller, c.Related(), stored, c.now())
	if err != nil {
		c.logger.Warn("grants that no longer hold could not be marked", "err", err)
	}
	c.changed = changed
	ask := prompt.Ask{Box: c.box, Since: sinceWords(earlier), Changed: changed, Rule: c.short, Approvers: c.need().String()}
	if c.scan != nil && c.Call.Pack.Dir != "" {
		ask.Scan = c.scan(&c.Call.Pack)
	}
	card, err := prompt.New(&c.Call.Request, ask)
	const smaller = "Make a smaller call: split it, or put long text in a file that the call names."
	if err != nil {
		return nil, nil, c.deny(err.Error(), smaller)
	}
	ticket, err := c.queue.Add(&queue.Entry{Call: c.Call, Box: c.box, Changed: changed}, queue.Pending{
		Chat: c.Call.Caller.Chat, Client: safetext.Line(c.Call.Caller.Client), Person: safetext.Line(c.Call.Caller.Person), Kind: c.Call.Kind,
		Pack: prompt.Name(c.Call.Pack.ID), Title: card.Title, Card: card, Choices: c.Choices(), Fields: c.Call.Fields,
		Asked: c.now(), Waits: c.waits(), Expires: c.now().Add(c.pending), Limit: c.limit(),
	}, c.holder())
	over, isOver := errors.AsType[*quota.Exceeded](err)
	switch {
	case isOver:
		return nil, nil, c.deniedOver(fmt.Sprintf("the limit for calls of %s that wait for an answer is reached: %d (%s)", over.Who(), over.Most, over.Setting("questions")),
			"Nobody was asked. Call again when some of those have been answered, or tell the user.")
	case errors.Is(err, queue.ErrTooLong):
		return nil, nil, c.deny(err.Error(), smaller)
	case errors.Is(err, queue.ErrFull):
		return nil, nil, c.deny(err.Error(), "Wait until the user has answered some, and call again.")
	case err != nil:
		return nil, nil, c.undecided(err)
	}
	return nil, c.carried(ticket), nil
}

// undecided returns the denial of a call whose question cannot be made or changed.
func (c *check) undecided(err error) error {
	if !errors.Is(err, queue.ErrUnavailable) {
		return c.deny(err.Error(), "")
	}
	c.logger.Error("the store that replicas share cannot be reached; a call is denied", "err", err)
	denied := c.deny(unreachable, tryLater)
	if e, ok := errors.AsType[*DeniedError](denied); ok {
		e.Unavailable = true
	}
	return denied
}

// deniedOver is deny for a call that would be over a limit of its person, or of a group.
func (c *check) deniedOver(reason, hint string) error {
	err := c.deny(reason, hint)
	if e, ok := errors.AsType[*DeniedError](err); ok && e.Reason == reason { // it could be recorded
		e.OverLimit = true
	}
	return err
}

// unasked marks a denial that no person decided because nobody could be asked.
func unasked(err error) error {
	if e, ok := errors.AsType[*DeniedError](err); ok {
		e.Unasked = true
	}
	return err
}

// invalid marks the denial of an answer whose state belongs to no open question
// about the call.
func invalid(err error) error {
	if e, ok := errors.AsType[*DeniedError](err); ok {
		e.Invalid = true
	}
	return err
}

// waits returns when the call stops waiting for an answer. It is zero if the call
// does not wait.
func (c *check) waits() time.Time {
	if c.holder() == queue.HeldByClient {
		return time.Time{}
	}
	return c.now().Add(c.patience())
}

// usualWait is how long a call waits if its client is unknown. Some clients give up
// after a minute.
const usualWait = 45 * time.Second

// patience returns how long the call waits for an answer.
func (c *check) patience() time.Duration {
	if c.byCard() {
		return 0
	}
	if c.wait > 0 {
		return c.wait
	}
	// Keep half of the time for answers that come after the call has returned.
	return min(cmp.Or(c.Call.Caller.Wait, usualWait), c.pending/2)
}

// carried returns a queue's ticket as the question that the client gets.
func (c *check) carried(t *queue.Ticket) *Question {
	see := c.ask.See(t.Shown.Code)
	form := prompt.Form{Card: t.Shown.Card, Pack: t.Shown.Pack, See: see}
	for _, ch := range t.Shown.Choices {
		form.Answers = append(form.Answers, ch.Means)
	}
	return &Question{
		Kind: string(t.Shown.Kind), Title: t.Shown.Title, Card: t.Shown.Card, Form: form.Text(), Choices: t.Shown.Choices, Fields: t.Shown.Fields,
		State: t.State, Expires: t.Shown.Expires, Code: t.Shown.Code, Elicit: c.elicits(), InChat: c.byCard(), See: see, Decided: t.Decided, Taken: t.Taken,
		Wait: c.patience(), Waiting: c.waitingFor(t.Shown.Code), nonce: t.Nonce,
	}
}

// renew asks a question of the queue again. Its error is a denial.
func (c *check) renew(e *queue.Entry, note string) (*Question, error) {
	ticket, err := c.queue.Renew(e, c.holder(), c.waits(), c.now().Add(c.pending), note)
	switch {
	case errors.Is(err, queue.ErrEnded):
		return nil, c.deny(err.Error(), "Make the call again; the user will then be asked.")
	case err != nil:
		return nil, c.undecided(err)
	}
	return c.carried(ticket), nil
}

// Answered returns what was decided about a question on the page or in the
// terminal, or nil if nothing was yet. Pass it to Check like any other answer.
func (g *Gate) Answered(q *Question) *answers.Answer {
	r := g.queue.RulingOn(q.nonce)
	if r == nil {
		return nil
	}
	return answers.FromRuling(r, q.State)
}

// Postpone ends the wait of a call that has waited long enough. If a person can
// still answer on the page or in the terminal, the question stays open without the
// call, and the error is a [*PendingError], or a denial if that could not be
// recorded. If the same call was made again and has taken the question, the
// question stays open for that call, and the error is a [*PendingError] too.
// Otherwise Postpone returns an answer: the one that came at this moment, or an
// empty one, which is a denial.
func (g *Gate) Postpone(q *Question) (*answers.Answer, error) {
	select {
	case <-q.Taken:
		return nil, &PendingError{
			Code: q.Code, Expires: q.Expires,
			Hint: "The same call was made again, and waits for the answer in place of this one. Its result is there; do not make the call once more for this one.",
		}
	default:
	}
	if !g.ask.Elsewhere() && !q.InChat {
		return &answers.Answer{State: q.State, Channel: queue.ChannelElicitation, Reason: q.unanswered()}, nil
	}
	e, shown, answer, err := g.queue.Leave(q.nonce, "The call has returned. Your answer holds once, when the client makes the call again.")
	switch {
	case err != nil:
		return &answers.Answer{State: q.State, Reason: unreachable}, nil
	case e == nil:
		return &answers.Answer{State: q.State, Reason: "the question is no longer open"}, nil
	case answer != nil:
		return answers.FromRuling(answer, q.State), nil
	}
	c := &check{Gate: g, box: e.Box, Case: g.caseOf(e.Call), changed: e.Changed, atOnce: q.InChat}
	p := &PendingError{Code: shown.Code, Expires: shown.Expires, InChat: q.InChat}
	why := q.unanswered()
	if q.InChat {
		why = "the client can show it on a card"
	}
	if err := c.recordPending(fmt.Sprintf("%s; the question stays open until %s", why, queue.Clock(p.Expires))); err != nil {
		g.queue.Drop(e, "the question could not be recorded")
		return nil, err
	}
	switch {
	case q.InChat && g.ask.Elsewhere():
		p.Hint = "They can also answer " + g.ask.Where(q.Code) + "."
		return nil, p
	case q.InChat:
		return nil, p
	}
	if !c.selfDecides() {
		p.Hint = "Tell the user that this does not wait for them: it may be allowed by " + c.need().String() +
			". Make exactly the same call again to keep waiting; the answer holds for it."
		return nil, p
	}
	p.Hint = "Tell the user that this waits for them: they can answer " + g.ask.Where(q.Code) +
		" (or deny). Make exactly the same call again to keep waiting; the answer holds for it. A person answers: do not run packs-mcp approvals yourself."
	return nil, p
}

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

// unanswered handles a question that the client answered without a person. The
// person is asked elsewhere, as for a client that cannot ask. If that is not
// possible, the call is denied.
func (c *check) unanswered(why string) (*Permit, *Question, error) {
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
		return c.unanswered(why)
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

// keepAnswer makes an answer hold for as long as it says. It records the answer by
// calling record.
func (c *check) keepAnswer(d queue.Decision, channel string, record func(d queue.Decision, reason string) error) error {
	g := c.WouldGrant().Clone()
	g.Channel = channel
	if c.need().Any() {
		by := c.answeredBy()
		g.By = &by
	}
	keep := d
	switch {
	case d == queue.Chat:
		g.Covers = fmt.Sprintf("%s, %s", prompt.Scope(&c.Call.Request, g.Kind), prompt.Until(&c.Call.Request))
	case d == queue.Always:
		g.Covers = prompt.Scope(&c.Call.Request, g.Kind)
	case c.FirstRunOnly() && c.Keeps && channel != queue.ChannelApp:
		keep = queue.Always
		g.Policy = policy.FirstRun
		g.Covers = prompt.Scope(&c.Call.Request, g.Kind) + ", which says that it changes nothing"
	default:
		return record(d, "")
	}
	return c.keepGrant(g, &c.Call.Caller, keep, func(g grants.Grant, kept queue.Decision, reason string) error {
		c.grant = g.ID
		if kept == keep {
			kept = d // record what the person chose, although a first run keeps "once"
		} else {
			c.grant = ""
		}
		return record(kept, reason)
	})
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
