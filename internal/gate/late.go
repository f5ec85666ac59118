package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// stillKept reports whether what a ruling made to hold for more than its call
// is still there: nobody revoked it, and nothing made it void. A ruling about one
// call is.
func (c *check) stillKept(r *ruling) bool {
	if r.settled() != nil || r.kept == "" {
		return true // held tells of the former
	}
	is := func(g Grant) bool { return g.Digest == r.kept && g.Void == nil }
	c.mu.Lock()
	kept := slices.ContainsFunc(c.inChat(c.call.Caller.Chat), is)
	c.mu.Unlock()
	if kept {
		return true
	}
	// Read now: it may be newer than what was read at the beginning.
	stored, refused := c.loadGrants()
	return refused == nil && slices.ContainsFunc(stored, is)
}

// held applies a ruling that was given when no call waited for it to the same
// call, made again.
func (c *check) held(r *ruling) (*Permit, error) {
	c.answer, c.repeatable = &Answer{Channel: r.Channel, Note: r.Note}, false
	if err := r.settled(); err != nil {
		return nil, c.deny("the answer to this call could not be recorded", "Make the call again; the user will then be asked.")
	}
	if r.Decision == Deny {
		return nil, c.deny(fmt.Sprintf("the person denied it at %s", clock(r.at)),
			"Do not call again unless the user asks for it; say what you wanted to do and why, or go on without it.")
	}
	p := c.newPermit()
	p.values = r.Values
	reason := fmt.Sprintf("the person answered at %s, before the call was made again", clock(r.at))
	if err := c.record(Once, r.Channel, reason, p.run); err != nil {
		return nil, err
	}
	return p, nil
}

// decideLate records a ruling on a question that no call of this process waits
// for, and keeps it for later calls when it says so. before is the one that it
// takes back, or nil.
func (g *Gate) decideLate(e *entry, before, r *ruling, expires time.Time) error {
	c := &check{Gate: g, box: e.box, call: e.call, changed: e.changed, answer: &Answer{Channel: r.Channel, Note: r.Note}}
	c.always = c.rule().Effect == rules.Ask
	if r.Decision == Deny {
		if before != nil {
			c.takeBack(before)
		}
		return c.record(Deny, r.Channel, withNote("the call had returned; it is denied when it is made again", r.Note), "")
	}
	err := c.keepAnswer(r.Decision, r.Channel, func(d Decision, reason string) error {
		if reason == "" {
			reason = "the call had returned; it is allowed when it is made again before " + clock(expires)
		}
		return c.record(d, r.Channel, withNote(reason, r.Note), "")
	})
	if err == nil && c.grant != "" {
		r.kept = c.like().Digest
	}
	return err
}
