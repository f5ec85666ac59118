package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/service"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
)

// serveHTTP serves over HTTP until ctx is done. It does not use standard input
// and output.
func (a *app) serveHTTP(ctx context.Context, cfg *config.Config, logger *slog.Logger, s *service.Service, who []httpd.Credential, made string) error {
	addr, err := net.ResolveTCPAddr("tcp", cfg.HTTP.Addr)
	if err != nil {
		return fmt.Errorf("finding the address %q: %w", cfg.HTTP.Addr, err)
	}
	here := addr.IP != nil && addr.IP.IsLoopback()
	if made != "" && !here {
		return cli.WithHint(fmt.Errorf("%s can be reached by others, and no token is configured", cfg.HTTP.Addr),
			"set PACKS_MCP_TOKEN, or http.token or http.tokens in the configuration; openssl rand -hex 16 makes a good one")
	}
	secure, err := tlsConfig(cfg, logger)
	if err != nil {
		return err
	}
	o := httpd.Options{Credentials: who, Local: here, PublicURL: cfg.HTTP.PublicURL, Issuer: cfg.HTTP.Issuer, Approvals: s.Approvals(cfg, logger), Ready: s.Ready, Drain: cfg.HTTP.Drain, Calls: cfg.HTTP.Calls, CallsOf: cfg.HTTP.CallsOf}
	if p := cfg.HTTP.OIDC; p.Issuer != "" {
		o.Issuer, o.Scopes, o.Client = p.Issuer, p.Scopes, p.Client
		o.Tokens, err = oidc.New(oidc.Options{
			Issuer: p.Issuer, Audience: cmp.Or(p.Audience, cfg.HTTP.PublicURL+"/mcp"), Person: p.Person, Groups: p.Groups, Allow: p.Allow, Verified: s.Verified(logger),
		})
		if err != nil {
			return cli.WithHint(err, "see http.oidc in the configuration")
		}
		if o.Page, err = s.Page(cfg, a.Version, o.Tokens, logger); err != nil {
			logger.Warn("people cannot log in to the approval page", "err", err)
		}
	}
	h, err := httpd.New(s.Server, o)
	if err != nil {
		return err
	}
	if cli.SeveralPeople(cfg) {
		tellOfProject(cfg, logger)
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		h.Close()
		return fmt.Errorf("listening on %q: %w", cfg.HTTP.Addr, err)
	}
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	if !here && secure == nil {
		logger.Warn("others on the network can read what is sent, tokens too", "addr", l.Addr().String(),
			"hint", "set http.tls_cert and http.tls_key, or put a proxy that has TLS in front of it and listen on 127.0.0.1")
	}
	logger.Info("serving over HTTP", "url", scheme+"://"+l.Addr().String()+"/mcp", "packs", len(s.Library.Catalog(ctx).Attached()), "version", a.Version)
	if made != "" {
		// Print it once, and not through the logger, since logs are kept.
		fmt.Fprintf(a.Stderr, "packs-mcp: clients need this token until the server ends: %s\n", made)
	}
	s.Watch(logger)
	s.OpenDesk()
	tended := make(chan struct{})
	tending, stop := context.WithCancel(ctx)
	go func() {
		defer close(tended)
		s.ReportSandbox(ctx, cfg, logger)
		service.Tend(tending, cfg, logger)
	}()
	defer func() {
		stop()
		<-tended
	}()
	return h.Serve(ctx, l, secure)
}

// tellOfProject logs which folder people share, or that they share none.
func tellOfProject(cfg *config.Config, logger *slog.Logger) {
	if cfg.Project != "" {
		logger.Warn("people with tokens of their own share the project: what a tool that one of them allows changes there, all have", "project", cfg.Project)
		return
	}
	if dir := cli.ProjectHere(cfg); dir != "" {
		logger.Info("people with tokens of their own share no project, so tools work in each one's workspace; project in the configuration names one for all", "dir", dir)
	}
}

// tlsConfig returns a configuration with the configured certificate; nil if
// there is none.
func tlsConfig(cfg *config.Config, logger *slog.Logger) (*tls.Config, error) {
	cert, key := cfg.HTTP.TLSCert, cfg.HTTP.TLSKey
	switch {
	case cert == "" && key == "":
		return nil, nil
	case cert == "" || key == "":
		return nil, errors.New("http.tls_cert and http.tls_key are needed both: a certificate and its key")
	}
	k := &keyPair{cert: cert, key: key, logger: logger}
	if _, err := k.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.get}, nil
}

// A keyPair is a certificate in files that are read again when they change:
// certificates are renewed while a server runs.
type keyPair struct {
	cert, key string
	logger    *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	stamps [2]time.Time // of the files that pair was read from
}

func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.load() }

// load returns the certificate. If the files cannot be read, it keeps the
// previous one.
func (k *keyPair) load() (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var stamps [2]time.Time
	for i, file := range []string{k.cert, k.key} {
		if fi, err := os.Stat(file); err == nil {
			stamps[i] = fi.ModTime()
		}
	}
	if k.pair != nil && stamps == k.stamps {
		return k.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	if err != nil {
		err = fmt.Errorf("reading the certificate %q and its key %q: %w", k.cert, k.key, err)
		if k.pair == nil {
			return nil, err
		}
		k.logger.Error("the certificate was changed and cannot be read; the old one is still used", "err", err)
	} else {
		k.pair = &pair
	}
	k.stamps = stamps
	return k.pair, nil
}
