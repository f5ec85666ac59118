package control

import (
	"time"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A ChatGrant is an answer that holds in one chat until that ends.
type ChatGrant struct {
	ID      string    `json:"id"`
	Digest  string    `json:"digest"` // of what it is bound to, the key of the caches kept under it
	Since   time.Time `json:"since"`
	Kind    string    `json:"kind"`
	Pack    string    `json:"pack"`
	Dir     string    `json:"dir,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Argv    []string  `json:"argv,omitempty"` // of a command of the model's own
	Covers  string    `json:"covers"`
	Channel string    `json:"channel,omitempty"`
	Policy  string    `json:"policy,omitempty"` // under which it counts; empty: any
	Person  string    `json:"person,omitempty"`
	By      string    `json:"by,omitempty"` // who gave the answer, where the configuration says who may
	Chat    string    `json:"chat"`
	Client  string    `json:"client,omitempty"`
	Void    *Voided   `json:"void,omitempty"` // nil: it holds
}

// A Voided says when a grant came to an end, and why.
type Voided struct {
	At      time.Time `json:"at"`
	Changes []string  `json:"changes"`
}

// A GrantList is the answer to a request for PathGrants.
type GrantList struct {
	Grants []ChatGrant `json:"grants"`
}

// A Revocation names a grant to take back.
type Revocation struct {
	ID string `json:"id"`
}

// MaxArgv is how many bytes of a command's arguments are sent.
const MaxArgv = 4 << 10

// safe returns the grant with all texts safe to show.
func (g ChatGrant) safe() ChatGrant {
	for _, text := range []*string{
		&g.ID, &g.Digest, &g.Kind, &g.Pack, &g.Dir, &g.Tool, &g.Covers, &g.Channel, &g.Policy, &g.Person, &g.By, &g.Chat, &g.Client,
	} {
		*text = safetext.Line(*text)
	}
	var argv []string
	left := MaxArgv
	for _, word := range g.Argv {
		if left -= len(word); left < 0 {
			argv = append(argv, "…")
			break
		}
		argv = append(argv, safetext.Line(word))
	}
	g.Argv = argv
	if g.Void != nil {
		v := Voided{At: g.Void.At}
		for _, change := range g.Void.Changes {
			v.Changes = append(v.Changes, safetext.Line(change))
		}
		g.Void = &v
	}
	return g
}

// SafeGrants returns grants with all texts safe to show.
func SafeGrants(grants []ChatGrant) []ChatGrant {
	safe := make([]ChatGrant, len(grants))
	for i, g := range grants {
		safe[i] = g.safe()
	}
	return safe
}
