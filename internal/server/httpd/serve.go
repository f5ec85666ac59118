package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/conns"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

const (
	// idleConn is how long a connection stays open for the next request.
	idleConn = 2 * time.Minute
	// maxHeader is how many bytes a request's headers may have.
	maxHeader = 64 << 10
)

// Serve serves on l, with TLS if secure is not nil, until ctx is done. Then it takes
// no new calls, waits for those that it works on, as long as [Options.Drain] says,
// cancels what is left, kills the programs, ends streams, and returns when that is
// done, at most a few seconds later. It closes l and h.
func (h *Server) Serve(ctx context.Context, l net.Listener, secure *tls.Config) error {
	srv := &http.Server{
		Handler: h, TLSConfig: secure, Protocols: protocols(),
		ReadHeaderTimeout: h.heads, IdleTimeout: idleConn, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(h.logger.Handler(), slog.LevelDebug),
		// Otherwise "OPTIONS *" would be answered for anyone, after waiting for
		// its body.
		DisableGeneralOptionsHandler: true,
	}
	h.conns.Watch(srv, h.guard.Refused)
	l = conns.Attentive(l)
	failed := make(chan error, 1)
	go func() {
		if secure != nil {
			failed <- srv.ServeTLS(l, "", "")
			return
		}
		failed <- srv.Serve(l)
	}()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serving over HTTP: %w", err)
		h.Close()
	case <-ctx.Done():
		h.drain(h.drains)
		h.Close()
		// Every request has ended. Only idle connections are left, and those
		// whose responses are on their way.
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), wire.FlushTime)
		defer cancel()
		if stop := srv.Shutdown(rest); stop != nil && !errors.Is(stop, context.DeadlineExceeded) {
			err = stop
		}
		<-failed
	}
	return errors.Join(err, ignoreClosed(srv.Close()))
}

// protocols returns HTTP/1.1 only, with TLS too. HTTP/2 is not offered: the
// bounds on a client are on its connections and their deadlines, but HTTP/2
// carries any number of requests on one connection, whose parts arrive before
// the token is checked, and whose deadlines are not the connection's. No client
// needs it: the TLS handshake negotiates the protocol, and a stream of events
// and a few calls need only a handful of connections.
func protocols() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	return &p
}

// ignoreClosed drops the error of a listener that was already closed.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
