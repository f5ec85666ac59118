package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// world is a small internet: names, and servers at their addresses.
type world struct {
	t     *testing.T
	proxy *Proxy
	at    string // the proxy's address
	close func() []sandbox.Contact
	roots *x509.CertPool

	mu     sync.Mutex
	names  map[string][][]string // name → addresses for each lookup in turn; the last repeats
	dialed []string
	heard  []*http.Request // requests that the hosts received, over TLS or not
}

const allowedName = "api.example.com" // httptest's certificate is for it

func newWorld(t *testing.T, allowed ...string) *world {
	t.Helper()
	w := &world{t: t, names: map[string][][]string{allowedName: {{"192.0.2.1"}}}, roots: x509.NewCertPool()}
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.heard = append(w.heard, r)
		w.mu.Unlock()
		if r.URL.Query().Has("long") {
			rw.Header().Set("X-Long", strings.Repeat("a", 2*maxHeader))
		}
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(rw, r, to, http.StatusFound)
			return
		}
		fmt.Fprintf(rw, "%s %s %q", r.Method, r.Host, body)
	})
	secure, plain := httptest.NewUnstartedServer(handler), httptest.NewServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // about truncated hellos
	secure.StartTLS()
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	w.roots.AddCert(secure.Certificate())

	w.proxy = &Proxy{
		lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			all := w.names[name]
			if len(all) == 0 {
				return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
			}
			if len(all) > 1 {
				w.names[name] = all[1:]
			}
			var addrs []netip.Addr
			for _, a := range all[0] {
				addrs = append(addrs, netip.MustParseAddr(a))
			}
			return addrs, nil
		},
		// These tests treat a range reserved for documentation as public, since no machine has it.
		public: func(a netip.Addr) bool { return hosts.Public(a) || netip.MustParsePrefix("192.0.2.0/24").Contains(a) },
		here: func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: net.IPv4(192, 0, 2, 255), Mask: net.CIDRMask(32, 32)}}, nil
		},
		dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			w.mu.Lock()
			w.dialed = append(w.dialed, to.String())
			w.mu.Unlock()
			server := plain
			if to.Port() == 443 {
				server = secure
			}
			return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all []hosts.Host
	for _, a := range allowed {
		h, err := hosts.Parse(a)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	w.at = ln.Addr().String()
	w.proxy.start(ln, all)
	w.close = sync.OnceValue(w.proxy.Close)
	t.Cleanup(func() { w.close() })
	return w
}

// client is an ordinary HTTP client that uses the proxy.
func (w *world) client() *http.Client {
	transport := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: w.at}),
		TLSClientConfig: &tls.Config{RootCAs: w.roots},
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// raw sends bytes to the proxy and returns the whole response.
func (w *world) raw(text string) string {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.at)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		return ""
	}
	first := make([]byte, 64<<10)
	n, _ := conn.Read(first)
	_ = conn.(*net.TCPConn).CloseWrite() // so that the proxy closes connections it would keep alive
	rest, _ := io.ReadAll(conn)
	return string(first[:n]) + string(rest)
}

func TestReached(t *testing.T) {
	w := newWorld(t, allowedName+":443", allowedName+":80", allowedName+":8080")
	for _, at := range []string{"https://" + allowedName + "/a", "http://" + allowedName + "/b", "http://" + allowedName + ":8080/c", "https://API.example.com/d"} {
		resp, err := w.client().Post(at, "text/plain", strings.NewReader("hi"))
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		host := strings.TrimPrefix(strings.TrimPrefix(at, "https://"), "http://")
		host, _, _ = strings.Cut(host, "/")
		want := fmt.Sprintf("POST %s %q", host, "hi")
		if string(body) != want {
			t.Errorf("%s: %d %q, want %q", at, resp.StatusCode, body, want)
		}
	}
	if want := []string{"192.0.2.1:443", "192.0.2.1:80", "192.0.2.1:8080", "192.0.2.1:443"}; !slices.Equal(w.dialed, want) {
		t.Errorf("dialed %q, want %q", w.dialed, want)
	}
	contacts := w.close()
	if len(contacts) != 3 {
		t.Fatalf("contacts %+v, want three", contacts)
	}
	for _, c := range contacts {
		if c.Refused != "" || c.Address != "192.0.2.1" || c.Sent == 0 || c.Received == 0 {
			t.Errorf("contact %+v, want bytes both ways and no refusal", c)
		}
	}
}

