package gate

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/quota"
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
	return unavailable(c.deny(unreachable, tryLater))
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
		return &answers.Answer{State: q.State, Channel: queue.ChannelElicitation, Reason: q.whyNoAnswer()}, nil
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
	why := q.whyNoAnswer()
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
