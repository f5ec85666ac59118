// Package call describes one call as data: a [Request] made of facts, frozen once as
// a [Call], with its arguments decoded once and with one digest that names it.
//
// It decides nothing, asks nobody and starts nothing; see package gate. It does not
// put facts into words.
package call

import (
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A Call is a frozen copy of a request, which the gate decides about. It shares
// nothing that could be changed, and nobody changes it, so it can be passed on and
// kept without copying it again.
type Call struct {
	Request
	level  sandbox.Level
	digest string
	kept   string // digest of the facts, of a call that another replica kept; otherwise empty
}

// Freeze returns the call of a request, for programs that are confined at this level.
// It copies and digests the request, once.
func Freeze(r Request, level sandbox.Level) *Call {
	c := &Call{Request: r.clone(), level: level}
	c.digest = c.Request.digest(level)
	return c
}

// Digest identifies this exact call. States are bound to it.
func (c *Call) Digest() string { return c.digest }

// Level returns how the call's program is confined.
func (c *Call) Level() sandbox.Level { return c.level }

// Is reports whether r, confined at this level, is exactly the call.
func (c *Call) Is(r *Request, level sandbox.Level) bool { return r.digest(level) == c.digest }

// IsLike reports whether r, confined at this level, has the same facts as the call,
// so that an answer for more than one call covers both or neither.
func (c *Call) IsLike(r *Request, level sandbox.Level) bool {
	return DigestOf(r.facts(level)) == DigestOf(c.Facts())
}
