package approvals

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

func TestAnnouncement(t *testing.T) {
	started := time.Unix(1_000, 0).UTC()
	d, _ := testDesk(t, func(o *Options) {
		o.Project, o.Now = "/home/ada/site", func() time.Time { return started }
	})
	names, err := os.ReadDir(d.folder.Path())
	if err != nil || len(names) != 1 {
		t.Fatalf("the run folder has %v, %v, want one file", names, err)
	}
	name := names[0].Name()
	if !strings.HasPrefix(name, fmt.Sprintf("%d-", os.Getpid())) || filepath.Ext(name) != ".json" {
		t.Errorf("the announcement is %q, want PID-RANDOM.json", name)
	}
	if info, err := names[0].Info(); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the announcement has the mode %v, %v, want 0600", info.Mode(), err)
	}
	text, err := os.ReadFile(filepath.Join(d.folder.Path(), name))
	if err != nil {
		t.Fatal(err)
	}
	var got control.Announcement
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := control.Announcement{
		Version: control.Version, PID: os.Getpid(), Server: "server-1", Address: d.Address(), Key: d.key, Started: started, Project: "/home/ada/site",
	}
	if got != want || len(got.Key) < 43 {
		t.Errorf("the announcement is %+v, want %+v", got, want)
	}
	entryFile(t, d)
	if err := d.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("Close() again = %v", err)
	}
	if names, err := os.ReadDir(d.folder.Path()); err != nil || len(names) != 0 {
		t.Errorf("after Close the run folder has %v, %v", names, err)
	}
	if c, err := net.Dial("tcp", d.Address()); err == nil {
		c.Close()
		t.Error("after Close the port is open")
	}
	if err := d.OpenPage(); err == nil {
		t.Error("OpenPage() after Close = nil, want an error")
	}
}

func TestListen(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		d, err := Open(Options{Calls: &calls{}, RunDir: t.TempDir(), Listen: address})
		if err == nil {
			d.Close()
			t.Errorf("Open on %s = nil, want an error", address)
		}
	}
	if _, err := Open(Options{RunDir: t.TempDir()}); err == nil {
		t.Error("Open without a queue = nil, want an error")
	}
}

func TestTheFileThatOpensThePage(t *testing.T) {
	var files []string
	var fails error
	d, _ := testDesk(t, func(o *Options) {
		o.OpenBrowser = func(file string) error { files = append(files, file); return fails }
	})
	if err := d.OpenPage(); err != nil || len(files) != 1 {
		t.Fatalf("OpenPage() = %v, and opened %d files, want 1", err, len(files))
	}
	if info, err := os.Lstat(files[0]); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v, want mode 0600", info, err)
	}
	for _, s := range []string{d.key, d.cookie, d.pageKey} {
		if strings.Contains(files[0], s) {
			t.Errorf("the path %q has a secret", files[0])
		}
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{d.key, d.cookie, d.pageKey} {
		if strings.Contains(string(text), s) {
			t.Errorf("the file has a secret that lasts:\n%s", text)
		}
	}
	if err := d.OpenPage(); err != nil || len(files) != 2 {
		t.Errorf("OpenPage() = %v, and opened %d files, want 2", err, len(files))
	}
	fails = errors.New("no browser here")
	if err := d.OpenPage(); !errors.Is(err, fails) {
		t.Errorf("OpenPage() = %v, want %v", err, fails)
	}
	if _, err := os.Lstat(files[2]); !os.IsNotExist(err) {
		t.Errorf("the file that no browser opened is still there: %v", err)
	}
	none, _ := testDesk(t, nil)
	if err := none.OpenPage(); err == nil {
		t.Error("OpenPage() without a browser = nil, want an error")
	}
}

// A reader reads a stream of events.
type reader struct {
	conn net.Conn
	body *bufio.Reader
}

func listen(t *testing.T, d *Desk, r request) (*reader, *http.Response) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+d.Address()+strings.TrimPrefix(r.line, "GET "), nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range r.headers {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	conn, err := net.Dial("tcp", d.Address())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close() // first: closing the body reads what is left of it
		res.Body.Close()
	})
	return &reader{conn, bufio.NewReader(res.Body)}, res
}

