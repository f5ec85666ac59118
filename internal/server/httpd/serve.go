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

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

const (
	// idleConn is how long a connection stays open for the next request.
	idleConn = 2 * time.Minute
	// maxHeader is how many bytes the head of a request may have.
	maxHeader = 64 << 10
)

// Serve serves on l, with TLS when secure is not nil, until ctx is done. Then
// calls are cancelled and their programs killed, streams end, and it returns
// when that is done, a few seconds later at most. It closes l, and h.
func (h *Server) Serve(ctx context.Context, l net.Listener, secure *tls.Config) error {
	srv := &http.Server{
		Handler: h, TLSConfig: secure, Protocols: protocols(),
		ReadHeaderTimeout: h.heads, IdleTimeout: idleConn, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(h.logger.Handler(), slog.LevelDebug),
		// "OPTIONS *" would be answered to anybody, and its body waited for.
		DisableGeneralOptionsHandler: true,
	}
	h.conns.watch(srv, h.refused)
	l = attentive{l}
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
		h.Close()
		// Every request has ended; what is left are connections without one, and
		// those whose answers are on their way.
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), wire.FlushTime)
		defer cancel()
		if stop := srv.Shutdown(rest); stop != nil && !errors.Is(stop, context.DeadlineExceeded) {
			err = stop
		}
		<-failed
	}
	return errors.Join(err, ignoreClosed(srv.Close()))
}

// protocols are HTTP/1.1, with TLS too. HTTP/2 is not offered: what a client may
// take up is bounded by connections and by the deadlines of each, and HTTP/2 has
// any number of requests on one connection, whose parts arrive before anybody
// looked at a token, with deadlines that are not the connection's. No client
// needs it: they agree on the protocol with the TLS handshake, and a stream of
// events and a few calls are a handful of connections.
func protocols() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	return &p
}

// ignoreClosed drops the error of a listener that was closed already.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
