package grants

import (
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
)

// An Ended says which answers somebody has taken back, in the chats of every replica. An
// empty member is about all.
type Ended struct {
	Person string    `json:"person,omitempty"` // who asks, or who answered
	By     string    `json:"by,omitempty"`     // who answered
	Pack   string    `json:"pack,omitempty"`   // id
	At     time.Time `json:"at"`
}

// skew is how far the clocks of servers may differ. An answer that was given so shortly
// after the end counts as given before it, and the next call asks.
const skew = 5 * time.Minute

// Covers reports whether a grant has ended.
func (e Ended) Covers(g Grant) bool {
	return !g.Since.After(e.At.Add(skew)) && e.Concerns(g)
}

// Concerns is Covers whatever the time.
func (e Ended) Concerns(g Grant) bool {
	by := g.Giver()
	if by == "" {
		by = g.Person // nobody else answers for a person, unless the grant says so
	}
	return (e.Pack == "" || strings.EqualFold(e.Pack, g.Pack)) &&
		(e.By == "" || is(e.By, by)) &&
		(e.Person == "" || is(e.Person, g.Person) || is(e.Person, by))
}

// is reports whether a name means a person: as it is, or without the digits that follow
// what an identity provider calls a person, or as the provider called the person before.
// The case of letters does not count: it is better to ask once more than to leave an
// answer of somebody who is gone.
func is(name, person string) bool {
	return person != "" && (strings.EqualFold(name, person) || approvers.SameSubject(name, person) || approvers.IsProvided(person) && strings.EqualFold(name, approvers.Called(person)))
}
