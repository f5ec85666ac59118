package httpd

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// dial opens a connection to an address, and closes it with the test.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // long enough for a busy machine
	return c
}

// answers sends bytes and returns the status of each response, until the server
// closes the connection or stays silent for a while after at least so many
// responses; then the last element is "open". No response needs the client to
// close its side.
func answers(t *testing.T, addr, sent string, least int) (all []string) {
	t.Helper()
	c := dial(t, addr)
	if _, err := io.WriteString(c, sent); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	method, _, _ := strings.Cut(sent, " ")
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%.60q: %v after %q", sent, err, all)
			}
			return all
		}
		all = append(all, fmt.Sprint(resp.StatusCode))
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Errorf("%.60q: %v in an answer", sent, err)
			return all
		}
		if !resp.Close && resp.StatusCode >= 200 && r.Buffered() == 0 {
			// The server waits for the next request.
			while := 20 * time.Second
			if len(all) >= least {
				while = 100 * time.Millisecond
			}
			_ = c.SetReadDeadline(time.Now().Add(while))
			if _, err := r.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
				return append(all, "open")
			}
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		}
	}
}

// Bytes that an attacker may write on a connection: none are misread, and every
// refusal ends the connection, so that what follows is not taken for a request.
func TestHTTPRaw(t *testing.T) {
	w := newWorld(t, triage)
	addr, h := serveOn(t, w, nil)
	const (
		auth = "Authorization: Bearer " + tokenAda + "\r\n"
		json = "Content-Type: application/json\r\nAccept: application/json\r\n"
		head = "Host: localhost\r\n" + auth + json
	)
	// A message of the newer era, which is answered without a session.
	const modern = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	const era = "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
	post := func(line, headers, body string) string {
		return line + " HTTP/1.1\r\n" + headers + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
	}
	good := post("POST /mcp", head+era, modern)
	chunked := func(more string) string {
		return "POST /mcp HTTP/1.1\r\n" + head + era + more + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(modern), modern)
	}
	inner := strings.TrimPrefix(good, "POST ") // a request inside another's body
	cases := map[string]struct {
		sent string
		want string // the statuses, then "open" if the server waits for another request
	}{
		"as it should be":                {good, "200 open"},
		"two at once":                    {good + good, "200 200 open"},
		"a good one behind a bad one":    {post("POST /mcp", "Host: evil.com\r\n"+auth+json, modern) + good, "403"},
		"a good one behind no token":     {post("POST /mcp", "Host: localhost\r\n"+json, modern) + good, "401"},
		"a good one behind no path":      {post("POST /nowhere", head, modern) + good, "404"},
		"a good one behind no method":    {post("PUT /mcp", head, modern) + good, "405"},
		"behind /healthz":                {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + good, "200"},
		"by an absolute URL":             {post("POST http://localhost/mcp", head+era, modern), "200 open"},
		"by another's absolute URL":      {post("POST http://evil.com/mcp", head+era, modern), "403"},
		"a path in code":                 {post("POST /%6dcp", head+era, modern), "404"},
		"a path in code, twice":          {post("POST /%256dcp", head+era, modern), "404"},
		"a slash in code":                {post("POST /%2fmcp", head+era, modern), "404"},
		"two slashes":                    {post("POST //mcp", head+era, modern), "404"},
		"two slashes and a host":         {post("POST //localhost/mcp", head+era, modern), "404"},
		"a slash behind":                 {post("POST /mcp/", head+era, modern), "404"},
		"a path up":                      {post("POST /x/../mcp", head+era, modern), "404"},
		"a parameter":                    {post("POST /mcp;x", head+era, modern), "404"},
		"a query":                        {post("POST /mcp?x=/healthz", head+era, modern), "200 open"},
		"another's path in the query":    {post("POST /healthz?/mcp", head+era, modern), "405"},
		"a healthz in code":              {"GET /%68ealthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "401"},
		"CONNECT":                        {"CONNECT localhost:443 HTTP/1.1\r\n" + head + "\r\n" + good, "404"},
		"CONNECT elsewhere":              {"CONNECT evil.com:443 HTTP/1.1\r\n" + head + "\r\n" + good, "403"},
		"CONNECT to the path":            {"CONNECT /mcp HTTP/1.1\r\n" + head + "\r\n" + good, "405"},
		"OPTIONS for all":                {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", "401"},
		"OPTIONS for all, with a token":  {"OPTIONS * HTTP/1.1\r\n" + head + "\r\n", "404"},
		"TRACE":                          {"TRACE /mcp HTTP/1.1\r\n" + head + "\r\n", "405"},
		"HEAD":                           {"HEAD /mcp HTTP/1.1\r\n" + head + "\r\n", "405"},
		"a method in small letters":      {post("post /mcp", head+era, modern), "405"},
		"HTTP/2 in the clear":            {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "403"},
		"an upgrade to HTTP/2":           {post("POST /mcp", head+era+"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", modern), "200 open"},
		"an upgrade to WebSocket":        {"GET /mcp HTTP/1.1\r\n" + head + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "406"},
		"two hosts":                      {post("POST /mcp", head+"Host: evil.com\r\n"+era, modern), "400"},
		"no host":                        {post("POST /mcp", auth+json+era, modern), "400"},
		"no host, HTTP/1.0":              {strings.Replace(post("POST /mcp", auth+json+era, modern), "HTTP/1.1", "HTTP/1.0", 1), "403"},
		"two tokens":                     {post("POST /mcp", head+auth+era, modern), "401"},
		"two tokens, another's first":    {post("POST /mcp", "Authorization: Bearer "+tokenGrace+"\r\n"+head+era, modern), "401"},
		"two tokens in one":              {post("POST /mcp", strings.Replace(head, tokenAda, tokenAda+", Bearer "+tokenGrace, 1)+era, modern), "401"},
		"a token on two lines":           {post("POST /mcp", strings.Replace(head, "Bearer ", "Bearer\r\n ", 1)+era, modern), "200 open"},
		"a token behind a tab":           {post("POST /mcp", strings.Replace(head, "Bearer ", "Bearer\t", 1)+era, modern), "401"},
		"a header with a space":          {post("POST /mcp", strings.Replace(head, "Authorization:", "Authorization :", 1)+era, modern), "400"},
		"a header with NUL":              {post("POST /mcp", head+era+"X: \x00\r\n", modern), "400"},
		"two versions":                   {post("POST /mcp", head+era+"Mcp-Protocol-Version: 2025-11-25\r\n", modern), "400"},
		"two methods":                    {post("POST /mcp", head+era+"mcp-method: tools/call\r\n", modern), "400"},
		"two sessions":                   {post("POST /mcp", head+"Mcp-Session-Id: A\r\nMcp-Session-Id: B\r\n", pingBody), "400"},
		"two types":                      {post("POST /mcp", head+era+"Content-Type: text/plain\r\n", modern), "400"},
		"two encodings":                  {post("POST /mcp", head+era+"Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", modern), "400"},
		"an encoding":                    {post("POST /mcp", head+era+"Content-Encoding: gzip, identity\r\n", modern), "415"},
		"two lengths, the same":          {post("POST /mcp", head+era+fmt.Sprintf("Content-Length: %d\r\n", len(modern)), modern), "200 open"},
		"two lengths":                    {post("POST /mcp", head+era+"Content-Length: 5\r\n", modern), "400"},
		"a length with a sign":           {"POST /mcp HTTP/1.1\r\n" + head + era + fmt.Sprintf("Content-Length: +%d\r\n\r\n", len(modern)) + modern, "400"},
		"a length below nothing":         {"POST /mcp HTTP/1.1\r\n" + head + era + "Content-Length: -1\r\n\r\n" + modern, "400"},
		"in chunks":                      {chunked("") + good, "200"},
		"in chunks, and a length":        {chunked(fmt.Sprintf("Content-Length: %d\r\n", 5)) + good, "200"},
		"in chunks, twice":               {chunked("Transfer-Encoding: chunked\r\n"), "501"},
		"in chunks, and more":            {chunked("Transfer-Encoding: gzip\r\n"), "501"},
		"in chunks of another kind":      {strings.Replace(chunked(""), "chunked", "xchunked", 1), "501"},
		"in chunks, HTTP/1.0":            {strings.Replace(chunked(""), "HTTP/1.1", "HTTP/1.0", 1), "400"},
		"a chunk that is too long":       {strings.Replace(chunked(""), fmt.Sprintf("%x\r\n{", len(modern)), "fffffffffffffffff\r\n{", 1), "408"},
		"something behind the message":   {post("POST /mcp", head+era, modern+" "+modern), "400 open"},
		"a request behind the message":   {post("POST /mcp", head+era, modern+"POST "+inner), "400 open"},
		"a request behind the length":    {strings.Replace(post("POST /mcp", head+era, modern+"GET /healthz HTTP/1.1\r\n\r\n"), fmt.Sprint(len(modern)+len("GET /healthz HTTP/1.1\r\n\r\n")), fmt.Sprint(len(modern)), 1), "200 400"},
		"a body that is asked for first": {post("POST /mcp", head+era+"Expect: 100-continue\r\n", modern), "100 200 open"},
		"the same without a token":       {post("POST /mcp", "Host: localhost\r\n"+json+"Expect: 100-continue\r\n", ""), "401"},
		"the same, too large":            {"POST /mcp HTTP/1.1\r\n" + head + "Expect: 100-continue\r\nContent-Length: 999999999\r\n\r\n", "413"},
		"something else expected":        {post("POST /mcp", head+era+"Expect: magic\r\n", modern), "417"},
		"a stream with a body":           {post("GET /sse", "Host: localhost\r\n"+auth+"Accept: text/event-stream\r\n", "x"), "400"},
		"two connections":                {post("POST /message?sessionId=a&sessionId=b", head, pingBody), "404"},
		"no HTTP":                        {"\x16\x03\x01\x00\x05hello\r\n\r\n", "400"},
		"a head without an end":          {"POST /mcp HTTP/1.1\r\n" + head + "X: " + strings.Repeat("x", maxHeader+8192) + "\r\n\r\n", "431"},
	}
	t.Run("each", func(t *testing.T) {
		for name, x := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				least := len(strings.Fields(strings.TrimSuffix(x.want, "open")))
				if got := strings.Join(answers(t, addr, x.sent, least), " "); got != x.want {
					t.Errorf("%s, want %s", got, x.want)
				}
			})
		}
	})
	idle(t, h)
}

