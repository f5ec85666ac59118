package gate

import (
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/deciders"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// maxWrong is how many wrong answers a chat may give on its cards. After that, its
// cards decide nothing.
const maxWrong = 3

// noteWrong is the log's note for a question that was denied because somebody
// answered it without its secret.
const noteWrong = "an answer came with a wrong code, as a model would send it"

// A ChatQuestion is an open question as the card in its chat shows it.
type ChatQuestion struct {
	queue.Pending        // Choices are those of the card: once, if it may be allowed there, and deny
	See           string // how a person can see all of it elsewhere; empty: they cannot
	Secret        string // an answer must contain it; see [Gate.DecideInChat]
}

// ShowsInChat reports whether a caller's person is asked on cards in the chat: the
// user configured it, the client shows cards and cannot ask by itself, and the chat
// has not given too many wrong answers.
func (g *Gate) ShowsInChat(c call.Caller) bool {
	if !c.Cards || !g.ask.Has(queue.ChannelApp) || c.CanAsk && g.ask.Has(queue.ChannelElicitation) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wrong[c.Chat] < maxWrong
}

// InChat returns the open questions of a caller's chat for its card, oldest first.
// Each has a secret that must reach the card but no model.
func (g *Gate) InChat(c call.Caller) []ChatQuestion {
	if !g.ShowsInChat(c) {
		return nil
	}
	var all []ChatQuestion
	for _, p := range g.queue.Pending() {
		if p.Chat != c.Chat || p.Carried || p.Answered != queue.Deny {
			continue
		}
		p.Choices = onCard(p)
		all = append(all, ChatQuestion{Pending: p, See: g.ask.See(p.Code), Secret: g.queue.Secret(p.Chat, p.Code)})
	}
	return all
}

// onCard returns the answers that the card in a chat accepts. Only the client says
// that a person pressed it, so it allows nothing beyond one call.
func onCard(p queue.Pending) []queue.Choice {
	var choices []queue.Choice
	for _, c := range p.Choices {
		switch {
		case c.Value == queue.Deny.String():
			choices = append(choices, c)
		case c.Value == string(queue.Once) && p.Limit == "":
			choices = append(choices, policy.Once())
		}
	}
	return choices
}

// DecideInChat answers a question of a caller's chat, as its card does. secret is the
// question's, from [Gate.InChat]. It reports whether the answer counts.
//
// Only the secret distinguishes the card's answer from a model's. An answer without
// it denies every waiting call of the chat, and the log says so. After three such
// answers the chat gets no more cards. A choice that the card does not offer is a
// denial.
func (g *Gate) DecideInChat(c call.Caller, secret, decision string) bool {
	if !g.ShowsInChat(c) {
		return false
	}
	code, ok := g.queue.OfSecret(c.Chat, secret)
	if !ok {
		g.wrongInChat(c)
		return false
	}
	by := deciders.Asker(&c)
	v := queue.Verdict{Channel: queue.ChannelApp, By: &by}
	d, known := queue.ParseDecision(decision)
	for _, p := range g.queue.Pending() {
		if p.Code != code || p.Chat != c.Chat {
			continue
		}
		if v.Decision = d; !known || !queue.Offers(onCard(p), d) {
			v.Decision, v.Nobody, v.Note = queue.Deny, true, "an answer came that the card does not offer"
		}
		_, err := g.Decide(code, v)
		return err == nil && !v.Nobody
	}
	return false // it was already answered, or has ended
}

// wrongInChat denies all waiting calls of a chat, after an answer without a secret.
func (g *Gate) wrongInChat(c call.Caller) {
	g.mu.Lock()
	g.wrong[c.Chat]++
	g.mu.Unlock()
	g.Refused(lines.Refusal{Caller: c, Method: "approval card", Code: codeOfDenials, Reason: noteWrong})
	by := deciders.Asker(&c)
	for _, p := range g.queue.Pending() {
		if p.Chat == c.Chat && !p.Carried {
			// An error means that the question has ended meanwhile, or that the log
			// cannot be written. Nothing is allowed in either case.
			_, _ = g.Decide(p.Code, queue.Verdict{Decision: queue.Deny, Channel: queue.ChannelApp, By: &by, Nobody: true, Note: noteWrong})
		}
	}
}

// showsCard reports whether the person is asked on a card in the chat.
func (c *check) showsCard() bool { return !c.elicits() && c.ShowsInChat(c.Call.Caller) }

// byCard reports whether the card in the chat can allow the request. Then the call
// does not wait: the client shows the card when the model asks for it.
func (c *check) byCard() bool { return c.showsCard() && c.limit() == "" }

// limit returns why the card in a chat cannot allow the request, or "" if it can.
func (c *check) limit() string {
	r := c.Call
	switch {
	case !c.selfDecides():
		return "Others decide about this, so this card can only deny it. It may be allowed by " + c.need().String() + "."
	case !r.Pack.Trusted():
		return "The pack is not trusted, so this card can only deny it."
	case len(r.Fields) > 0:
		return "It needs a value from you, which this card cannot take, so it can only deny it."
	case r.AlwaysAsk || c.Always:
		return "You are to be asked about this each time, so this card can only deny it."
	case policy.ReachesNetwork(r):
		return "It can send data to other machines, so this card can only deny it."
	}
	return ""
}

// unaskedInChat returns the denial of a request that only the card could show but
// cannot allow.
func (c *check) unaskedInChat() error {
	return unasked(c.deny("the card in the chat cannot allow this, and nobody could be asked elsewhere: "+c.limit(),
		"Tell the user: with page or terminal in approval.channels, in the configuration, they can answer there. This was about: "+prompt.Title(&c.Call.Request)))
}
