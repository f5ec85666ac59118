package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// maxConns is how many connections are served at once; more are closed.
	maxConns = 2048
	// headerTime is how long a client may take to send the head of a request.
	headerTime = 10 * time.Second
	// idleConn is how long a connection stays open for the next request.
	idleConn = 2 * time.Minute
	// maxHeader is how many bytes the head of a request may have.
	maxHeader = 64 << 10
)

// Serve serves on l, with TLS when secure is not nil, until ctx is done. Then
// calls are cancelled and their programs killed, streams end, and it returns
// when that is done, a few seconds later at most. It closes l, and h.
func (h *HTTP) Serve(ctx context.Context, l net.Listener, secure *tls.Config) error {
	var conns atomic.Int64
	srv := &http.Server{
		Handler: h, TLSConfig: secure,
		ReadHeaderTimeout: headerTime, IdleTimeout: idleConn, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(h.logger.Handler(), slog.LevelDebug),
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				if conns.Add(1) > maxConns {
					_ = c.Close() // it is told that it was closed
				}
			case http.StateClosed, http.StateHijacked:
				conns.Add(-1)
			}
		},
	}
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
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), flush)
		defer cancel()
		if stop := srv.Shutdown(rest); stop != nil && !errors.Is(stop, context.DeadlineExceeded) {
			err = stop
		}
		<-failed
	}
	return errors.Join(err, ignoreClosed(srv.Close()))
}

// ignoreClosed drops the error of a listener that was closed already.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
