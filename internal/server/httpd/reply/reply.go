// Package reply writes the answers of HTTP requests that need no stream: refusals, which
// close the connection, and JSON. A client that is refused only for now (503, 429) is told
// when to try again. A [Writer] sets no deadline after its request.
package reply

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// retry tells a client that is refused for now when to try again.
func retry(w http.ResponseWriter, status int) {
	if (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "1")
	}
}

// Refuse answers with a status and a line of text, and closes the connection. It
// does not wait for the rest of the request, but briefly reads data already on
// its way, since otherwise the client may not get the response.
func Refuse(w http.ResponseWriter, status int, why string) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(wire.FlushTime))
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	retry(w, status)
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, safetext.Line(why))
}

// NotAllowed refuses a request whose method is none of allow, as in "GET, HEAD".
func NotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	Refuse(w, http.StatusMethodNotAllowed, "the method is not one of "+allow)
}

// JSON answers with a status and a value.
func JSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		Refuse(w, http.StatusInternalServerError, "the answer cannot be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	retry(w, status)
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}
