package approvals

import (
	"context"
	"net/http"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Grants are the answers that hold in one chat of the server. Those that hold in
// every chat are in a file, and no server is needed to see them.
type Grants interface {
	// ChatGrants returns them, oldest first. Their strings need not be safe to show.
	ChatGrants() []ChatGrant
	// RevokeChatGrant takes one back, and reports whether there is one with this id.
	// With an error it still holds.
	RevokeChatGrant(id string) (found bool, err error)
}

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
	Chat    string    `json:"chat"`
	Client  string    `json:"client,omitempty"`
	Void    *Voided   `json:"void,omitempty"` // nil: it holds
}

// A Voided says when a grant came to an end, and why.
type Voided struct {
	At      time.Time `json:"at"`
	Changes []string  `json:"changes"`
}

// A grantList is the answer to a request for controlGrants.
type grantList struct {
	Grants []ChatGrant `json:"grants"`
}

// A revocation names a grant to take back.
type revocation struct {
	ID string `json:"id"`
}

// maxArgv is how many bytes of a command's arguments are sent.
const maxArgv = 4 << 10

// safe returns the grant with all texts safe to show.
func (g ChatGrant) safe() ChatGrant {
	for _, text := range []*string{
		&g.ID, &g.Digest, &g.Kind, &g.Pack, &g.Dir, &g.Tool, &g.Covers, &g.Channel, &g.Policy, &g.Person, &g.Chat, &g.Client,
	} {
		*text = safetext.Line(*text)
	}
	var argv []string
	left := maxArgv
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

func safeGrants(grants []ChatGrant) []ChatGrant {
	safe := make([]ChatGrant, len(grants))
	for i, g := range grants {
		safe[i] = g.safe()
	}
	return safe
}

// listGrants sends what holds in the server's chats.
func (d *Desk) listGrants(w http.ResponseWriter) {
	var all []ChatGrant
	if d.o.Grants != nil {
		all = d.o.Grants.ChatGrants()
	}
	answer(w, grantList{safeGrants(all)})
}

// revokeGrant takes a grant of a chat back.
func (d *Desk) revokeGrant(w http.ResponseWriter, in revocation) {
	found, err := false, error(nil)
	if d.o.Grants != nil {
		found, err = d.o.Grants.RevokeChatGrant(in.ID)
	}
	switch {
	case err != nil:
		d.o.Logger.Error("a grant could not be revoked", "err", err)
		fail(w, http.StatusInternalServerError, problemInternal, "the grant was not revoked, and still holds; see the server's log")
	case !found:
		fail(w, http.StatusNotFound, problemInvalid, "no chat of this server has a grant of that id; it may have ended")
	default:
		answer(w, struct{}{})
	}
}

// Grants returns what holds in the server's chats, oldest first.
func (s *Server) Grants(ctx context.Context) ([]ChatGrant, error) {
	var list grantList
	if err := s.do(ctx, http.MethodGet, controlGrants, nil, &list); err != nil {
		return nil, err
	}
	return safeGrants(list.Grants), nil
}

// Revoke takes back the grant of a chat. If it returns a *[RefusedError], the grant
// holds, or there is none. After any other error it is not known whether it holds.
func (s *Server) Revoke(ctx context.Context, id string) error {
	return s.do(ctx, http.MethodPost, controlRevoke, revocation{id}, &struct{}{})
}
