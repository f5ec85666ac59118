package httpd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

const pingBody = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// TR-01, TR-02: a request from elsewhere, or without a token, gets nothing on
// any path.
func TestHTTPGuard(t *testing.T) {
	s := newSite(t, newWorld(t, triage), func(o *Options) { o.PublicURL = "https://packs.example.com/mcp-host/" })
	c := s.Client(tokenAda)
	local := strings.TrimPrefix(s.Server.URL, "http://")
	_, port, _ := net.SplitHostPort(local)
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				switch {
				case pairs[i] == "Host":
					r.Host = pairs[i+1]
				case pairs[i+1] == "":
					r.Header.Del(pairs[i])
				default:
					r.Header.Set(pairs[i], pairs[i+1])
				}
			}
		}
	}
	for name, x := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"as it should be":               {header(), 400}, // only the session is missing
		"host localhost":                {header("Host", "localhost:"+port), 400},
		"host LOCALHOST":                {header("Host", "LOCALHOST"), 400},
		"another port, forwarded":       {header("Host", "localhost:9000"), 400},
		"host ::1":                      {header("Host", "[::1]:"+port), 400},
		"host ::1, no port":             {header("Host", "[::1]"), 400},
		"public host":                   {header("Host", "packs.example.com"), 400},
		"host evil.com":                 {header("Host", "evil.com"), 403},
		"host evil.com and our port":    {header("Host", "evil.com:"+port), 403},
		"host localhost.evil.com":       {header("Host", "localhost.evil.com"), 403},
		"host 127.0.0.1.evil.com":       {header("Host", "127.0.0.1.evil.com"), 403},
		"host of another machine":       {header("Host", "192.0.2.1:"+port), 403},
		"host 0.0.0.0":                  {header("Host", "0.0.0.0:"+port), 403},
		"host 127.1":                    {header("Host", "127.1:"+port), 403},
		"host in brackets":              {header("Host", "[evil.com]"), 403},
		"host with a user":              {header("Host", "localhost@evil.com"), 403},
		"host with a dot at the end":    {header("Host", "packs.example.com."), 403},
		"a page of this machine":        {header("Origin", "http://localhost:3000"), 400},
		"the public page":               {header("Origin", "https://packs.example.com"), 400},
		"the public page, port written": {header("Origin", "https://packs.example.com:443"), 400},
		"the public page without TLS":   {header("Origin", "http://packs.example.com"), 403},
		"origin evil.com":               {header("Origin", "http://evil.com"), 403},
		"origin null":                   {header("Origin", "null"), 403},
		"origin file":                   {header("Origin", "file://"), 403},
		"origin localhost.evil.com":     {header("Origin", "http://localhost.evil.com"), 403},
		"origin with a user":            {header("Origin", "http://localhost@evil.com"), 403},
		"origin with a path":            {header("Origin", "http://localhost/evil"), 403},
		"two origins":                   {func(r *http.Request) { r.Header["Origin"] = []string{"http://localhost", "http://evil.com"} }, 403},
		"no token":                      {header("Authorization", ""), 401},
		"wrong token":                   {header("Authorization", "Bearer "+tokenAda+"x"), 401},
		"part of the token":             {header("Authorization", "Bearer "+tokenAda[:10]), 401},
		"no token after all":            {header("Authorization", "Bearer "), 401},
		"another scheme":                {header("Authorization", "Basic "+tokenAda), 401},
		"only the token":                {header("Authorization", tokenAda), 401},
		"scheme in small letters":       {header("Authorization", "bearer "+tokenAda), 400},
		"two tokens": {func(r *http.Request) {
			r.Header["Authorization"] = []string{"Bearer " + tokenAda, "Bearer " + tokenGrace}
		}, 401},
		"token in the query": {func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery = url.Values{"token": {tokenAda}, "access_token": {tokenAda}}.Encode()
		}, 401},
		"token in a cookie":           {header("Authorization", "", "Cookie", "token="+tokenAda), 401},
		"host evil.com, and no token": {header("Host", "evil.com", "Authorization", ""), 403},
		"an ask of a browser":         {func(r *http.Request) { r.Method = "OPTIONS"; r.Header.Del("Authorization") }, 401},
	} {
		r := c.Request(t.Context(), "POST", "/mcp", []byte(pingBody))
		x.change(r)
		got, h, text := c.Status(r)
		if got != x.want {
			t.Errorf("%s: %d %q, want %d", name, got, text, x.want)
		}
		for k := range h {
			if strings.HasPrefix(k, "Access-Control-") {
				t.Errorf("%s: the answer has %s", name, k)
			}
		}
		if challenge := h.Get("WWW-Authenticate"); (got == 401) != strings.HasPrefix(challenge, "Bearer ") {
			t.Errorf("%s: WWW-Authenticate = %q", name, challenge)
		}
		if x.want == 403 || x.want == 401 { // the same on every other path
			for _, at := range [][2]string{{"GET", "/mcp"}, {"DELETE", "/mcp"}, {"GET", "/sse"}, {"POST", "/message?sessionId=x"}, {"GET", "/"}, {"GET", "/approvals"}} {
				r := c.Request(t.Context(), at[0], at[1], nil)
				x.change(r)
				if name == "token in the query" && strings.Contains(at[1], "?") {
					r.URL.RawQuery += "&sessionId=x"
				}
				if got, _, _ := c.Status(r); got != x.want {
					t.Errorf("%s: %s %s = %d, want %d", name, at[0], at[1], got, x.want)
				}
			}
		}
	}
	if log := s.w.log.String(); strings.Contains(log, tokenAda) || strings.Contains(log, tokenGrace) {
		t.Error("a token is in the log")
	}
}