// Nothing that a program sends reaches another host, or an allowed host for which it was
// not meant.
func TestWaysAround(t *testing.T) {
	hello := func(config *tls.Config) string { return clientHello(t, config) }
	connect := func(target string) string {
		return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"
	}
	get := func(at, more string) string {
		return "GET " + at + " HTTP/1.1\r\nHost: " + allowedName + "\r\n" + more + "\r\n"
	}
	const notNamed = "does not name this host"
	for _, c := range []struct {
		name, send string
		answer     string // part of the response; empty: not checked
		refused    string // part of the recorded refusal; empty: the HTTP server refuses by itself
	}{
		{"another name", connect("evil.example.com:443"), "403", notNamed},
		{"another port", connect(allowedName + ":22"), "403", notNamed},
		{"no port", connect(allowedName), "403", notNamed},
		{"an IPv4 address", connect("192.0.2.1:443"), "403", notNamed},
		{"this machine", connect("127.0.0.1:443"), "403", notNamed},
		{"a short IPv4 address", connect("127.1:443"), "403", notNamed},
		{"an IPv4 address as a number", connect("3221225985:443"), "403", notNamed},
		{"an IPv4 address in hex", connect("0xc0000201:443"), "403", notNamed},
		{"an IPv4 address in octal", connect("0300.0.02.01:443"), "403", notNamed},
		{"an IPv6 address", connect("[2001:db8::1]:443"), "403", notNamed},
		{"an IPv4 address inside IPv6", connect("[::ffff:192.0.2.1]:443"), "403", notNamed},
		{"a dot at the end", connect(allowedName + ".:443"), "403", notNamed},
		{"a subdomain", connect("x." + allowedName + ":443"), "403", notNamed},
		{"a longer name", connect(allowedName + ".evil.com:443"), "403", notNamed},
		{"a user before the name", connect(allowedName + "@evil.com:443"), "400", ""},
		{"a port that is written twice", connect("evil.com:443:443"), "400", ""},
		{"letters that look the same", connect("\u0430pi.example.com:443"), "400", ""},
		{"localhost", connect("localhost:443"), "403", notNamed},
		{"a name that leads to this machine", connect("lo.example.com:443"), "403", "not on the internet"},
		{"a name that leads to this machine's address on the internet", connect("own.example.com:443"), "403", "or to this machine"},
		{"a name that leads to a private network", connect("lan.example.com:443"), "403", "not on the internet"},
		{"a name that leads to a cloud's metadata", connect("meta.example.com:443"), "403", "not on the internet"},
		{"a name that leads to ::1", connect("six.example.com:443"), "403", "not on the internet"},
		{"a name that leads to IPv4 inside IPv6", connect("mapped.example.com:443"), "403", "not on the internet"},
		{"a name that leads nowhere", connect("gone.example.com:443"), "502", "no such host"},

		{"a tunnel with HTTP in it", connect(allowedName+":443") + "GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n", "200 Connection", "not TLS"},
		{"a tunnel with SSH in it", connect(allowedName+":443") + "SSH-2.0-x\r\n", "200 Connection", "not TLS"},
		{"a tunnel in a tunnel", connect(allowedName+":443") + connect("evil.com:443"), "200 Connection", "not TLS"},
		{"TLS that names nobody", connect(allowedName+":443") + hello(&tls.Config{InsecureSkipVerify: true}), "200 Connection", "does not name a server"},
		{"TLS for another", connect(allowedName+":443") + hello(&tls.Config{ServerName: "evil.com"}), "200 Connection", "names another server"},
		{"TLS with a name that begins the same", connect(allowedName+":443") + hello(&tls.Config{ServerName: allowedName + ".evil.com"}), "200 Connection", "names another server"},
		{"TLS that hides the name", connect(allowedName+":443") + hello(hidden(t, allowedName)), "200 Connection", "hides a server's name"},
		{"a body with CONNECT", "CONNECT " + allowedName + ":443 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "200 Connection", "not TLS"},

		{"HTTP to another name", get("http://evil.com/", ""), "403", notNamed},
		{"HTTP to another port", get("http://"+allowedName+":81/", ""), "403", notNamed},
		{"HTTP to an address", get("http://192.0.2.1/", ""), "403", notNamed},
		{"HTTP with a user", get("http://"+allowedName+"@evil.com/", ""), "403", "not asked for"},
		{"HTTP with a user for the host", get("http://me:pass@"+allowedName+"/", ""), "403", "not asked for"},
		{"HTTPS without a tunnel", get("https://"+allowedName+"/", ""), "403", "not asked for"},
		{"FTP", get("ftp://"+allowedName+"/", ""), "403", "not asked for"},
		{"a path alone", get("/", ""), "403", "not asked for"},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: " + allowedName + "\r\n\r\n", "403", "not asked for"},
		{"two lengths", "POST http://" + allowedName + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "400", ""},
		{"a space before the colon", get("http://"+allowedName+"/", "Content-Length : 3\r\n"), "400", ""},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "not asked for"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			w := newWorld(t, allowedName+":443", allowedName+":80", "lo.example.com:443", "lan.example.com:443", "meta.example.com:443", "six.example.com:443", "mapped.example.com:443", "gone.example.com:443", "own.example.com:443")
			for name, at := range map[string]string{"lo": "127.0.0.1", "lan": "10.0.0.7", "meta": "169.254.169.254", "six": "::1", "mapped": "::ffff:10.0.0.7", "own": "192.0.2.255"} {
				w.names[name+".example.com"] = [][]string{{at}}
			}
			got := w.raw(c.send)
			if !strings.Contains(got, c.answer) {
				t.Errorf("answered %q, want %q", got, c.answer)
			}
			contacts := w.close()
			if len(w.heard) != 0 {
				t.Errorf("a host was asked %v", w.heard[0])
			}
			refused := slices.DeleteFunc(slices.Clone(contacts), func(c sandbox.Contact) bool { return c.Refused == "" })
			switch {
			case c.refused == "" && len(refused) != 0:
				t.Errorf("contacts %+v, want none", refused)
			case c.refused != "" && (len(refused) != 1 || !strings.Contains(refused[0].Refused, c.refused)):
				t.Errorf("contacts %+v, want one that was refused because %q", contacts, c.refused)
			}
			for _, c := range contacts {
				if c.Refused == "" && c.Sent > 0 {
					t.Errorf("%d bytes were sent to %s", c.Sent, c.Host)
				}
			}
		})
	}
}

