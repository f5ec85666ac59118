package reply

import (
	"net/http"
	"sync"
	"time"
)

// A Writer writes the response to one request. It sets no deadline once
// the request's handler is over: the code that ends a request early runs on its
// own goroutine, and may be late. With HTTP/2 the writer of a finished handler
// is gone, and touching it crashes the process; with HTTP/1.1 the deadline would
// apply to the connection's next request.
type Writer struct {
	http.ResponseWriter
	control *http.ResponseController

	mu   sync.Mutex // not held while anything is written
	over bool
}

// NewWriter returns a Writer over w.
func NewWriter(w http.ResponseWriter) *Writer {
	return &Writer{ResponseWriter: w, control: http.NewResponseController(w)}
}

// FlushError, SetReadDeadline and SetWriteDeadline are called by
// [http.ResponseController].
func (w *Writer) FlushError() error { return w.control.Flush() }

func (w *Writer) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return http.ErrHandlerTimeout
	}
	return w.control.SetReadDeadline(t)
}

func (w *Writer) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return http.ErrHandlerTimeout
	}
	return w.control.SetWriteDeadline(t)
}

// End is called last by the handler. The server still writes the end of the
// response, and the client gets as long for it as for any piece.
func (w *Writer) End(reads time.Duration) {
	_ = w.SetWriteDeadline(time.Now().Add(reads))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}
