package httpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// read reads a request's body, whose size is bounded before any of it is read.
// If it returns false, the request was answered; otherwise the caller calls
// release when it no longer holds the body.
func (h *core) read(w http.ResponseWriter, r *http.Request, c *caller) (data []byte, release func(), ok bool) {
	fail := func(status int, why string) ([]byte, func(), bool) {
		reply.Refuse(w, status, why)
		return nil, nil, false
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return fail(http.StatusUnsupportedMediaType, "the Content-Type must be application/json")
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return fail(http.StatusUnsupportedMediaType, "the body must not be compressed")
	}
	tooLarge := fmt.Sprintf("the message is larger than %d bytes; send less at once", c.limit)
	size := c.limit
	switch {
	case r.ContentLength > int64(c.limit):
		return fail(http.StatusRequestEntityTooLarge, tooLarge)
	case r.ContentLength >= 0:
		size = int(r.ContentLength)
	}
	if !c.admit(size) {
		return fail(http.StatusServiceUnavailable, wire.TooManyRequests)
	}
	defer func() {
		if !ok {
			c.release(size)
		}
	}()

	// The time limit was set when the request arrived.
	control := http.NewResponseController(w)
	hurried := make(chan struct{})
	stop := context.AfterFunc(h.ending, func() {
		defer close(hurried)
		_ = control.SetReadDeadline(time.Now())
	})
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(c.limit)))
	if !stop() {
		<-hurried // otherwise it would undo the deadline set below
	}
	if err != nil {
		if _, over := errors.AsType[*http.MaxBytesError](err); over {
			return fail(http.StatusRequestEntityTooLarge, tooLarge)
		}
		return fail(http.StatusRequestTimeout, "the body did not come in time, or not as it was announced")
	}
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Now().Add(h.reads))
	c.shrink(size - len(data))
	return data, func() { c.release(len(data)) }, true
}