// A client that sends only a part, or does not read, is answered and
// disconnected in time, with or without a token.
func TestHTTPHeld(t *testing.T) {
	cert, _ := certificate(t)
	short := func(h *Server) {
		// Enough for a client that sends at once, even on a busy machine.
		h.sends, h.reads, h.heads = time.Second, time.Second, time.Second
	}
	addr, h := serveOn(t, newWorld(t, triage), nil, short)
	secure, _ := serveOn(t, newWorld(t, ""), &tls.Config{Certificates: []tls.Certificate{cert}}, short)
	const (
		host = "Host: localhost\r\n"
		auth = host + "Authorization: Bearer " + tokenAda + "\r\n"
		json = "Content-Type: application/json\r\n"
		part = "Content-Length: 1000\r\n\r\n"
		none = "Transfer-Encoding: chunked\r\n\r\n"
	)
	var wg sync.WaitGroup // t.Parallel would run only as many at once as there are processors
	for name, x := range map[string]struct{ addr, sent, want string }{
		"no token":                  {addr, "POST /mcp HTTP/1.1\r\n" + host + part, "401"},
		"no token, a part":          {addr, "POST /mcp HTTP/1.1\r\n" + host + part + "{", "401"},
		"no token, in chunks":       {addr, "POST /sse HTTP/1.1\r\n" + host + none, "401"},
		"another host":              {addr, "POST /mcp HTTP/1.1\r\nHost: evil.com\r\n" + part, "403"},
		"health":                    {addr, "GET /healthz HTTP/1.1\r\n" + host + none, "200"},
		"for all":                   {addr, "OPTIONS * HTTP/1.1\r\n" + host + part, "401"},
		"another type":              {addr, "POST /mcp HTTP/1.1\r\n" + auth + "Content-Type: text/plain\r\n" + part, "415"},
		"another kind of answer":    {addr, "POST /mcp HTTP/1.1\r\n" + auth + json + "Accept: text/html\r\n" + part, "406"},
		"another path":              {addr, "POST /elsewhere HTTP/1.1\r\n" + auth + json + part, "404"},
		"another method":            {addr, "PUT /mcp HTTP/1.1\r\n" + auth + json + none, "405"},
		"a message":                 {addr, "POST /mcp HTTP/1.1\r\n" + auth + json + part, "408"},
		"a part of a message":       {addr, "POST /mcp HTTP/1.1\r\n" + auth + json + part + "{", "408"},
		"a message in chunks":       {addr, "POST /mcp HTTP/1.1\r\n" + auth + json + none + "1\r\n{\r\n", "408"},
		"one that is too large":     {addr, "POST /mcp HTTP/1.1\r\n" + auth + json + "Content-Length: 99999999\r\n\r\n", "413"},
		"a stream with a body":      {addr, "GET /sse HTTP/1.1\r\n" + auth + part, "400"},
		"half a head":               {addr, "POST /mcp HTTP/1.1\r\nHost: local", ""},
		"nothing":                   {addr, "", ""},
		"nothing, for TLS":          {secure, "", ""},
		"half a greeting of TLS":    {secure, "\x16\x03\x01\x02\x00\x01\x00", ""},
		"a head in small pieces":    {addr, "drip", ""},
		"a message in small pieces": {addr, "POST /mcp HTTP/1.1\r\n" + auth + json + part + "drip", "408"},
	} {
		c := dial(t, x.addr)
		wg.Go(func() {
			sent, drips := strings.CutSuffix(x.sent, "drip")
			_, _ = io.WriteString(c, sent)
			if drips {
				go func() {
					drip := time.NewTicker(10 * time.Millisecond)
					defer drip.Stop()
					for err := error(nil); err == nil; <-drip.C {
						_, err = io.WriteString(c, " ")
					}
				}()
			}
			// Reading ends: the server closed the connection.
			got, err := io.ReadAll(c)
			if err != nil && !drips && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: after %q: %v", name, got, err)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: it is still open after %q", name, got)
			}
			if status, _ := strings.CutPrefix(string(got), "HTTP/1.1 "); x.want != "" && !strings.HasPrefix(status, x.want+" ") || x.want == "" && strings.HasPrefix(status, "2") {
				t.Errorf("%s: %q came, want %s", name, got, x.want)
			}
		})
	}
	// Request after request, without reading a response.
	c := dial(t, addr)
	wg.Go(func() {
		_ = c.(*net.TCPConn).SetReadBuffer(1)
		ask := "POST /mcp HTTP/1.1\r\n" + auth + json + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(pingBody)) + pingBody
		var err error
		for err == nil {
			_, err = io.WriteString(c, strings.Repeat(ask, 100))
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a client that reads nothing can send for ever")
		}
	})
	wg.Wait()
	idle(t, h)
}

// idle waits until no request is counted any more: a response arrives before its
// handler is over.
func idle(t *testing.T, h *Server) {
	t.Helper()
	for _, c := range h.callers {
		until(t, "nothing is held", func() bool {
			inFlight, held, answers := c.counted()
			return inFlight+held+answers == 0
		})
	}
}
