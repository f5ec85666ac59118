package httpd

import (
	"net/http"
	"sync"
	"time"
)

// A responseWriter is what one request is answered with. It sets no deadline once
// the request's handler is over, whoever still wants one: what ends a request
// early runs on a goroutine of its own, and may come too late. With HTTP/2 the
// writer of a handler that is over is gone, and to touch it ends the process;
// with HTTP/1.1 the deadline would be that of the connection's next request.
type responseWriter struct {
	http.ResponseWriter
	control *http.ResponseController

	mu   sync.Mutex // not held while anything is written
	over bool
}

func newResponseWriter(w http.ResponseWriter) *responseWriter {
	return &responseWriter{ResponseWriter: w, control: http.NewResponseController(w)}
}

// FlushError, SetReadDeadline and SetWriteDeadline are what an
// [http.ResponseController] calls.
func (w *responseWriter) FlushError() error { return w.control.Flush() }

func (w *responseWriter) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return http.ErrHandlerTimeout
	}
	return w.control.SetReadDeadline(t)
}

func (w *responseWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return http.ErrHandlerTimeout
	}
	return w.control.SetWriteDeadline(t)
}

// end is called last by the handler. Its server still writes the end of the
// answer, for which the client gets as long as for any piece of it.
func (w *responseWriter) end(reads time.Duration) {
	_ = w.SetWriteDeadline(time.Now().Add(reads))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}