// What reaches a host without TLS is exactly what was checked, whatever else the program
// writes.
func TestRewritten(t *testing.T) {
	w := newWorld(t, allowedName+":80")
	got := w.raw("POST http://" + allowedName + "/ HTTP/1.1\r\nHost: evil.com\r\nConnection: upgrade, x-secret\r\nUpgrade: h2c\r\nX-Secret: 1\r\nX-Forwarded-Host: evil.com\r\n" +
		"Proxy-Authorization: Basic x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nGET http://evil.com/ HTTP/1.1\r\nHost: evil.com\r\n\r\n")
	if !strings.Contains(got, "200 OK") || !strings.Contains(got, "403 Forbidden") || strings.Contains(got, "101") {
		t.Errorf("answered %q, want the first request passed on and the second one refused", got)
	}
	w.close()
	if len(w.heard) != 1 {
		t.Fatalf("the host was asked %d times, want once", len(w.heard))
	}
	r := w.heard[0]
	if r.Host != allowedName {
		t.Errorf("Host is %q, want %q", r.Host, allowedName)
	}
	for _, name := range []string{"Upgrade", "X-Secret", "X-Forwarded-Host", "Proxy-Authorization", "X-Forwarded-For"} {
		if v := r.Header.Get(name); v != "" {
			t.Errorf("%s: %s was passed on", name, v)
		}
	}
}

// The program follows redirects itself, and each new request is checked.
func TestRedirect(t *testing.T) {
	w := newWorld(t, allowedName+":443")
	for _, to := range []string{"http://evil.com/", "https://127.0.0.1/", "http://" + allowedName + "/", "https://" + allowedName + ":8443/"} {
		resp, err := w.client().Get("https://" + allowedName + "/?to=" + url.QueryEscape(to))
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("redirected to %s: status %d, want 403", to, resp.StatusCode)
			}
		}
	}
	w.close()
	if len(w.heard) != 4 {
		t.Errorf("hosts were asked %d times, want 4: the first request of each", len(w.heard))
	}
}

// Each lookup of a name is checked again, and the connection goes to the checked address.
func TestRebinding(t *testing.T) {
	w := newWorld(t, allowedName+":443")
	w.names[allowedName] = [][]string{{"10.0.0.7", "192.0.2.1"}, {"127.0.0.1"}, {"192.0.2.9"}}
	var statuses []bool
	for range 3 {
		resp, err := w.client().Get("https://" + allowedName + "/")
		statuses = append(statuses, err == nil)
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	if want := []bool{true, false, true}; !slices.Equal(statuses, want) {
		t.Errorf("reached %v, want %v", statuses, want)
	}
	if want := []string{"192.0.2.1:443", "192.0.2.9:443"}; !slices.Equal(w.dialed, want) {
		t.Errorf("dialed %q, want %q", w.dialed, want)
	}
}

// Connections end with the run, even idle ones.
func TestClose(t *testing.T) {
	w := newWorld(t, allowedName+":443")
	tunnel, err := net.Dial("tcp", w.at)
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.Close()
	_ = tunnel.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprintf(tunnel, "CONNECT %s:443 HTTP/1.1\r\nHost: x\r\n\r\n", allowedName)
	if line, _ := bufio.NewReader(tunnel).ReadString('\n'); !strings.Contains(line, "200") {
		t.Fatalf("answered %q", line)
	}
	idle, err := net.Dial("tcp", w.at)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	_ = idle.SetDeadline(time.Now().Add(30 * time.Second))
	w.close()
	for _, c := range []net.Conn{tunnel, idle} {
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("a connection is still open after Close: %v", err)
		}
	}
}

