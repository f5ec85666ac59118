package httpd

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/busy"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The paths that are served over HTTP.
const (
	pathMCP     = "/mcp"
	pathSSE     = "/sse"
	pathMessage = "/message"
	pathHealth  = "/healthz"
	pathReady   = "/readyz"
	// Below pathApprovals people see and answer calls.
	pathApprovals = "/approvals/"
)

const (
	// readTime is how long a client may take to read a piece of a response.
	readTime = 30 * time.Second
	// slowest is how many bytes a second a client must read of a whole message,
	// in addition to the time for each piece. A slower client gets nothing more.
	slowest = 32 << 10
	// sendTime is how long a client may take to send a message.
	sendTime = 30 * time.Second
	// headerTime is how long a client may take to send a request's headers.
	headerTime = 10 * time.Second
	// keepAlive is how often a silent stream gets a heartbeat: proxies close
	// silent connections, and writing shows whether the client is gone.
	keepAlive = 15 * time.Second
)

// A Host answers the messages that arrive over HTTP.
type Host interface {
	wire.Host
	// SharedWorkspace returns the workspace that all chats share; empty if each
	// has its own. People with credentials of their own do not share one.
	SharedWorkspace() string
	// Drain ends the waits of calls for persons. Their questions stay open.
	Drain()
	// OverHTTP records in a request's context how the request arrived.
	OverHTTP(context.Context, http.Header) context.Context
}

// A core is what the parts of a [Server] share: the host, the time limits, and
// the end of the server.
type core struct {
	host   Host
	logger *slog.Logger
	idle   time.Duration  // how long an unused chat lasts
	beat   time.Duration  // between heartbeats on a stream
	reads  time.Duration  // time for a client to read a piece of a response
	sends  time.Duration  // time for it to send a message
	heads  time.Duration  // time for it to send a request's headers, and for the TLS handshake
	rate   int            // bytes a second that it must read overall
	leaves time.Duration  // time for a cancelled call to end before it is left behind
	busy   *busy.Requests // requests

	// ending is done when the server ends; its cause is wire.ErrEnded.
	ending context.Context
	end    context.CancelCauseFunc
}

// newCore returns a core with the default times; an idle time of 0 is one hour.
func newCore(host Host, idle time.Duration) *core {
	if idle <= 0 {
		idle = time.Hour
	}
	h := &core{host: host, logger: host.Logger(), idle: idle, beat: keepAlive, reads: readTime, sends: sendTime, heads: headerTime, rate: slowest, leaves: wire.EndTime}
	h.ending, h.end = context.WithCancelCause(context.Background())
	return h
}

// logUnsent logs that an answer did not reach its client.
func (h *core) logUnsent(err error) {
	if err != nil {
		h.logger.Debug("an answer did not reach its client", "err", err)
	}
}
