package httpd

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// rawCall returns the bytes of an open_docs call of the newer era.
func rawCall(accept string) string {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"capability_packs_open_docs","arguments":{"pack_id":"triage"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + tokenAda + "\r\nContent-Type: application/json\r\nAccept: " + accept +
		"\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: capability_packs_open_docs\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
}

// A call ends when its client leaves, whatever the client sent after its
// request, and whether or not it takes a stream, where heartbeats would find
// out. A client that sends too much is cut off.
func TestHTTPGone(t *testing.T) {
	w := newWorld(t, triage, everywhere(time.Minute))
	plain, _ := serveOn(t, w, nil)
	cert, _ := certificate(t)
	secure, _ := serveOn(t, w, &tls.Config{Certificates: []tls.Certificate{cert}})
	const maxAhead = 16 << 10 // of conns.Attentive
	for _, over := range []string{"plain", "TLS"} {
		connect := func() net.Conn {
			if over == "plain" {
				return dial(t, plain)
			}
			return tls.Client(dial(t, secure), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test's own certificate
		}
		for _, accept := range []string{"application/json", "application/json, text/event-stream"} {
			for name, behind := range map[string][]string{
				"nothing":             nil,
				"a line break":        {"\r\n"},
				"two, one by one":     {"\r\n", "\r\n"},
				"another request":     {rawCall(accept)},
				"more than there are": {strings.Repeat("\r\n", maxAhead)},
			} {
				t.Log(over, accept, name) // says which case fails in pending
				c := connect()
				_, _ = io.WriteString(c, rawCall(accept))
				w.pending(1)
				for _, more := range behind {
					_, _ = io.WriteString(c, more)
				}
				if len(behind) == 1 && len(behind[0]) > maxAhead {
					w.pending(0) // no client has left yet
				}
				_ = c.Close()
				w.pending(0)
			}
		}
	}
}

// Bytes sent after a request are read once its response is written, and a line
// break does no harm.
func TestHTTPBytesAfterARequest(t *testing.T) {
	w := newWorld(t, triage, everywhere(time.Minute))
	addr, _ := serveOn(t, w, nil)
	c := dial(t, addr)
	r := bufio.NewReader(c)
	for range 20 {
		call := rawCall("application/json")
		_, _ = io.WriteString(c, call)
		w.pending(1)
		for _, part := range []string{"\r\n", call[:1], call[1:40], call[40:]} {
			_, _ = io.WriteString(c, part)
		}
		for range 2 {
			w.decide(w.pending(1)[0].Code, queue.Deny)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), "denied") {
				t.Fatalf("%d %s %v, want a denial", resp.StatusCode, b, err)
			}
		}
	}
}