// Paths that need no token reveal nothing private.
func TestHTTPOpenToAll(t *testing.T) {
	w := newWorld(t, triage)
	for _, o := range []Options{
		{}, {Issuer: "https://login.example.com/"}, {Issuer: "https://login.example.com/", PublicURL: "https://packs.example.com/here/"},
	} {
		s := newSite(t, w, func(to *Options) { to.Issuer, to.PublicURL = o.Issuer, o.PublicURL })
		c := s.Client("")
		get := func(method, path string) (int, http.Header, string) {
			return c.Status(c.Request(t.Context(), method, path, nil))
		}
		if code, _, text := get("GET", "/healthz"); code != 200 || text != "{\"status\":\"ok\"}\n" {
			t.Errorf("/healthz = %d %q, want ok and nothing else", code, text)
		}
		if code, _, _ := get("POST", "/healthz"); code != 405 {
			t.Errorf("POST /healthz = %d, want 405", code)
		}
		base := s.Server.URL
		if o.PublicURL != "" {
			base = "https://packs.example.com/here"
		}
		for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
			code, h, text := get("GET", path)
			if o.Issuer == "" {
				if code != 401 {
					t.Errorf("without an issuer, GET %s = %d, want 401", path, code)
				}
				continue
			}
			var m map[string]any
			if err := json.Unmarshal([]byte(text), &m); err != nil || code != 200 || h.Get("Content-Type") != "application/json" {
				t.Errorf("GET %s = %d %q", path, code, text)
			}
			if m["resource"] != base+"/mcp" || len(texts(m["authorization_servers"])) != 1 || texts(m["authorization_servers"])[0] != o.Issuer {
				t.Errorf("GET %s = %v, want the resource and the issuer", path, m)
			}
		}
		_, h, _ := get("POST", "/mcp")
		want := `Bearer realm="packs-mcp", error="invalid_token"` // it sent an empty token
		if o.Issuer != "" {
			want += `, resource_metadata="` + base + `/.well-known/oauth-protected-resource/mcp"`
		}
		if got := h.Get("WWW-Authenticate"); got != want {
			t.Errorf("WWW-Authenticate = %q, want %q", got, want)
		}
	}
}

