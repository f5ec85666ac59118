package gate

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/private"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Bounds of what chats remember. A chat's oldest grants are dropped first; the next
// call that needs one asks again.
const (
	maxChatGrants = 1000     // of one chat
	maxChatBytes  = 64 << 20 // of all chats; each person has an equal share
)

// A remembered chat holds what was allowed in it.
type remembered struct {
	person string
	client string  // its latest name for itself
	grants []Grant // oldest first
	bytes  int
}

// loadGrants reads what holds in every chat. Its error is a denial: if we cannot
// tell what was allowed, nothing is.
func (g *Gate) loadGrants() ([]Grant, *DeniedError) {
	if g.store == nil {
		return nil, nil
	}
	all, err := g.store.Load()
	if err == nil {
		return all, nil
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
func (c *check) granted(stored []Grant) (d queue.Decision, grant Grant, ok bool) {
	if d, grant, ok = c.find(c.ownGrant(), stored); !ok && c.call.IsUse() {
		d, grant, ok = c.find(c.useGrant(), stored)
	}
	return d, grant, ok
}

// find returns a grant with the facts of would that counts for the request.
func (c *check) find(would *Grant, stored []Grant) (d queue.Decision, grant Grant, ok bool) {
	holds := func(g Grant) bool {
		return g.Void == nil && g.Digest == would.Digest && would.Digest == call.DigestOf(g.Facts) && (g.Policy == would.Policy || g.Policy == c.policy)
	}
	c.mu.Lock()
	chat := c.inChat(c.call.Caller.Chat)
	i := slices.IndexFunc(chat, holds)
	if i >= 0 {
		grant = chat[i]
	}
	c.mu.Unlock()
	if i >= 0 {
		return queue.Chat, grant, true
	}
	if i := slices.IndexFunc(stored, func(g Grant) bool { return holds(g) && c.counts(g) }); i >= 0 {
		return queue.Always, stored[i], true
	}
	return queue.Deny, Grant{}, false
}

// ownGrant returns the grant for calls of the request's own kind. It is made once.
func (c *check) ownGrant() *Grant {
	if c.own == nil {
		g := newGrant(c.call)
		c.own = &g
	}
	return c.own
}

// useGrant returns the grant for using the request's pack. It is made once. Under
// the policy balanced it also lets some runs go unasked, which an answer under
// another policy did not say; so the grant names the policy.
func (c *check) useGrant() *Grant {
	if c.use == nil {
		g := newUseGrant(c.call)
		if c.policy == PolicyBalanced {
			g.Policy = c.policy
		}
		c.use = &g
	}
	return c.use
}

// wouldGrant returns the grant that an answer for more than this call would make.
// When the request opens a pack, that is the grant for using the pack. The policy
// balanced asks once about a pack, so there it is the grant for using the pack
// whichever call comes first.
func (c *check) wouldGrant() *Grant {
	if c.call.IsUse() && (c.call.Kind == call.KindOpen || c.policy == PolicyBalanced) {
		return c.useGrant()
	}
	return c.ownGrant()
}

// related returns the grants that bear on whether the request is asked about.
func (c *check) related() []*Grant {
	all := []*Grant{c.ownGrant()}
	if c.call.IsUse() || c.policy == PolicyBalanced && c.call.Kind == call.KindRun {
		all = append(all, c.useGrant())
	}
	return all
}

// changedSince returns the newest grant with the request's subject that does not
// cover it, and what changed since, in words. It voids the grants whose pack, tool
// or program is no longer what was approved.
func (c *check) changedSince(stored []Grant) (since Grant, changes []string) {
	related := c.related()
	// now returns the grant that g would have to be today, or nil if g is still
	// that grant or is about something else.
	now := func(g Grant) *Grant {
		i := slices.IndexFunc(related, func(n *Grant) bool { return n.Subject == g.Subject && n.Digest != g.Digest })
		if i < 0 {
			return nil
		}
		return related[i]
	}
	look := func(g Grant) {
		if n := now(g); n != nil && g.Since.After(since.Since) {
			since, changes = g, g.changes(n)
		}
	}
	// void returns what ends g, or nil if g holds. A grant that is void stays as it
	// is.
	void := func(g Grant) *Void {
		if n := now(g); n != nil && g.Void == nil && g.contentChanged(n) {
			return &Void{At: c.now().UTC(), Changes: g.changes(n)}
		}
		return g.Void
	}
	c.mu.Lock()
	inChat := c.inChat(c.call.Caller.Chat)
	for i, g := range inChat {
		look(g)
		inChat[i].Void = void(g)
	}
	c.mu.Unlock()
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

// void marks the stored grants that have ended.
func (c *check) void(void func(Grant) *Void) {
	err := c.store.Update(func(all []Grant) ([]Grant, error) {
		for i, g := range all {
			all[i].Void = void(g)
		}
		return all, nil
	})
	if err != nil {
		// The grants are bound to what changed, so they allow nothing now anyway.
		c.logger.Warn("grants that no longer hold could not be marked", "err", err)
	}
}

// errNotRecorded is returned when the log did not take the decision.
var errNotRecorded = errors.New("the decision could not be recorded")

// keepGrant makes a person's answer hold for more than this call. It records the
// answer by calling record. If the answer cannot be kept, it holds for this call
// alone.
func (g *Gate) keepGrant(grant Grant, caller *call.Caller, d queue.Decision, record func(Grant, queue.Decision, string) error) error {
	grant.Since = g.now().UTC()
	if d == queue.Chat {
		grant.ID = newChatGrantID()
		g.mu.Lock()
		_, fits := g.withChat(caller, grant)
		g.mu.Unlock()
		if !fits {
			return record(grant, queue.Once, "the chats of this person have no room to remember it")
		}
		if err := record(grant, d, ""); err != nil {
			return err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if now, fits := g.withChat(caller, grant); fits {
			g.chats[caller.Chat] = now
		}
		return nil
	}
	err := g.store.Update(func(all []Grant) ([]Grant, error) {
		all = slices.DeleteFunc(all, func(have Grant) bool { return replaces(grant, have) })
		for slices.ContainsFunc(all, func(have Grant) bool { return have.ID == grant.ID }) && len(grant.ID) < len(grant.Digest) {
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
	g.logger.Warn("an answer could not be kept, and holds for this call alone", "err", err)
	// The log may already say that it is kept, so record what is true now.
	return record(grant, queue.Once, "it could not be kept for later calls")
}

// withChat returns what a chat remembers after one more grant is added. fits is
// false if there is no room, because other chats of the same person fill it. The
// caller holds mu.
func (g *Gate) withChat(caller *call.Caller, grant Grant) (_ *remembered, fits bool) {
	room := maxChatBytes / g.people
	for id, c := range g.chats {
		if id != caller.Chat && c.person == grant.Person {
			room -= c.bytes
		}
	}
	all := []Grant{grant}
	if have := g.chats[caller.Chat]; have != nil {
		all = append(slices.DeleteFunc(slices.Clone(have.grants), func(have Grant) bool { return replaces(grant, have) }), grant)
	}
	now := &remembered{person: grant.Person, client: caller.Client}
	from := len(all)
	for ; from > max(0, len(all)-maxChatGrants); from-- {
		size := all[from-1].size()
		if now.bytes+size > room {
			break
		}
		now.bytes += size
	}
	now.grants = all[from:]
	return now, len(now.grants) > 0
}

// size returns how many bytes a grant takes up, not counting the files of its pack,
// which all requests about the pack share.
func (g Grant) size() int {
	g.Files = nil
	return int(reflect.TypeFor[Grant]().Size()) + call.Size(g)
}

// inChat returns the grants of a chat. The caller holds mu.
func (g *Gate) inChat(chat string) []Grant {
	if have := g.chats[chat]; have != nil {
		return have.grants
	}
	return nil
}

// replaces reports whether a new grant takes the place of one that is kept: the
// same grant, or a void one for the same thing or a part of it.
func replaces(grant, have Grant) bool {
	return have.Digest == grant.Digest || have.Void != nil && (have.Subject == grant.Subject || grant.includes(have))
}

// ungrant takes back the grant with this digest because a denial followed it.
func (g *Gate) ungrant(digest, chat string) error {
	is := func(have Grant) bool { return have.Digest == digest }
	g.mu.Lock()
	if have := g.chats[chat]; have != nil {
		have.drop(is)
	}
	g.mu.Unlock()
	if g.store == nil {
		return nil
	}
	stored, err := g.store.Load()
	if err != nil || !slices.ContainsFunc(stored, is) {
		return err
	}
	return g.store.Update(func(all []Grant) ([]Grant, error) { return slices.DeleteFunc(all, is), nil })
}

// sinceWords says when a grant was given, for a question.
func sinceWords(g Grant) string {
	return "since your answer of " + day(g.Since)
}

// day is a point in time as people read it.
func day(t time.Time) string { return t.Local().Format("2 January 2006, 15:04") }
