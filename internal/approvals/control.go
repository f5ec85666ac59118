package approvals

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// control answers other programs of the same user. It refuses any request with
// headers that a browser adds to every request from a page, even with the key.
func (d *Desk) control(w http.ResponseWriter, r *http.Request) {
	for _, name := range []string{"Origin", "Sec-Fetch-Site", "Cookie"} {
		if _, there := r.Header[name]; there {
			d.stranger(w)
			control.Fail(w, http.StatusForbidden, control.ProblemForbidden, "this is not for browsers")
			return
		}
	}
	given, _ := only(r, "Authorization")
	key, ok := strings.CutPrefix(given, "Bearer ")
	if !ok || !same(key, d.key) {
		d.stranger(w)
		control.Fail(w, http.StatusForbidden, control.ProblemForbidden, "the key is missing or wrong")
		return
	}
	leave := d.place(w, r)
	if leave == nil {
		return
	}
	defer leave()
	if !d.o.Terminal && !slices.Contains([]string{control.PathOpen, control.PathGrants, control.PathRevoke}, r.URL.Path) {
		control.Fail(w, http.StatusForbidden, control.ProblemPageOnly, "this server takes answers on its page only: its configuration leaves the terminal out of approval.channels")
		return
	}
	switch r.URL.Path {
	case control.PathPending:
		if allow(w, r, http.MethodGet) {
			control.Answer(w, d.queue())
		}
	case control.PathEvents:
		if allow(w, r, http.MethodGet) {
			d.stream(w, r, nil, []part{{"pending", func() any { return d.queue() }}})
		}
	case control.PathDecide:
		var in control.Decision
		if allow(w, r, http.MethodPost) && control.ReadJSON(w, r, &in) {
			d.decide(w, in, queue.ChannelTerminal)
		}
	case control.PathGrants:
		if allow(w, r, http.MethodGet) {
			d.listGrants(w)
		}
	case control.PathRevoke:
		var in control.Revocation
		if allow(w, r, http.MethodPost) && control.ReadJSON(w, r, &in) {
			d.revokeGrant(w, in)
		}
	case control.PathOpen:
		if allow(w, r, http.MethodPost) && control.ReadJSON(w, r, &struct{}{}) {
			d.open(w)
		}
	default:
		control.Fail(w, http.StatusNotFound, control.ProblemInvalid, "there is no such address")
	}
}

// open writes a file that leads to the page and names it; the client opens it.
func (d *Desk) open(w http.ResponseWriter) {
	file, err := d.writeEntry()
	switch {
	case errors.Is(err, errNoPage):
		control.Fail(w, http.StatusNotFound, control.ProblemInvalid, err.Error())
	case err != nil:
		d.o.Logger.Error("the file that opens the approval page could not be made", "err", err)
		control.Fail(w, http.StatusInternalServerError, control.ProblemInternal, err.Error())
	default:
		control.Answer(w, control.Opened{File: file})
	}
}

// allow reports whether the request has the given method. If not, it has already
// answered.
func allow(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	control.Fail(w, http.StatusMethodNotAllowed, control.ProblemInvalid, "the method must be "+method)
	return false
}
