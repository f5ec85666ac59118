package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// Reasons to refuse what is sent through a tunnel.
var (
	errNoTLS     = &refusal{"what was sent to it is not TLS"}
	errNoName    = &refusal{"the TLS that was sent to it does not name a server"}
	errOtherName = &refusal{"the TLS that was sent to it names another server"}
	errHidden    = &refusal{"the TLS that was sent to it hides a server's name (ECH)"}
)

// tunnel carries TLS to a host that the tool names.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	h, err := p.allows(r.RequestURI)
	if err != nil {
		p.refuse(w, r.RequestURI, err)
		return
	}
	up, err := p.connect(p.over, h) // not the request's context, which ends when the program stops sending
	if err != nil {
		p.refuse(w, h.String(), err)
		return
	}
	defer up.Close()
	down, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer down.Close()
	stop := context.AfterFunc(p.over, func() { _ = down.Close() })
	defer stop()

	_ = down.SetDeadline(time.Now().Add(helloTime))
	if _, err := io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	hello, err := readHello(p.over, down, rest.Reader, h)
	if err != nil {
		if re, ok := errors.AsType[*refusal](err); ok {
			p.note(sandbox.Contact{Host: h.String(), Refused: re.why})
		}
		return
	}
	_ = down.SetDeadline(time.Time{})
	if _, err := up.Write(hello); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(up, rest.Reader)
		closeWrite(up.Conn)
	}()
	_, _ = io.Copy(down, up)
	closeWrite(down)
	// The program has closed its side, so nothing can be delivered to it.
	_ = up.Close()
	_ = down.Close()
	<-done
}

// readHello reads the TLS client hello, which must name h and no other server. It returns
// all bytes that it read.
func readHello(ctx context.Context, conn net.Conn, from io.Reader, h hosts.Host) ([]byte, error) {
	rec := &recorder{Conn: conn, from: from}
	var hello *tls.ClientHelloInfo
	errSeen := errors.New("seen")
	err := tls.Server(rec, &tls.Config{GetConfigForClient: func(got *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = got
		return nil, errSeen
	}}).HandshakeContext(ctx)
	const extensionECH = 0xfe0d // RFC 9849
	switch {
	case hello == nil && rec.err != nil:
		return nil, rec.err // the program left, or was too slow
	case hello == nil:
		return nil, errors.Join(errNoTLS, err)
	case slices.Contains(hello.Extensions, extensionECH):
		return nil, errHidden
	case hello.ServerName == "":
		return nil, errNoName
	case !strings.EqualFold(hello.ServerName, h.Name):
		return nil, errOtherName
	}
	return rec.seen.Bytes(), nil
}

// A recorder lets crypto/tls read from a connection and keeps the bytes that it read. It
// discards what crypto/tls writes.
type recorder struct {
	net.Conn
	from io.Reader
	seen bytes.Buffer
	err  error // from reading
}

func (c *recorder) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.seen.Write(b[:n])
	c.err = err
	return n, err
}

func (c *recorder) Write(b []byte) (int, error) { return len(b), nil }
