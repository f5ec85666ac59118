package gate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
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
	if g.store == nil {
		return nil, nil
	}
	all, err := g.store.Load()
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
	chat := c.chatsOf(&c.Call.Caller).Of(c.Call.Caller.Chat)
	if i := slices.IndexFunc(chat, func(g grants.Grant) bool { return holds(g) && !c.ended(g) }); i >= 0 {
		return queue.Chat, chat[i], true
	}
	if i := slices.IndexFunc(stored, func(g grants.Grant) bool { return holds(g) && c.Counts(g) }); i >= 0 {
		return queue.Always, stored[i], true
	}
	return queue.Deny, grants.Grant{}, false
}

// changedSince returns the newest grant with the request's subject that does not
// cover it, and what changed since, in words. It voids the grants whose pack, tool
// or program is no longer what was approved.
func (c *check) changedSince(stored []grants.Grant) (since grants.Grant, changes []string) {
	related := c.Related()
	// now returns the grant that g would have to be today, or nil if g is still
	// that grant or is about something else.
	now := func(g grants.Grant) *grants.Grant {
		i := slices.IndexFunc(related, func(n *grants.Grant) bool { return n.Subject == g.Subject && n.Digest != g.Digest })
		if i < 0 {
			return nil
		}
		return related[i]
	}
	look := func(g grants.Grant) {
		if n := now(g); n != nil && g.Since.After(since.Since) {
			since, changes = g, g.Changes(n)
		}
	}
	// void returns what ends g, or nil if g holds. A grant that is void stays as it
	// is.
	void := func(g grants.Grant) *grants.Void {
		if n := now(g); n != nil && g.Void == nil && g.ContentChanged(n) {
			return &grants.Void{At: c.now().UTC(), Changes: g.Changes(n)}
		}
		return g.Void
	}
	chats := c.chatsOf(&c.Call.Caller)
	for _, g := range chats.Of(c.Call.Caller.Chat) {
		look(g)
	}
	if err := chats.Void(c.Call.Caller.Chat, void); err != nil {
		c.logger.Warn(unmarked, "err", err)
	}
	voids := false
	for _, g := range stored {
		look(g)
		voids = voids || void(g) != g.Void
	}
	if voids {
		c.void(void)
	}
	return since, changes
}

// unmarked is a warning only: the grants are bound to what changed, so they allow nothing
// now anyway.
const unmarked = "grants that no longer hold could not be marked"

// void marks the stored grants that have ended.
func (c *check) void(void func(grants.Grant) *grants.Void) {
	err := c.store.Update(func(all []grants.Grant) ([]grants.Grant, error) {
		for i, g := range all {
			all[i].Void = void(g)
		}
		return all, nil
	})
	if err != nil {
		c.logger.Warn(unmarked, "err", err)
	}
}

// errNotRecorded is returned when the log did not take the decision.
var errNotRecorded = errors.New("the decision could not be recorded")

// keepGrant makes a person's answer hold for more than this call. It records the
// answer by calling record. If the answer cannot be kept, it holds for this call
// alone.
func (g *Gate) keepGrant(grant grants.Grant, caller *call.Caller, d queue.Decision, record func(grants.Grant, queue.Decision, string) error) error {
	grant.Since = g.now().UTC()
	if d == queue.Chat {
		grant.ID = grants.NewChatID()
		chats := g.chatsOf(caller)
		if !chats.Fits(caller, grant) {
			return record(grant, queue.Once, "the chats of this person have no room to remember it")
		}
		// The log comes first: no grant holds that is not in it.
		if err := record(grant, d, ""); err != nil {
			return err
		}
		if err := chats.Add(caller, grant); err != nil {
			g.logger.Warn(notKept, "err", err)
			return record(grant, queue.Once, whyOnce(err))
		}
		return nil
	}
	err := g.store.Update(func(all []grants.Grant) ([]grants.Grant, error) {
		all = slices.DeleteFunc(all, grant.Replaces)
		for slices.ContainsFunc(all, func(have grants.Grant) bool { return have.ID == grant.ID }) && len(grant.ID) < len(grant.Digest) {
			grant.ID = grant.Digest[:len(grant.ID)+1]
		}
		// The log comes first: no grant holds that is not in it.
		if err := record(grant, d, ""); err != nil {
			return nil, errors.Join(errNotRecorded, err)
		}
		return append(all, grant), nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNotRecorded):
		if denied, ok := errors.AsType[*DeniedError](err); ok {
			return denied
		}
		return err
	}
	g.logger.Warn(notKept, "err", err)
	// The log may already say that it is kept, so record what is true now.
	return record(grant, queue.Once, whyOnce(err))
}

const notKept = "an answer could not be kept, and holds for this call alone"

// whyOnce says in the log why an answer that could not be kept holds once.
func whyOnce(err error) string {
	if errors.Is(err, grants.ErrUnknown) {
		return "whether it is kept for later calls is not known; packs-mcp approvals grants shows it"
	}
	return "it could not be kept for later calls"
}

// ungrant takes back the grant with this digest because a denial followed it.
func (g *Gate) ungrant(digest string, caller *call.Caller) error {
	is := func(have grants.Grant) bool { return have.Digest == digest }
	if err := g.chatsOf(caller).Drop(caller.Chat, is); err != nil {
		return err
	}
	if g.store == nil {
		return nil
	}
	stored, err := g.store.Load()
	if err != nil || !slices.ContainsFunc(stored, is) {
		return err
	}
	return g.store.Update(func(all []grants.Grant) ([]grants.Grant, error) { return slices.DeleteFunc(all, is), nil })
}

// sinceWords says when a grant was given, for a question.
func sinceWords(g grants.Grant) string {
	return "since your answer of " + day(g.Since)
}

// day is a point in time as people read it.
func day(t time.Time) string { return t.Local().Format("2 January 2006, 15:04") }

// ChatGrants returns what was allowed in the chats that have not ended, oldest
// first. It includes grants that are void.
func (g *Gate) ChatGrants() []grants.InChat {
	all := g.chats.All()
	if g.common != nil {
		all = append(all, g.common.All()...)
		slices.SortStableFunc(all, func(a, b grants.InChat) int { return a.Since.Compare(b.Since) })
	}
	return all
}

// chatsOf returns where the answers for the chat of a caller are kept.
func (g *Gate) chatsOf(c *call.Caller) grants.ChatStore {
	if c.Shared && g.common != nil {
		return g.common
	}
	return g.chats
}

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
	e := audit.Entry{
		Event: audit.EventRevoke, Server: g.server, Chat: gone.Chat, Caller: gone.Person, Client: gone.Client, Kind: string(gone.Kind),
		Pack: gone.Pack, Tool: gone.Tool, Dir: gone.Dir, Channel: queue.ChannelTerminal, Grant: gone.ID,
		Reason: fmt.Sprintf("the grant %s of %s, for a chat", gone.ID, gone.Since.UTC().Format(time.RFC3339)),
	}
	if err := g.failed(e, g.log.Append(e)); err != nil {
		return true, err
	}
	is := func(have grants.Grant) bool { return have.ID == id }
	err = g.chats.Drop(gone.Chat, is)
	if g.common != nil {
		err = errors.Join(err, g.common.Drop(gone.Chat, is))
	}
	return true, err
}
