package approvals

import (
	"net/http"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
)

// Grants are the answers that hold in one chat of the server. Those that hold in
// every chat are in a file, and no server is needed to see them.
type Grants interface {
	// ChatGrants returns them, oldest first. Their strings need not be safe to show.
	ChatGrants() []control.ChatGrant
	// RevokeChatGrant takes one back, and reports whether there is one with this id.
	// With an error it still holds.
	RevokeChatGrant(id string) (found bool, err error)
}

// listGrants sends what holds in the server's chats.
func (d *Desk) listGrants(w http.ResponseWriter) {
	var all []control.ChatGrant
	if d.o.Grants != nil {
		all = d.o.Grants.ChatGrants()
	}
	control.Answer(w, control.GrantList{Grants: control.SafeGrants(all)})
}

// revokeGrant takes a grant of a chat back.
func (d *Desk) revokeGrant(w http.ResponseWriter, in control.Revocation) {
	found, err := false, error(nil)
	if d.o.Grants != nil {
		found, err = d.o.Grants.RevokeChatGrant(in.ID)
	}
	switch {
	case err != nil:
		d.o.Logger.Error("a grant could not be revoked", "err", err)
		control.Fail(w, http.StatusInternalServerError, control.ProblemInternal, "the grant was not revoked, and still holds; see the server's log")
	case !found:
		control.Fail(w, http.StatusNotFound, control.ProblemInvalid, "no chat of this server has a grant of that id; it may have ended")
	default:
		control.Answer(w, struct{}{})
	}
}
