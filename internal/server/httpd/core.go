package httpd

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The paths that are served over HTTP.
const (
	pathMCP      = "/mcp"
	pathSSE      = "/sse"
	pathMessage  = "/message"
	pathHealth   = "/healthz"
	pathMetadata = "/.well-known/oauth-protected-resource" // RFC 9728
)

const (
	// readTime is how long a client may take to read a piece of an answer.
	readTime = 30 * time.Second
	// slowest is how many bytes of a message a client has to read in a second, on the
	// whole, beside the time for a piece: who reads less gets nothing more.
	slowest = 32 << 10
	// sendTime is how long a client may take to send a message.
	sendTime = 30 * time.Second
	// headerTime is how long a client may take to send the head of a request.
	headerTime = 10 * time.Second
	// keepAlive is how often a stream has a sign of life when nothing else is said
	// on it: proxies close what is silent, and a client that is gone is noticed.
	keepAlive = 15 * time.Second
)

// A Host answers the messages that come over HTTP.
type Host interface {
	wire.Host
	// SharedWorkspace is the one workspace of every chat; empty when each has its own.
	// People with credentials of their own do not share one.
	SharedWorkspace() string
	// OverHTTP notes in a request's context how it came.
	OverHTTP(context.Context, http.Header) context.Context
}

// A core is what the parts of a [Server] have in common: whom they serve, how long
// they wait, and when they end.
type core struct {
	host   Host
	logger *slog.Logger
	idle   time.Duration // how long a chat lasts that nobody uses
	beat   time.Duration // between signs of life on a stream
	reads  time.Duration // what a client gets to read a piece of an answer
	sends  time.Duration // what it gets to send a message
	heads  time.Duration // what it gets to send the head of a request, and to agree on TLS
	rate   int           // bytes a second that it has to read on the whole
	leaves time.Duration // what a call that was told to end gets before it is left behind

	// ending is done when the server ends, with wire.ErrEnded as its cause.
	ending context.Context
	end    context.CancelCauseFunc
}

// newCore returns a core with the usual times; an idle time of 0 is one hour.
func newCore(host Host, idle time.Duration) *core {
	if idle <= 0 {
		idle = time.Hour
	}
	h := &core{host: host, logger: host.Logger(), idle: idle, beat: keepAlive, reads: readTime, sends: sendTime, heads: headerTime, rate: slowest, leaves: wire.EndTime}
	h.ending, h.end = context.WithCancelCause(context.Background())
	return h
}

// logUnsent tells of an answer that did not reach its client.
func (h *core) logUnsent(err error) {
	if err != nil {
		h.logger.Debug("an answer did not reach its client", "err", err)
	}
}
