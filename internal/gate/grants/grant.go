// Package grants has the answers that hold for more than one call: what each is bound
// to, what changed since it was given, those that hold in one chat, and a [Book] of all.
//
// It decides about no call and asks nobody; see package gate. Answers that hold in
// every chat are kept by a [Store].
package grants

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// A Grant is an answer that holds for more than one call: "for this chat" or
// "always". It is bound to everything that the person was shown, as facts. If one
// of them differs, it allows nothing.
type Grant struct {
	ID      string    `json:"id"`      // names it for a person
	Digest  string    `json:"digest"`  // of Facts; a call with the same digest is allowed
	Subject string    `json:"subject"` // digest of what it is about; it stays the same when other facts change
	Since   time.Time `json:"since"`
	Covers  string    `json:"covers"` // what it allows, in the words the person chose
	Channel string    `json:"channel,omitempty"`
	// Policy is the policy under which the grant counts, "first-run" or "balanced".
	// Empty means any policy, except where a grant for using a pack would allow
	// more under another one.
	Policy string `json:"policy,omitempty"`

	Person string `json:"person,omitempty"` // whose calls it allows, over HTTP
	// By is who gave the answer, where the configuration says who may. Where it does
	// now, a grant of nobody allows nothing.
	By   *approvers.Person `json:"by,omitempty"`
	Kind call.Kind         `json:"kind"`
	Pack string            `json:"pack"`           // pack id
	Dir  string            `json:"dir,omitempty"`  // of the pack
	Tool string            `json:"tool,omitempty"` // declared name; empty when the model wrote the command
	Argv []string          `json:"argv,omitempty"` // of a command the model wrote, the program's path first

	Facts []call.Fact `json:"facts"`
	Files []call.File `json:"files,omitempty"` // of the pack, if there are few enough to name what changed
	// Void is set when the pack, the tool or the program was found changed. The
	// grant then allows nothing; it is kept to tell what changed.
	Void *Void `json:"void,omitempty"`
}

// A Void says when a grant came to an end, and why.
type Void struct {
	At      time.Time `json:"at"`
	Changes []string  `json:"changes"` // in words, one line each
}

// ErrUnavailable means that the store that replicas share cannot be read: nothing is
// wrong with the grants.
var ErrUnavailable = errors.New("the grants that replicas share cannot be read")

// ErrUnknown means that the store that replicas share did not say whether it has what was
// written.
var ErrUnknown = errors.New("it is not known whether the grants were stored")

// A Store keeps the grants that hold in every chat and after a restart. It is
// grantfile.Store, or grantshared.Store where replicas share them.
type Store interface {
	// Load returns the grants. An error means that they cannot be read or fail
	// their check; then nothing is allowed.
	Load() ([]Grant, error)
	// Update lets change edit the grants and stores what it returns, completely or
	// not at all. No other process updates them meanwhile. If there is an error,
	// nothing changed, except that a shared store may allow less than before, and that
	// anything may be stored if the error matches ErrUnknown.
	Update(change func([]Grant) ([]Grant, error)) error
}

// Giver returns the name of who gave the answer, where that is kept.
func (g Grant) Giver() string {
	if g.By == nil {
		return ""
	}
	return g.By.String()
}

// Clone returns a copy of g that shares nothing mutable.
func (g Grant) Clone() Grant {
	g.Argv, g.Files, g.Facts = slices.Clone(g.Argv), slices.Clone(g.Files), slices.Clone(g.Facts)
	for i, f := range g.Facts {
		g.Facts[i].Values = slices.Clone(f.Values)
	}
	if g.Void != nil {
		g.Void = &Void{At: g.Void.At, Changes: slices.Clone(g.Void.Changes)}
	}
	return g
}

// Replaces reports whether a new grant takes the place of one that is kept: the
// same grant, or a void one for the same thing or a part of it.
func (g Grant) Replaces(have Grant) bool {
	return have.Digest == g.Digest || have.Void != nil && (have.Subject == g.Subject || g.includes(have))
}

// includes reports whether g allows using a pack and have allows a part of that.
func (g *Grant) includes(have Grant) bool {
	same := func(fact string) bool { return slices.Equal(call.FactOf(g.Facts, fact), call.FactOf(have.Facts, fact)) }
	return g.Kind == call.KindUse && slices.Contains(call.FactOf(g.Facts, call.FactKind), string(have.Kind)) && same(call.FactPerson) && same(call.FactWhere)
}

// size returns how many bytes a grant takes up, not counting the files of its pack,
// which all requests about the pack share.
func (g Grant) size() int {
	g.Files = nil
	return int(reflect.TypeFor[Grant]().Size()) + call.Size(g)
}
