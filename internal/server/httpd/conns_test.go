package httpd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

// talk makes a request on a connection and returns the status and whether the
// connection stays open.
func talk(t *testing.T, c net.Conn, token string) (status int, stays bool) {
	t.Helper()
	// A notification, answered with 202 and without a session.
	const body = `{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	_, err := fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\nContent-Length: %d\r\n\r\n%s", token, len(body), body)
	if err != nil {
		return 0, false
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, !resp.Close
}

// closesWithin reports whether the server closes a connection in time, without
// sending anything.
func closesWithin(c net.Conn, most time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(most))
	_, err := c.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// Clients without a token make room for each other and take nothing from those
// with one, although all come from one address.
func TestHTTPStrangers(t *testing.T) {
	w := newWorld(t, "")
	addr, _ := serveOn(t, w, nil, func(h *Server) { h.conns.StrangersOf = 4 })
	ada := dial(t, addr)
	if status, stays := talk(t, ada, tokenAda); status != 202 || !stays {
		t.Fatalf("a request with a token = %d, stays %v", status, stays)
	}
	first := dial(t, addr)
	_, _ = io.WriteString(first, "POST /mcp HTTP/1.1\r\nHost: localhost\r\n") // half of the headers
	var flood []net.Conn
	for range 50 {
		flood = append(flood, dial(t, addr))
		if len(flood)%10 == 0 {
			// A client that shows its token gets in, and stays.
			c := dial(t, addr)
			if status, stays := talk(t, c, tokenGrace); status != 202 || !stays {
				t.Errorf("among %d others, a request with a token = %d, stays %v", len(flood), status, stays)
			}
			if status, stays := talk(t, ada, tokenAda); status != 202 || !stays {
				t.Errorf("among %d others, another request = %d, stays %v", len(flood), status, stays)
			}
		}
	}
	if !closesWithin(first, 20*time.Second) || !closesWithin(flood[0], 20*time.Second) {
		t.Error("the oldest without a token are still open")
	}
	if closesWithin(flood[len(flood)-1], 50*time.Millisecond) {
		t.Error("the newest without a token is closed")
	}
	// The log does not fill up either.
	if n := strings.Count(w.log.String(), "have shown no token"); n == 0 || n > refusalLines {
		t.Errorf("%d lines in the log, want a few", n)
	}
}

// One person's connections leave room for others.
func TestHTTPConnectionsOfOne(t *testing.T) {
	addr, _ := serveOn(t, newWorld(t, ""), nil, func(h *Server) { h.conns.Each, h.conns.Most = 2, 3 })
	first, second := dial(t, addr), dial(t, addr)
	for _, c := range []net.Conn{first, second, first} {
		if status, stays := talk(t, c, tokenAda); status != 202 || !stays {
			t.Fatalf("a request = %d, stays %v", status, stays)
		}
	}
	if status, stays := talk(t, dial(t, addr), tokenAda); status != 503 || stays {
		t.Errorf("on one connection too many: %d, stays %v, want 503 and its end", status, stays)
	}
	third := dial(t, addr)
	if status, _ := talk(t, third, tokenGrace); status != 202 {
		t.Errorf("another person = %d, want 202", status)
	}
	if status, _ := talk(t, dial(t, addr), tokenGrace); status != 503 {
		t.Errorf("more than all may have = %d, want 503", status)
	}
	// A proxy's connection belongs to the owner of the token it showed last.
	if status, _ := talk(t, first, tokenGrace); status != 202 {
		t.Errorf("another person on the same connection = %d, want 202", status)
	}
	first.Close()
	second.Close()
	third.Close()
	for _, token := range []string{tokenAda, tokenAda, tokenGrace} {
		until(t, "their places are free", func() bool {
			status, _ := talk(t, dial(t, addr), token)
			return status == 202
		})
	}
}

// refusalLines is how many lines about refused requests the log has in a minute.
const refusalLines = 10

// Lines that anyone can cause are not all logged.
func TestHTTPRefusalsAreLoggedSparingly(t *testing.T) {
	w := newWorld(t, "")
	s := newSite(t, w)
	c := s.Client("wrong")
	for range 3 * refusalLines {
		c.Status(c.Request(t.Context(), "POST", "/mcp", nil))
		r := c.Request(t.Context(), "GET", "/mcp", nil)
		r.Host = "evil.com"
		c.Status(r)
	}
	if n := strings.Count(w.log.String(), "a request was refused"); n != refusalLines {
		t.Errorf("%d lines for %d requests, want %d", n, 6*refusalLines, refusalLines)
	}
}

// One of several people who share a token does not end the others' sessions.
func TestHTTPMakeRoom(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	here, there := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	of := func(from netip.Prefix, uses int, age time.Duration) *session {
		return &session{caller: s.http.callers[0], from: from, uses: uses, used: time.Now().Add(-age)}
	}
	used, old := of(here, 7, time.Minute), of(here, 1, time.Second)
	for name, x := range map[string]struct {
		all  map[string]*session
		want string
	}{
		"who has most":        {map[string]*session{"a": of(there, 9, time.Hour), "b": used, "c": of(here, 9, 0)}, "b"},
		"what was never used": {map[string]*session{"a": used, "b": old}, "b"},
		"idle longest":        {map[string]*session{"a": used, "b": of(here, 7, time.Hour)}, "b"},
		"another's":           {map[string]*session{"a": {caller: s.http.callers[1], used: time.Now().Add(-time.Hour)}, "b": old}, "b"},
		"in use":              {map[string]*session{"a": {caller: s.http.callers[0], using: 1}}, ""},
	} {
		s.http.sessions.byID = x.all
		if got := s.http.sessions.idlest(s.http.callers[0]); got != x.all[x.want] {
			t.Errorf("%s: %+v makes room, want %s", name, got, x.want)
		}
	}
	s.http.sessions.byID = nil
}