// next returns the next event and its data.
func (r *reader) next() (event, data string, err error) {
	// Each event has its own deadline: on a busy machine a test can take long
	// between two events.
	_ = r.conn.SetDeadline(time.Now().Add(patience))
	for {
		line, err := r.body.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		line = strings.TrimSuffix(line, "\n")
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			event = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			data = v
		}
		if line == "" && event != "" {
			return event, data, nil
		}
	}
}

func TestStreams(t *testing.T) {
	d, q := testDesk(t, nil)
	page, res := listen(t, d, asPage(d, "GET /events", ""))
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type = %q", got)
	}
	checkHeaders(t, res)
	for _, want := range []string{"hello", "rooms", "ended", "pending", "changes", "history"} {
		if event, data, err := page.next(); event != want || err != nil {
			t.Fatalf("next() = %s %s, %v, want %s", event, data, err, want)
		}
	}
	terminal, _ := listen(t, d, asTerminal(d, "GET /control/events", ""))
	if event, data, err := terminal.next(); event != "pending" || !strings.Contains(data, "K7QM-2F9X") || err != nil {
		t.Errorf("next() = %s %s, %v", event, data, err)
	}
	q.set()
	for _, r := range []*reader{page, terminal} {
		if event, data, err := r.next(); event != "pending" || data != `{"pending":[]}` || err != nil {
			t.Errorf("next() = %s %s, %v", event, data, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	for _, r := range []*reader{page, terminal} {
		if event, _, err := r.next(); err == nil {
			t.Errorf("next() after Close = %s, want the end", event)
		}
	}
}

// Everybody hears of a call that expires, though the queue says nothing, and the
// page hears why it went.
func TestExpiryIsSent(t *testing.T) {
	d, q := testDesk(t, nil)
	p := testCall
	p.Expires = time.Now().Add(50 * time.Millisecond)
	q.expire(p, "nobody answered until 14:03:27\u202e")
	page, _ := listen(t, d, asPage(d, "GET /events", ""))
	terminal, _ := listen(t, d, asTerminal(d, "GET /control/events", ""))
	for {
		event, data, err := page.next()
		if err != nil {
			t.Fatal(err)
		}
		if event == "ended" && data != "[]" {
			if want := `[{"code":"K7QM-2F9X","problem":"expired","detail":"nobody answered until 14:03:27\\u202e"}]`; data != want {
				t.Errorf("ended = %s, want %s", data, want)
			}
			break
		}
	}
	for _, r := range []*reader{page, terminal} {
		for {
			event, data, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if event == "pending" && data == `{"pending":[]}` {
				break
			}
		}
	}
}

// An open page shows changes of a pack without a reload.
func TestRoomsAreFollowed(t *testing.T) {
	r := &rooms{next: make(chan struct{})}
	d, _ := testDesk(t, func(o *Options) { o.Chats = r })
	page, _ := listen(t, d, asPage(d, "GET /events", ""))
	for _, want := range []string{"hello", "rooms", "ended", "pending", "changes", "history"} {
		if event, data, err := page.next(); event != want || err != nil {
			t.Fatalf("next() = %s %s, %v, want %s", event, data, err, want)
		}
	}
	for _, problems := range [][]string{{"SKILL.md:1: no description"}, nil} {
		r.change(Chat{ID: "chat-1", Packs: []Pack{{ID: "triage", Attached: true, Problems: problems}}})
		event, data, err := page.next()
		if event != "rooms" || err != nil || strings.Contains(data, "no description") != (problems != nil) || !strings.Contains(data, "triage") {
			t.Errorf("next() = %s %s, %v, want the pack with the problems %q", event, data, err, problems)
		}
	}
}

// Newer pages replace older ones, since browsers allow few connections to one
// address.
func TestTooManyPages(t *testing.T) {
	d, _ := testDesk(t, nil)
	var all []*reader
	for range maxPages + 1 {
		r, _ := listen(t, d, asPage(d, "GET /events", ""))
		for {
			if event, _, err := r.next(); err != nil {
				t.Fatal(err)
			} else if event == "history" {
				break
			}
		}
		all = append(all, r)
	}
	if event, _, err := all[0].next(); event != "superseded" || err != nil {
		t.Errorf("the oldest page got %s, %v, want superseded", event, err)
	}
	if _, _, err := all[0].next(); !errors.Is(err, io.EOF) {
		t.Errorf("then it got %v, want the end", err)
	}
}

func TestTooManyStreams(t *testing.T) {
	d, _ := testDesk(t, nil)
	var last *reader
	for range maxStreams {
		last, _ = listen(t, d, asTerminal(d, "GET /control/events", ""))
		if _, _, err := last.next(); err != nil {
			t.Fatal(err)
		}
	}
	if res, body := asTerminal(d, "GET /control/events", "").send(t, d); res.StatusCode != 503 || !strings.Contains(body, "too many") {
		t.Errorf("one stream more = %d %s, want 503", res.StatusCode, body)
	}
	if res, _ := asTerminal(d, "GET /control/pending", "").send(t, d); res.StatusCode != 200 {
		t.Errorf("GET /control/pending beside the streams = %d, want 200", res.StatusCode)
	}
}

// A stream that nobody reads is dropped.
func TestStall(t *testing.T) {
	d, q := testDesk(t, func(o *Options) { o.stall = 50 * time.Millisecond })
	big := testCall
	big.Card.Command = strings.Repeat("x", 16<<20) // more than the sockets hold
	q.set(big)
	conn, err := net.Dial("tcp", d.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /control/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", d.Address(), d.key)
	until(t, func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.streams == 1 }, "the stream begins")
	until(t, func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.streams == 0 }, "the stream is dropped")
}

// until polls for a condition that is not announced.
func until(t *testing.T, ok func() bool, what string) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("timed out waiting until %s", what)
		case <-tick.C:
		}
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	few := &strangerListener{Listener: l, most: 3, each: 2, mostKeys: 2}
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := few.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func(from string) (there, here net.Conn) {
		t.Helper()
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", l.Addr().String())
		if err != nil {
			t.Skipf("from %s: %v; not all systems have all of 127.0.0.0/8", from, err)
		}
		t.Cleanup(func() { c.Close() })
		return c, <-accepted
	}
	ended := func(c net.Conn, within time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(within))
		_, err := c.Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	check := func(when string, open, closed []net.Conn) {
		t.Helper()
		for i, c := range open {
			if ended(c, 50*time.Millisecond) {
				t.Errorf("%s: connection %d has ended", when, i)
			}
		}
		for i, c := range closed {
			if !ended(c, patience) {
				t.Errorf("%s: connection %d is still there", when, i)
			}
		}
	}
	known := func(c net.Conn) {
		keepConn(httptest.NewRequestWithContext(withConn(t.Context(), c), "GET", "/", nil))
	}
	page, here := dial("127.0.0.1")
	known(here)
	a1, _ := dial("127.0.0.1")
	a2, _ := dial("127.0.0.1")
	b1, _ := dial("127.0.0.2")
	check("room for all", []net.Conn{page, a1, a2, b1}, nil)
	b2, _ := dial("127.0.0.2")
	check("too many in all", []net.Conn{page, a2, b1, b2}, []net.Conn{a1})
	b3, _ := dial("127.0.0.2")
	check("too many from one address", []net.Conn{page, a2, b2, b3}, []net.Conn{b1})
	var last []net.Conn
	for i := range 20 {
		c, _ := dial(fmt.Sprintf("127.0.1.%d", i+1))
		last = append(last, c)
	}
	check("many addresses", append([]net.Conn{page}, last[17:]...), append([]net.Conn{a2, b2, b3}, last[:17]...))
	second, here2 := dial("127.0.0.1")
	known(here2)
	third, here3 := dial("127.0.0.1")
	known(here3) // over the limit: stays a stranger
	few.mu.Lock()
	if few.keys != 2 || len(few.strangers) != 3 {
		t.Errorf("%d connections with a key and %d without, want 2 and 3", few.keys, len(few.strangers))
	}
	few.mu.Unlock()
	here.Close()
	here.Close() // gives its place back once
	known(here3)
	for i := range 4 {
		dial(fmt.Sprintf("127.0.2.%d", i+1))
	}
	check("with a key", []net.Conn{second, third}, []net.Conn{page})
	if err := few.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	for range accepted {
		t.Error("a connection was taken after Close")
	}
}