// A token without a name is this machine's user's own as long as only this machine can
// reach the server. What a proxy passes on may be anybody's.
func TestHTTPNamelessBehindProxy(t *testing.T) {
	for name, x := range map[string]struct {
		o      Options
		header string
		want   int
	}{
		"this machine's user":       {Options{Local: true}, "", 400}, // only the session is missing
		"through a proxy":           {Options{Local: true}, "X-Forwarded-For", 403},
		"through another":           {Options{Local: true}, "Forwarded", 403},
		"through a third":           {Options{Local: true}, "Via", 403},
		"with a public URL":         {Options{Local: true, PublicURL: "https://packs.example.com"}, "X-Forwarded-For", 400},
		"others can reach it":       {Options{}, "X-Forwarded-For", 400},
		"a named person's, proxied": {Options{Local: true, Credentials: []Credential{{Token: tokenAda, Person: "ada"}}}, "Via", 400},
	} {
		s := newSite(t, newWorld(t, ""), func(o *Options) {
			if *o = x.o; len(o.Credentials) == 0 {
				o.Credentials = []Credential{{Token: tokenAda}}
			}
		})
		c := s.Client(tokenAda)
		r := c.Request(t.Context(), "POST", "/mcp", []byte(pingBody))
		if x.header != "" {
			r.Header.Set(x.header, "192.0.2.1")
		}
		if got, _, text := c.Status(r); got != x.want {
			t.Errorf("%s: %d %q, want %d", name, got, text, x.want)
		}
	}
}

// New refuses these options.
func TestHTTPOptions(t *testing.T) {
	w := newWorld(t, "")
	for name, o := range map[string]Options{
		"nobody":           {},
		"an empty token":   {Credentials: []Credential{{Person: "ada"}}},
		"one token twice":  {Credentials: []Credential{{Token: tokenAda, Person: "ada"}, {Token: tokenAda, Person: "grace"}}},
		"no URL":           {Credentials: []Credential{{Token: tokenAda, Person: "ada"}}, PublicURL: "packs.example.com"},
		"URL with a query": {Credentials: []Credential{{Token: tokenAda, Person: "ada"}}, PublicURL: "https://packs.example.com/?x"},
	} {
		if h, err := New(w.srv, o); err == nil {
			h.Close()
			t.Errorf("%s: HTTP() = nil, want an error", name)
		} else if strings.Contains(err.Error(), tokenAda) {
			t.Errorf("%s: the error has the token in it: %v", name, err)
		}
	}
	one := newWorld(t, "", func(s *setup) { s.server.Workspace = t.TempDir() })
	if h, err := New(one.srv, Options{Credentials: []Credential{{Token: tokenAda, Person: "ada"}, {Token: tokenGrace, Person: "grace"}}}); err == nil {
		h.Close()
		t.Error("HTTP() with one workspace for two people = nil, want an error")
	}
}

// TR-04: any bad body is bounded and refused, and the next request is served.
func TestHTTPBodies(t *testing.T) {
	s := newSite(t, newWorld(t, triage, func(s *setup) { s.server.Limits.Request = 100_000 }))
	deep := strings.Repeat("[", 40_000) + strings.Repeat("]", 40_000)
	for name, x := range map[string]struct {
		body   string
		change func(*http.Request)
		want   int
		says   string
	}{
		"too large, announced":     {body: strings.Repeat(" ", 100_001), want: 413, says: "larger than 100000 bytes"},
		"too large, not announced": {body: strings.Repeat(" ", 300_000), change: func(r *http.Request) { r.ContentLength = -1 }, want: 413},
		"at the limit":             {body: strings.Repeat(" ", 100_000-len(pingBody)) + pingBody, want: 400, says: "Mcp-Session-Id"},
		"empty":                    {want: 400, says: "-32700"},
		"no JSON":                  {body: "{", want: 400, says: "-32700"},
		"NaN":                      {body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}`, want: 400, says: "-32700"},
		"no UTF-8":                 {body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", want: 400, says: "-32700"},
		"a batch":                  {body: "[" + pingBody + "]", want: 400, says: "-32600"},
		"deep":                     {body: deep, want: 400, says: "-32"},
		"deep in params":           {body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + deep + `}`, want: 400},
		"a name twice":             {body: `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, want: 400, says: "twice"},
		"a huge id":                {body: `{"jsonrpc":"2.0","id":1e400,"method":"ping"}`, want: 400, says: "-32600"},
		"BOM and CRLF":             {body: "\xef\xbb\xbf" + pingBody + "\r\n", want: 400, says: "Mcp-Session-Id"},
		"another type":             {body: pingBody, change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, want: 415},
		"no type":                  {body: pingBody, change: func(r *http.Request) { r.Header.Del("Content-Type") }, want: 415},
		"type with a charset":      {body: pingBody, change: func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, want: 400},
		"compressed":               {body: pingBody, change: func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, want: 415},
		"a client that takes HTML": {body: pingBody, change: func(r *http.Request) { r.Header.Set("Accept", "text/html") }, want: 406},
	} {
		c := s.Client(tokenAda)
		r := c.Request(t.Context(), "POST", "/mcp", []byte(x.body))
		if x.change != nil {
			x.change(r)
		}
		if code, _, text := c.Status(r); code != x.want || !strings.Contains(text, x.says) {
			t.Errorf("%s: %d %.200q, want %d and %q", name, code, text, x.want, x.says)
		}
		if code, _, text := c.Status(c.Request(t.Context(), "GET", "/healthz", nil)); code != 200 {
			t.Fatalf("%s: afterwards, /healthz = %d %q", name, code, text)
		}
	}
	for _, c := range s.http.callers {
		if c.inFlight != 0 || c.held != 0 {
			t.Errorf("%d requests with %d bytes are still held", c.inFlight, c.held)
		}
	}
	// A body of 100 MB is refused by its length alone.
	c := s.Client(tokenAda)
	r := c.Request(t.Context(), "POST", "/mcp", nil)
	r.Body, r.ContentLength = io.NopCloser(&servertest.Repeat{B: 'x', N: 100 << 20}), 100<<20
	if resp, err := s.Transport.RoundTrip(r); err == nil { // the connection may break first
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("100 MB: %d, want 413", resp.StatusCode)
		}
	}
}