// The record stays small, whatever a program requests.
func TestManyContacts(t *testing.T) {
	w := newWorld(t, allowedName+":443")
	conn, err := net.Dial("tcp", w.at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	const tries = 3 * maxContacts
	for i := range tries {
		fmt.Fprintf(conn, "CONNECT x%d.%s.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", i, strings.Repeat("a", 1000))
		resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodGet})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	contacts := w.close()
	if len(contacts) != maxContacts {
		t.Fatalf("%d contacts, want %d", len(contacts), maxContacts)
	}
	times := 0
	for _, c := range contacts {
		times += c.Times
		if len(c.Host) > maxTarget {
			t.Errorf("a host of %d bytes is kept", len(c.Host))
		}
	}
	if last := contacts[maxContacts-1]; times != tries || last.Host != sandbox.OtherHosts || last.Refused == "" {
		t.Errorf("%d tries are counted, the last as %+v; want %d, and %q refused", times, last, tries, sandbox.OtherHosts)
	}
}

// Neither many refusals nor many addresses of one host can keep what a program reached
// out of the record.
func TestReachedAfterManyOthers(t *testing.T) {
	w := newWorld(t, allowedName+":80", "many.example.com:80")
	for i := range 2 * maxContacts {
		w.mu.Lock()
		w.names["many.example.com"] = [][]string{{fmt.Sprintf("192.0.2.%d", i+2)}}
		w.mu.Unlock()
		resp, err := w.client().Get("http://many.example.com/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	for i := range 2 * maxContacts {
		w.raw(fmt.Sprintf("CONNECT x%d.example:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", i))
	}
	resp, err := w.client().Get("http://" + allowedName + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	contacts := w.close()
	if !slices.ContainsFunc(contacts, func(c sandbox.Contact) bool {
		return c.Host == allowedName+":80" && c.Refused == "" && c.Sent > 0
	}) {
		t.Errorf("contacts %+v, want one with %s", contacts, allowedName)
	}
	if most := 2*maxContacts + 2; len(contacts) > most {
		t.Errorf("%d contacts, want %d at most", len(contacts), most)
	}
}

// Requests and responses pass unchanged, and a response may use no more of the server's
// memory than a request.
func TestPassedOn(t *testing.T) {
	w := newWorld(t, allowedName+":80")
	for query, want := range map[string]int{"a=1;b=2&c=%zz": http.StatusOK, "long": http.StatusBadGateway} {
		resp, err := w.client().Get("http://" + allowedName + "/?" + query)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("?%s: status %d, want %d", query, resp.StatusCode, want)
		}
	}
	w.close()
	if !slices.ContainsFunc(w.heard, func(r *http.Request) bool { return r.URL.RawQuery == "a=1;b=2&c=%zz" }) {
		t.Errorf("the host was asked %v", w.heard)
	}
}

// An address on the internet is refused if it belongs to this machine or its network.
func TestOutside(t *testing.T) {
	var here []net.Addr
	for _, cidr := range []string{"192.0.2.7/24", "198.51.100.1/32", "2001:db8:1::7/64"} {
		ip, n, err := net.ParseCIDR(cidr)
		if err != nil {
			t.Fatal(err)
		}
		here = append(here, &net.IPNet{IP: ip, Mask: n.Mask})
	}
	for in, want := range map[string]bool{
		"192.0.2.7": false, "192.0.2.200": false, "::ffff:192.0.2.7": false, "64:ff9b::192.0.2.7": false, "198.51.100.1": false, "2001:db8:1::1": false,
		"192.0.3.7": true, "198.51.100.2": true, "2001:db8:2::1": true,
	} {
		if got := outside(netip.MustParseAddr(in), here); got != want {
			t.Errorf("outside(%s) = %v, want %v", in, got, want)
		}
	}
}

// clientHello returns the first message of a TLS client.
func clientHello(t *testing.T, config *tls.Config) string {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() { _ = tls.Client(ours, config).Handshake() }()
	defer ours.Close()
	_ = theirs.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 16<<10)
	n, err := theirs.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}