// patience is how long a test waits for what must happen. Only a test that fails
// waits so long.
const patience = 30 * time.Second

// slowly has a desk wait for slow clients for longer than a test waits: what waits
// for them fails.
func slowly(o *Options) { o.slow = 10 * patience }

// Whatever clients without a key send, and from whatever address, they lock out
// no client with a key: not the open page, not a new request, not a person who
// signs in.
func TestStrangersKeepNobodyOut(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for name, attack := range map[string]func(d *Desk, i int, c net.Conn){
		"nothing":      func(*Desk, int, net.Conn) {},
		"half a line":  func(_ *Desk, _ int, c net.Conn) { fmt.Fprint(c, "GET / HT") },
		"half-closed":  func(_ *Desk, _ int, c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
		"slow headers": func(_ *Desk, _ int, c net.Conn) { fmt.Fprint(c, "GET / HTTP/1.1\r\nX: 1\r\n") },
		"slow entry": func(d *Desk, _ int, c net.Conn) {
			fmt.Fprintf(c, "POST /enter HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken=", d.Address())
		},
		"slow entry at a place": func(d *Desk, _ int, c net.Conn) {
			fmt.Fprintf(c, "POST /enter?%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken=", secret(), d.Address())
		},
		"slow decision": func(d *Desk, _ int, c net.Conn) {
			fmt.Fprintf(c, "POST /decide HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", d.Address())
		},
		"slow control": func(d *Desk, _ int, c net.Conn) {
			fmt.Fprintf(c, "POST /control/decide HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{", d.Address())
		},
		"chunks": func(d *Desk, _ int, c net.Conn) {
			fmt.Fprintf(c, "POST /decide HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n1\r\nx\r\n", d.Address())
		},
		"the cookie, and a slow body": func(d *Desk, _ int, c net.Conn) {
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nCookie: %s=%s\r\nContent-Length: 100\r\n\r\n", d.Address(), d.cookieName(), d.cookie)
		},
		"OPTIONS *": func(d *Desk, _ int, c net.Conn) {
			fmt.Fprintf(c, "OPTIONS * HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n", d.Address())
		},
		"HTTP/2": func(_ *Desk, _ int, c net.Conn) {
			fmt.Fprint(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		},
		"huge headers": func(_ *Desk, _ int, c net.Conn) {
			go fmt.Fprint(c, "GET / HTTP/1.1\r\nX: ", huge)
		},
		"pipelined": func(d *Desk, _ int, c net.Conn) {
			go fmt.Fprint(c, strings.Repeat("GET / HTTP/1.1\r\nHost: "+d.Address()+"\r\n\r\n", 2000))
		},
		"workers": func(d *Desk, _ int, c net.Conn) {
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nService-Worker: script\r\n\r\n", d.Address())
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, q := testDesk(t, slowly)
			page, _ := listen(t, d, asPage(d, "GET /events", ""))
			found, err := terminal.Find(t.Context(), d.folder.Path())
			if err != nil || len(found.Servers) != 1 {
				t.Fatalf("Find() = %+v, %v", found, err)
			}
			_, token := entryFile(t, d)
			for i := range 600 {
				dialer := net.Dialer{}
				if i%2 == 1 {
					dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 9, byte(i>>8), byte(i))}
				}
				c, err := dialer.Dial("tcp", d.Address())
				if err != nil && dialer.LocalAddr != nil {
					c, err = net.Dial("tcp", d.Address()) // no such address on this system
				}
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				attack(d, i, c)
			}
			if calls, err := found.Servers[0].Pending(t.Context()); err != nil || len(calls) != 1 {
				t.Errorf("Pending() = %v, %v", calls, err)
			}
			if res, body := enterWith(token).send(t, d); res.StatusCode != 200 {
				t.Errorf("POST /enter = %d %s, want 200", res.StatusCode, body)
			}
			if res, body := asPage(d, "GET /", "").with("X-Packs-Key", "").send(t, d); res.StatusCode != 200 {
				t.Errorf("GET / = %d %s, want 200", res.StatusCode, body)
			}
			if res, body := asPage(d, "POST /decide", decideOnce).send(t, d); res.StatusCode != 200 || len(q.verdicts()) != 1 {
				t.Errorf("POST /decide = %d %s, want 200", res.StatusCode, body)
			}
			if event, _, err := page.next(); event != "hello" || err != nil {
				t.Errorf("the open page got %s, %v", event, err)
			}
			q.set()
			for {
				event, data, err := page.next()
				if err != nil {
					t.Fatalf("the open page: %v", err)
				}
				if event == "pending" && strings.Contains(data, `"pending":[]`) {
					break
				}
			}
		})
	}
}