// Methods and paths that we do not serve.
func TestHTTPElsewhere(t *testing.T) {
	s := newSite(t, newWorld(t, triage))
	for _, x := range []struct {
		method, path string
		want         int
	}{
		{"PUT", "/mcp", 405}, {"HEAD", "/mcp", 405}, {"OPTIONS", "/mcp", 405}, {"POST", "/sse", 405}, {"GET", "/message", 405},
		{"GET", "/", 404}, {"POST", "/mcp/", 404}, {"POST", "/mcp/../mcp", 404}, {"GET", "/%6dcp/x", 404}, {"POST", "/message?sessionId=none", 404}, {"POST", "/message", 404},
	} {
		c := s.Client(tokenAda)
		code, h, text := c.Status(c.Request(t.Context(), x.method, x.path, nil))
		if code != x.want || (code == 405) != (h.Get("Allow") != "") {
			t.Errorf("%s %s = %d %q, Allow %q, want %d", x.method, x.path, code, text, h.Get("Allow"), x.want)
		}
	}
}

// Headers that contradict the body.
func TestHTTPHeaders(t *testing.T) {
	s := newSite(t, newWorld(t, triage))
	call := map[string]any{"id": 1, "method": "tools/call", "params": withMeta(map[string]any{"name": "capability_packs_list", "arguments": map[string]any{}}, false)}
	for name, x := range map[string]struct {
		header, value string
		want          int
		says          string
	}{
		"as they should be": {want: 200, says: `"packs"`},
		"no version":        {"Mcp-Protocol-Version", "", 400, "-32020"},
		"an older version":  {"Mcp-Protocol-Version", "2025-11-25", 400, "-32020"},
		"a later version":   {"Mcp-Protocol-Version", "2027-01-01", 400, "-32020"},
		"no method":         {"Mcp-Method", "", 400, "-32020"},
		"another method":    {"Mcp-Method", "tools/list", 400, "-32020"},
		"no name":           {"Mcp-Name", "", 400, "-32020"},
		"another name":      {"Mcp-Name", "capability_packs_open_docs", 400, "-32020"},
		"name in base64":    {"Mcp-Name", "=?base64?Y2FwYWJpbGl0eV9wYWNrc19saXN0?=", 200, `"packs"`},
		"name in no base64": {"Mcp-Name", "=?base64?!?=", 400, "-32020"},
		"a session id":      {"Mcp-Session-Id", "not looked at", 200, `"packs"`},
	} {
		c := s.Newer(tokenAda, nil)
		r := c.Request(t.Context(), "POST", "/mcp", c.Encode(call))
		if x.header != "" {
			r.Header.Set(x.header, x.value)
		}
		if x.value == "" {
			r.Header.Del(x.header)
		}
		if code, h, text := c.Status(r); code != x.want || !strings.Contains(text, x.says) || h.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %.300q, want %d and %s", name, code, text, x.want, x.says)
		}
	}
	modern := s.Newer(tokenAda, nil)
	for name, x := range map[string]struct {
		m    map[string]any
		want int
		says string
	}{
		"a method that is not there": {map[string]any{"id": 1, "method": "no/such", "params": withMeta(nil, false)}, 404, "-32601"},
		"initialize":                 {map[string]any{"id": 1, "method": "initialize", "params": withMeta(nil, false)}, 404, "-32601"},
		"a cursor of another list":   {map[string]any{"id": 1, "method": "tools/list", "params": withMeta(map[string]any{"cursor": "eA=="}, false)}, 400, "-32602"},
		"no _meta":                   {map[string]any{"id": 1, "method": "tools/list"}, 400, "-32602"},
		"an answer":                  {map[string]any{"id": 1, "result": map[string]any{}}, 400, "-32600"},
		"a notification":             {map[string]any{"method": "notifications/cancelled", "params": withMeta(map[string]any{"requestId": 1}, false)}, 202, ""},
	} {
		if code, _, text := modern.Status(modern.Request(t.Context(), "POST", "/mcp", modern.Encode(x.m))); code != x.want || !strings.Contains(text, x.says) {
			t.Errorf("%s: %d %.300q, want %d and %s", name, code, text, x.want, x.says)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		if code, h, _ := modern.Status(modern.Request(t.Context(), method, "/mcp", nil)); code != 405 || h.Get("Allow") != "POST" {
			t.Errorf("%s of the newer era = %d, want 405", method, code)
		}
	}
	// A version that does not exist.
	never := map[string]any{"id": 1, "method": "tools/list", "params": map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": map[string]any{}}}}
	r := modern.Request(t.Context(), "POST", "/mcp", modern.Encode(never))
	r.Header.Set("Mcp-Protocol-Version", "2099-01-01")
	if code, _, text := modern.Status(r); code != 400 || !strings.Contains(text, "-32022") || !strings.Contains(text, "2026-07-28") {
		t.Errorf("a version that nobody has: %d %s, want 400 and the versions there are", code, text)
	}
	older := s.Older(tokenAda, nil)
	r = older.Request(t.Context(), "POST", "/mcp", []byte(pingBody))
	r.Header.Set("Mcp-Protocol-Version", "2020-01-01")
	if code, _, text := older.Status(r); code != 400 {
		t.Errorf("a version that nobody had: %d %s, want 400", code, text)
	}
}

// TLS, and a server that ends with its context.
func TestHTTPServe(t *testing.T) {
	w := newWorld(t, triage)
	for _, secure := range []bool{false, true} {
		h, err := New(w.srv, Options{Credentials: []Credential{{Token: tokenAda}}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var conf *tls.Config
		tr := &http.Transport{}
		url := "http://" + l.Addr().String()
		if secure {
			cert, pool := certificate(t)
			conf = &tls.Config{Certificates: []tls.Certificate{cert}}
			tr = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}, ForceAttemptHTTP2: true}
			url = "https://" + l.Addr().String()
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.Serve(ctx, l, conf) }()
		resp, err := (&http.Client{Transport: tr}).Get(url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || secure != (resp.TLS != nil) || resp.ProtoMajor != 1 {
			t.Errorf("/healthz = %s over %s", resp.Status, resp.Proto)
		}
		if secure {
			// A client that speaks plain HTTP is not served.
			if resp, err := http.Get("http://" + l.Addr().String() + "/healthz"); err == nil {
				resp.Body.Close()
				if resp.StatusCode != 400 {
					t.Errorf("in the clear: %s", resp.Status)
				}
			}
		}
		// A call and a stream are in progress when the server ends.
		r, _ := http.NewRequest("GET", url+"/sse", nil)
		r.Header.Set("Authorization", "Bearer "+tokenAda)
		stream, err := tr.RoundTrip(r)
		if err != nil || stream.StatusCode != 200 {
			t.Fatalf("GET /sse = %v, %v", stream, err)
		}
		stop()
		if _, err := io.ReadAll(stream.Body); err != nil {
			t.Errorf("the stream ended with %v, want its end", err)
		}
		stream.Body.Close()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve() = %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("Serve does not end")
		}
		tr.CloseIdleConnections()
	}
}

// certificate returns a certificate for localhost and the pool of its authority.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
