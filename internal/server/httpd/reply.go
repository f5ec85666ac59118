package httpd

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// reject answers a message that is not passed to the library.
func reject(w http.ResponseWriter, status int, id json.RawMessage, p *wire.Problem) {
	reply.JSON(w, status, wire.Rejection(id, p))
}

// accepts returns which kinds of responses a client accepts. A client that does
// not say accepts all.
func accepts(r *http.Request) (asJSON, events bool) {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return true, true
	}
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil || params["q"] == "0" {
			continue
		}
		switch kind {
		case "*/*":
			asJSON, events = true, true
		case "application/json", "application/*":
			asJSON = true
		case "text/event-stream", "text/*":
			events = true
		}
	}
	return asJSON, events
}

// bodiless reports whether a request for a stream has no body, and then removes
// its read deadline; otherwise it has answered the request. A body might never
// end, and until its end the server would not notice that the client left.
func bodiless(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength != 0 {
		reply.Refuse(w, http.StatusBadRequest, "a request for a stream has no body")
		return false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return true
}

// doubled returns the name of a header that occurs more than once but must not,
// or "". Of two values, a proxy may have read the other one.
func doubled(r *http.Request) string {
	for name, values := range r.Header {
		single := name == "Content-Type" || name == "Content-Encoding" || strings.HasPrefix(name, "Mcp-")
		if single && len(values) > 1 {
			return name
		}
	}
	return ""
}
