package approvals

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/page"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// serve answers every request. It has the checks that apply to all of them.
func (d *Desk) serve(w http.ResponseWriter, r *http.Request) {
	page.Guard(w.Header())
	end := d.begin()
	if end == nil {
		d.stranger(w)
		control.Fail(w, http.StatusServiceUnavailable, control.ProblemInternal, "the server is ending")
		return
	}
	defer end()
	defer func() {
		if err := recover(); err != nil {
			d.o.Logger.Error("a request of the approval page panicked", "err", err, "stack", string(debug.Stack()))
			// This fails if part of the response was already sent; then the
			// connection ends.
			control.Fail(w, http.StatusInternalServerError, control.ProblemInternal, "something broke; see the server's log")
		}
	}()

	isControl := strings.HasPrefix(r.URL.Path, "/control/")
	switch {
	case r.Host != d.address:
		// Another host name that resolves to 127.0.0.1 is an attack: DNS
		// rebinding.
		d.stranger(w)
		if isControl {
			control.Fail(w, http.StatusForbidden, control.ProblemForbidden, "the Host header is not this server's address")
			return
		}
		refusePage(w, "")
	case page.ForWorker(r):
		// The page has no service worker, and none may be installed from here: a
		// worker could answer in the person's place. [Desk.enter] removes one
		// that is already there.
		d.stranger(w)
		refusePage(w, "")
	case isControl:
		d.control(w, r)
	case !d.o.Page:
		d.stranger(w)
		refusePage(w, "This server does not have the page: its configuration leaves it out. Run: packs-mcp approvals")
	case r.URL.Path == enterPath:
		d.enter(w, r)
	default:
		d.page(w, r)
	}
}

// stranger is called before a request without a key is refused. The connection
// ends with the response, and nothing more is read from it: no body and no
// further request.
func (d *Desk) stranger(w http.ResponseWriter) {
	d.refused.Add(1)
	w.Header().Set("Connection", "close")
}

// decide passes a decision on and sends the outcome.
func (d *Desk) decide(w http.ResponseWriter, in control.Decision, channel string) {
	decision, ok := queue.ParseDecision(in.Decision)
	if !ok {
		// Not even a denial: the sender meant something else.
		control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, "the decision is none of once, chat, always and deny")
		return
	}
	p, err := d.o.Calls.Decide(in.Code, queue.Verdict{
		Decision: decision, Values: in.Values, Channel: channel, Note: safetext.Line(in.Note), Gone: in.Gone,
	})
	if code, ok := errors.AsType[*queue.CodeError](err); ok {
		control.Fail(w, control.StatusOf(code.Problem), string(code.Problem), safetext.Line(code.Error()))
		return
	}
	if err != nil {
		d.o.Logger.Error("a decision could not be carried out", "err", err)
		control.Fail(w, http.StatusInternalServerError, control.ProblemInternal, "the decision could not be carried out, so nothing was allowed; see the server's log")
		return
	}
	d.mu.Lock()
	d.answered = time.Now()
	d.mu.Unlock()
	control.Answer(w, control.Decided{Title: p.Title, Held: p.Waits.IsZero(), Expires: p.Expires, Carried: p.Carried})
}

// queue returns the waiting calls in the form that is sent.
func (d *Desk) queue() control.Queue {
	q := control.Queue{Pending: []control.Call{}}
	for _, p := range d.o.Calls.Pending() {
		q.Pending = append(q.Pending, control.CallOf(p))
	}
	return q
}

// only returns the single value of a header; ok is false if there are none or
// several.
func only(r *http.Request, name string) (value string, ok bool) {
	v := r.Header.Values(name)
	if len(v) != 1 {
		return "", false
	}
	return v[0], true
}

// same reports whether two secrets are equal, in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
