package httpd

import (
	"net/http"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// drain lets nothing new begin, and waits until the requests that are being worked on
// have ended, at most for a time. Calls that only wait for a person return, and say where
// the question is. Answers, cancellations and what people decide still come in.
func (h *Server) drain(most time.Duration) {
	left, none := h.busy.Close()
	h.host.Drain()
	if left > 0 {
		h.logger.Info("the server ends when what it works on has ended; another signal ends it at once", "requests", left, "within", most.String())
	}
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-none:
	case <-late.C:
		h.logger.Warn("the server ends now, and what it works on is cut")
	}
}

// begin counts the request of an exchange, or answers that it must not begin now. A
// request that waits for news until its client leaves does not count.
func (x *exchange) begin(lasting bool) bool {
	done, status, why := x.in.busy.Begin(x.caller, personOf(x.r).Groups)
	if done == nil {
		x.w.Header().Set("Connection", "close") // the next one may go elsewhere
		x.reject(status, wire.CodeBusy, "%s", why)
		return false
	}
	if lasting {
		done()
	} else {
		x.after(done)
	}
	return true
}

// answerReady reports whether the server takes calls, for who sends it some.
func (h *Server) answerReady(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		reply.NotAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Connection", "close")
	why := "draining"
	if !h.busy.IsClosed() {
		why = h.ready.Now(r.Context())
	}
	if why != "" {
		reply.JSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready", "why": why})
		return
	}
	reply.JSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