// A stranger's request is not read beyond its headers: the response comes at
// once, and ends the connection.
func TestStrangersBodiesAreNotRead(t *testing.T) {
	d, _ := testDesk(t, slowly)
	_, token := entryFile(t, d)
	for _, r := range []request{
		asPage(d, "POST /decide", "").with("X-Packs-Key", ""), asPage(d, "POST /decide", "").with("Cookie", ""),
		asPage(d, "POST /nothing", "").with("Cookie", ""), asPage(d, "GET /", "").with("X-Packs-Key", ""),
		asTerminal(d, "POST /control/decide", "").with("Authorization", ""), asTerminal(d, "POST /control/open", "").with("Cookie", "a=b"),
		enterWith(token).as("POST /enter"), enterWith(token).with("Origin", "https://evil.example"), enterWith(token).with("Content-Type", "text/plain"),
		enterWith(token).with("Host", "evil.example"), {line: "OPTIONS *"},
	} {
		r.body = ""
		for _, length := range []string{"Content-Length", "Transfer-Encoding"} {
			value := map[string]string{"Content-Length": "1000", "Transfer-Encoding": "chunked"}[length]
			res, body := r.with(length, value, "Connection", "").send(t, d) // sends no body
			if res.StatusCode < 400 || !res.Close {
				t.Errorf("%s with %s = %d %s, close %v; want a refusal and the end of the connection", r.line, length, res.StatusCode, body, res.Close)
			}
		}
	}
	if res, body := enterWith(token).send(t, d); res.StatusCode != 200 {
		t.Errorf("POST /enter afterwards = %d %s, want 200", res.StatusCode, body)
	}
}

