package httpd

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// refuse answers with a status and a line of text, and closes the connection. It
// does not wait for the rest of the request, but briefly reads data already on
// its way, since otherwise the client may not get the response.
func refuse(w http.ResponseWriter, status int, why string) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(wire.FlushTime))
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, safetext.Line(why))
}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	refuse(w, http.StatusMethodNotAllowed, "the method is not one of "+allow)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "the answer cannot be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// reject answers a message that is not passed to the library.
func reject(w http.ResponseWriter, status int, id json.RawMessage, p *wire.Problem) {
	writeJSON(w, status, wire.Rejection(id, p))
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
		refuse(w, http.StatusBadRequest, "a request for a stream has no body")
		return false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return true
}
