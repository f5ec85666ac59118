package gate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/private"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// What a denial says while the store that replicas share cannot be reached.
const (
	unreachable = "the store of approvals that this server shares with others cannot be reached"
	tryLater    = "Nothing can be decided until it can. Tell the user, who can tell the server's administrator; make the call again later."
)

// loadGrants reads what holds in every chat. Its error is a denial: if we cannot
// tell what was allowed, nothing is.
func (g *Gate) loadGrants() ([]grants.Grant, *DeniedError) {
	all, err := g.book.Everywhere()
	if err == nil {
		return all, nil
	}
	if errors.Is(err, grants.ErrUnavailable) {
		g.logger.Error("the store that replicas share cannot be read; calls are denied", "err", err)
		return nil, &DeniedError{
			Reason:      unreachable,
			Hint:        tryLater,
			Unavailable: true,
		}
	}
	g.logger.Error("the file of grants is refused; every call is denied", "err", err)
	why := "the file cannot be read" // the error itself may hold paths; it goes to the server's log only
	if refused, ok := errors.AsType[*private.RefusedError](err); ok {
		why = safetext.Line(refused.Reason)
	}
	return nil, &DeniedError{
		Reason: "the user's remembered approvals cannot be trusted: " + why,
		Hint: "Nothing may happen until the user has looked at that file. Tell them: packs-mcp approvals grants says what is wrong, " +
			"and packs-mcp approvals revoke --all starts over.",
	}
}

// granted returns a person's answer that covers the request, for the chat or for
// every chat. stored are the answers for every chat.
func (c *check) granted(stored []grants.Grant) (d queue.Decision, grant grants.Grant, ok bool) {
	if d, grant, ok = c.find(c.OwnGrant(), stored); !ok && c.Call.IsUse() {
		d, grant, ok = c.find(c.UseGrant(), stored)
	}
	return d, grant, ok
}

// find returns a grant with the facts of would that counts for the request.
func (c *check) find(would *grants.Grant, stored []grants.Grant) (d queue.Decision, grant grants.Grant, ok bool) {
	holds := func(g grants.Grant) bool {
		return c.who.GiverMay(c.Call, g) && g.Void == nil && g.Digest == would.Digest && would.Digest == call.DigestOf(g.Facts) && (g.Policy == would.Policy || g.Policy == c.Policy)
	}
	chat := c.book.InChat(&c.Call.Caller)
	if i := slices.IndexFunc(chat, func(g grants.Grant) bool { return holds(g) && !c.ended(g, 0) }); i >= 0 {
		return queue.Chat, chat[i], true
	}
	if i := slices.IndexFunc(stored, func(g grants.Grant) bool { return holds(g) && c.Counts(g) }); i >= 0 {
		return queue.Always, stored[i], true
	}
	return queue.Deny, grants.Grant{}, false
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

// keepGrant makes a person's answer hold for more than this call. It records the
// answer by calling record. If the answer cannot be kept, it holds for this call
// alone.
func (g *Gate) keepGrant(grant grants.Grant, caller *call.Caller, d queue.Decision, record func(grants.Grant, queue.Decision, string) error) error {
	grant.Since = g.now().UTC()
	var unrecorded error
	first := func(kept grants.Grant) error {
		unrecorded = record(kept, d, "")
		return unrecorded
	}
	var err error
	if d == queue.Chat {
		err = g.book.KeepInChat(caller, grant, first)
	} else {
		err = g.book.Keep(grant, first)
	}
	switch {
	case err == nil:
		return nil
	case unrecorded != nil:
		return unrecorded
	case errors.Is(err, grants.ErrNoRoom):
		return record(grant, queue.Once, "the chats of this person have no room to remember it")
	}
	g.logger.Warn("an answer could not be kept, and holds for this call alone", "err", err)
	// The log may already say that it is kept, so record what is true now.
	return record(grant, queue.Once, whyOnce(err))
}

// whyOnce says in the log why an answer that could not be kept holds once.
func whyOnce(err error) string {
	if errors.Is(err, grants.ErrUnknown) {
		return "whether it is kept for later calls is not known; packs-mcp approvals grants shows it"
	}
	return "it could not be kept for later calls"
}

// sinceWords says when a grant was given, for a question.
func sinceWords(g grants.Grant) string {
	return "since your answer of " + day(g.Since)
}

// day is a point in time as people read it.
func day(t time.Time) string { return t.Local().Format("2 January 2006, 15:04") }

// ChatGrants returns what was allowed in the chats that have not ended, oldest
// first. It includes grants that are void.
func (g *Gate) ChatGrants() []grants.InChat { return g.book.InChats() }

// RevokeChatGrant takes back the chat grant with this id, and reports whether there
// is one. The log has it before the grant ends; if there is an error, the grant
// still holds.
func (g *Gate) RevokeChatGrant(id string) (found bool, err error) {
	all := g.ChatGrants()
	i := slices.IndexFunc(all, func(c grants.InChat) bool { return c.ID == id })
	if i < 0 {
		return false, nil
	}
	gone := all[i]
	e := g.author.Revoked(gone)
	if err := g.failed(e, g.log.Append(e)); err != nil {
		return true, err
	}
	return true, g.book.Drop(gone)
}