// Each file that opens the page has its own place: a slow request through one
// does not block another, and its place is free again after the deadline.
func TestEachEntryHasItsPlace(t *testing.T) {
	d, _ := testDesk(t, nil)
	_, first := entryFile(t, d)
	_, second := entryFile(t, d)
	c, err := net.Dial("tcp", d.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /enter?%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken=", first.place, d.Address())
	for {
		d.entries.mu.Lock()
		reading := slices.ContainsFunc(slices.Collect(maps.Values(d.entries.all)), func(e entry) bool { return e.reading.Load() })
		d.entries.mu.Unlock()
		if reading {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if res, _ := enterWith(first).send(t, d); res.StatusCode != 403 {
		t.Errorf("POST /enter at a place that is taken = %d, want 403", res.StatusCode)
	}
	if res, _ := enterWith(second).send(t, d); res.StatusCode != 200 {
		t.Errorf("POST /enter at another place = %d, want 200", res.StatusCode)
	}
	if _, err := io.ReadAll(c); err != nil { // until the deadline
		t.Fatal(err)
	}
	if res, _ := enterWith(first).send(t, d); res.StatusCode != 200 {
		t.Errorf("POST /enter after the slow one = %d, want 200", res.StatusCode)
	}
}

// By default the desk uses an address that no browser has visited, where the
// system has such addresses.
func TestAddress(t *testing.T) {
	whole := true // the system has the whole block
	if l, err := net.Listen("tcp", "127.1.2.3:0"); err == nil {
		l.Close()
	} else {
		whole = false
	}
	seen := map[string]bool{}
	for range 3 {
		d, _ := testDesk(t, nil)
		host, _, err := net.SplitHostPort(d.Address())
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() || (host != "127.0.0.1") != whole || seen[host] && whole {
			t.Errorf("the desk listens on %q, %v; the system has the whole block: %v", d.Address(), err, whole)
		}
		seen[host] = true
		found, err := terminal.Find(t.Context(), d.folder.Path())
		if err != nil || len(found.Servers) != 1 {
			t.Errorf("Find() = %+v, %v; want one server", found, err)
		}
	}
	for range 1000 {
		host, port, err := net.SplitHostPort(strangeAddress())
		ip := net.ParseIP(host).To4()
		if err != nil || port != "0" || ip == nil || ip[0] != 127 || ip[1] == 0 || ip[3] == 0 || ip[3] == 255 {
			t.Fatalf("strangeAddress() = %s:%s, %v", host, port, err)
		}
	}
}

// However much happens, a reader gets at most ten updates a second.
func TestBurst(t *testing.T) {
	d, q := testDesk(t, nil)
	r, _ := listen(t, d, asTerminal(d, "GET /control/events", ""))
	if _, _, err := r.next(); err != nil {
		t.Fatal(err)
	}
	begin, before := time.Now(), q.looked()
	last := testCall
	for i := range 1000 {
		last.Code = fmt.Sprintf("CODE-%04d", i)
		q.set(last)
	}
	for {
		_, data, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(data, last.Code) {
			break
		}
	}
	if n, most := q.looked()-before, 3+int(time.Since(begin)/restTime); n > most {
		t.Errorf("1,000 changes led to %d looks, want at most %d", n, most)
	}
}

func TestHistoryIsSent(t *testing.T) {
	d, q := testDesk(t, nil)
	q.history = []queue.Past{{Time: time.Unix(1, 0), Chat: "chat-1", Title: "Run tool greet of pack triage?", Decision: "once", Channel: queue.ChannelPage, Outcome: "exit code 0"}}
	page, _ := listen(t, d, asPage(d, "GET /events", ""))
	for {
		event, data, err := page.next()
		if err != nil {
			t.Fatal(err)
		}
		if event == "history" {
			if !strings.Contains(data, `"outcome":"exit code 0"`) {
				t.Errorf("history = %s", data)
			}
			return
		}
	}
}

func TestLimitsOfRequests(t *testing.T) {
	d, _ := testDesk(t, nil)
	if s := d.http; s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 {
		t.Errorf("a slow client can hold a connection for ever: %v %v %v %v", s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout)
	}
	r := asPage(d, "GET /", "").with("X-Long", strings.Repeat("x", 2*maxHeader))
	if res, _ := r.send(t, d); res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("GET / with a header of %d bytes = %d, want 431", 2*maxHeader, res.StatusCode)
	}
	d.mu.Lock()
	d.busy += maxRequests
	d.mu.Unlock()
	res, body := asTerminal(d, "GET /control/pending", "").send(t, d)
	if res.StatusCode != 503 || !strings.Contains(body, "too many requests") {
		t.Errorf("one request too many = %d %s, want 503", res.StatusCode, body)
	}
	d.mu.Lock()
	d.busy -= maxRequests
	d.mu.Unlock()
	if res, _ := asTerminal(d, "GET /control/pending", "").send(t, d); res.StatusCode != 200 {
		t.Errorf("GET /control/pending beside them = %d, want 200", res.StatusCode)
	}
}
