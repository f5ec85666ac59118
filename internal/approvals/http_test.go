package approvals

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/page"
	"github.com/packs-mcp/packs-mcp/internal/approvals/runfolder"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A request is written byte by byte, so that it has only what a browser or an
// attacker would send.
type request struct {
	line    string            // "POST /decide"
	headers map[string]string // "" removes one
	body    string
}

// with returns r with other headers.
func (r request) with(kv ...string) request {
	headers := map[string]string{}
	maps.Copy(headers, r.headers)
	for i := 0; i < len(kv); i += 2 {
		headers[kv[i]] = kv[i+1]
	}
	r.headers = headers
	return r
}

func (r request) as(line string) request { r.line = line; return r }

// send makes the request and returns the response with its body.
func (r request) send(t *testing.T, d *Desk) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", d.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	var b strings.Builder
	fmt.Fprintf(&b, "%s HTTP/1.1\r\n", r.line)
	headers := r.with().headers
	if _, ok := headers["Connection"]; !ok {
		headers["Connection"] = "close"
	}
	if _, ok := headers["Host"]; !ok {
		headers["Host"] = d.Address()
	}
	for k, v := range headers {
		for one := range strings.SplitSeq(v, "\n") { // several with one name
			if one != "" {
				fmt.Fprintf(&b, "%s: %s\r\n", k, one)
			}
		}
	}
	if r.body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	if _, err := io.WriteString(conn, b.String()+"\r\n"+r.body); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(r.line, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", r.line, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", r.line, err)
	}
	return res, string(body)
}

// asPage is a request as a browser makes it for the page.
func asPage(d *Desk, line, body string) request {
	r := request{line: line, body: body, headers: map[string]string{
		"Cookie": d.cookieName() + "=" + d.cookie, "X-Packs-Key": d.pageKey, "Sec-Fetch-Site": "same-origin",
	}}
	if strings.HasPrefix(line, "POST ") {
		r = r.with("Origin", d.origin, "Content-Type", "application/json")
	}
	return r
}

// asTerminal is what packs-mcp approvals sends.
func asTerminal(d *Desk, line, body string) request {
	r := request{line: line, body: body, headers: map[string]string{"Authorization": "Bearer " + d.key}}
	if body != "" {
		r = r.with("Content-Type", "application/json")
	}
	return r
}

const decideOnce = `{"code":"K7QM-2F9X","decision":"once"}`

func TestOtherSitesCannotUseThePage(t *testing.T) {
	d, q := testDesk(t, nil)
	other, _ := testDesk(t, nil)
	decide := asPage(d, "POST /decide", decideOnce)
	index := asPage(d, "GET /", "").with("X-Packs-Key", "", "Sec-Fetch-Site", "none")
	control := asTerminal(d, "POST /control/decide", decideOnce)
	wrong := secret()
	for _, tc := range []struct {
		name string
		request
	}{
		{"Host: another name (DNS rebinding)", decide.with("Host", "evil.example")},
		{"Host: another name with the port", decide.with("Host", "evil.example:"+strings.Split(d.address, ":")[1])},
		{"Host: localhost", decide.with("Host", "localhost:"+strings.Split(d.address, ":")[1])},
		{"Host: without the port", decide.with("Host", "127.0.0.1")},
		{"Host: rebinding the first page", index.with("Host", "evil.example")},
		{"Host: in the request line", decide.as("POST http://evil.example/decide")},
		{"Origin: another", decide.with("Origin", "https://evil.example")},
		{"Origin: another port", decide.with("Origin", other.origin)},
		{"Origin: null", decide.with("Origin", "null")},
		{"Origin: none", decide.with("Origin", "")},
		{"Origin: two", decide.with("Origin", d.origin+"\nhttps://evil.example")},
		{"Origin: another, of a GET", index.with("Origin", "https://evil.example")},
		{"Sec-Fetch-Site: cross-site", decide.with("Sec-Fetch-Site", "cross-site")},
		{"Sec-Fetch-Site: another port", decide.with("Sec-Fetch-Site", "same-site")},
		{"Sec-Fetch-Site: typed, of a POST", decide.with("Sec-Fetch-Site", "none")},
		{"Sec-Fetch-Site: a link to the page", index.with("Sec-Fetch-Site", "cross-site")},
		{"Sec-Fetch-Site: a link from another port", index.with("Sec-Fetch-Site", "same-site")},
		{"Sec-Fetch-Site: two", index.with("Sec-Fetch-Site", "same-origin\ncross-site")},
		{"Cookie: none", decide.with("Cookie", "")},
		{"Cookie: wrong", decide.with("Cookie", d.cookieName()+"="+wrong)},
		{"Cookie: stale, of another server", decide.with("Cookie", other.cookieName()+"="+other.cookie)},
		{"Cookie: of another server under our name", decide.with("Cookie", d.cookieName()+"="+other.cookie)},
		{"Cookie: empty", decide.with("Cookie", d.cookieName()+"=")},
		{"Cookie: none, of the first page", index.with("Cookie", "")},
		{"Cookie: none, of a script", asPage(d, "GET /page.js", "").with("Cookie", "")},
		{"Key: none", decide.with("X-Packs-Key", "")},
		{"Key: the cookie", decide.with("X-Packs-Key", d.cookie)},
		{"Key: wrong", decide.with("X-Packs-Key", wrong)},
		{"Key: two", decide.with("X-Packs-Key", d.pageKey+"\n"+wrong)},
		{"Key: none, of the stream", asPage(d, "GET /events", "").with("X-Packs-Key", "")},
		{"Key: none, of attach", asPage(d, "POST /attach", `{"chat":"c","pack":"p","on":true}`).with("X-Packs-Key", "")},
		{"Key: none, of a file", asPage(d, "POST /artifact", `{"chat":"c","key":"YQ"}`).with("X-Packs-Key", "")},
		{"Key: the stream as a page", asPage(d, "GET /events", "").with("Sec-Fetch-Site", "none")},
		{"Method: GET of a decision", decide.as("GET /decide")},
		{"Method: PUT", decide.as("PUT /decide")},
		{"Method: OPTIONS", decide.as("OPTIONS /decide")},
		{"Method: HEAD", index.as("HEAD /")},
		{"Method: POST of the page", decide.as("POST /")},
		{"Method: POST of the stream", decide.as("POST /events")},
		{"Method: GET of the entry", index.as("GET /enter")},
		{"Path: unknown", index.as("GET /page/index.html")},
		{"Path: climbing", index.as("GET /../page.js")},
		{"Path: twice the slash", index.as("GET //")},
		{"Path: the entry's template", index.as("GET /enter.html")},
		{"Path: a file without a ticket", index.as("GET /artifact/x")},
		{"Entry: no token", request{line: "POST /enter", headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}},
		{"Entry: a wrong token", request{line: "POST /enter", headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, body: "token=" + wrong}},

		{"control: no key", control.with("Authorization", "")},
		{"control: wrong key", control.with("Authorization", "Bearer "+wrong)},
		{"control: empty key", control.with("Authorization", "Bearer ")},
		{"control: the page's key", control.with("Authorization", "Bearer "+d.pageKey)},
		{"control: basic", control.with("Authorization", "Basic "+d.key)},
		{"control: two keys", control.with("Authorization", "Bearer "+d.key+"\nBearer "+d.key)},
		{"control: rebinding", control.with("Host", "evil.example")},
		{"control: from a page", control.with("Origin", d.origin)},
		{"control: from a file", control.with("Origin", "null")},
		{"control: from a browser", control.with("Sec-Fetch-Site", "none")},
		{"control: with a cookie", control.with("Cookie", "a=b")},
		{"control: with the page's secrets only", decide.as("POST /control/decide")},
		{"control: unknown path without a key", control.as("GET /control/x").with("Authorization", "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, body := tc.send(t, d)
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("%s = %d %s, want 403", tc.line, res.StatusCode, body)
			}
			if res.Header.Get("Set-Cookie") != "" || strings.Contains(body, d.pageKey) || strings.Contains(body, d.key) {
				t.Errorf("%s gives a secret away: %v %s", tc.line, res.Header, body)
			}
			checkHeaders(t, res)
		})
	}
	if got := q.verdicts(); len(got) > 0 {
		t.Errorf("refused requests decided: %+v", got)
	}
}

func checkHeaders(t *testing.T, res *http.Response) {
	t.Helper()
	policy := "default-src 'none'; script-src 'self'; worker-src 'none'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	if res.StatusCode == http.StatusForbidden && strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") { // a page that loads nothing
		policy = "default-src 'none'; style-src " + page.Inline(page.Style()) + "; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": policy,
		"X-Frame-Options":         "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	d, _ := testDesk(t, nil)
	_, body := request{line: "GET /"}.send(t, d)
	for _, want := range []string{"This page is not signed in", "packs-mcp approvals open", "<style>" + page.Style() + "</style>"} {
		if !strings.Contains(body, want) {
			t.Errorf("GET / without a cookie = %s, want %q in it", body, want)
		}
	}
	_, body = request{line: "POST /decide"}.send(t, d)
	if !strings.Contains(body, "This page is not signed in. Run: packs-mcp approvals open") {
		t.Errorf("POST /decide without a cookie = %s", body)
	}
}

func TestDeskDecides(t *testing.T) {
	d, q := testDesk(t, nil)
	for _, tc := range []struct {
		name, decision string
		want           queue.Verdict
	}{
		{"once", "once", queue.Verdict{Decision: queue.Once}},
		{"chat", "chat", queue.Verdict{Decision: queue.Chat}},
		{"always", "always", queue.Verdict{Decision: queue.Always}},
		{"deny", "deny", queue.Verdict{Decision: queue.Deny}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q.mu.Lock()
			q.got = nil
			q.mu.Unlock()
			body := fmt.Sprintf(`{"code":"K7QM-2F9X","decision":%q,"values":{"city":"Rome"}}`, tc.decision)
			for _, r := range []request{asPage(d, "POST /decide", body), asTerminal(d, "POST /control/decide", body)} {
				res, answer := r.send(t, d)
				var got control.Decided
				if err := json.Unmarshal([]byte(answer), &got); err != nil || res.StatusCode != 200 {
					t.Fatalf("%s = %d %s", r.line, res.StatusCode, answer)
				}
				if got.Title != testCall.Title || got.Held || !got.Expires.Equal(testCall.Expires) {
					t.Errorf("%s = %+v", r.line, got)
				}
			}
			page, terminal := tc.want, tc.want
			page.Channel, terminal.Channel = queue.ChannelPage, queue.ChannelTerminal
			page.Values = map[string]string{"city": "Rome"}
			terminal.Values = page.Values
			if diff := cmp.Diff([]queue.Verdict{page, terminal}, q.verdicts()); diff != "" {
				t.Errorf("the verdicts differ (-want +got):\n%s", diff)
			}
		})
	}
}

// None of these requests decides anything. Each has its status.
func TestDeskDecidesNothing(t *testing.T) {
	d, q := testDesk(t, nil)
	code := func(p queue.CodeProblem, detail string) error {
		return &queue.CodeError{Code: "K7QM-2F9X", Problem: p, Detail: detail}
	}
	for _, tc := range []struct {
		name    string
		body    string
		err     error // of the queue
		status  int
		problem string
	}{
		{"unknown", decideOnce, code(queue.CodeUnknown, ""), 404, "unknown"},
		{"answered", decideOnce, code(queue.CodeAnswered, "denied in the terminal"), 409, "answered"},
		{"expired", decideOnce, code(queue.CodeExpired, ""), 410, "expired"},
		{"withdrawn", decideOnce, code(queue.CodeWithdrawn, ""), 410, "withdrawn"},
		{"invalid", decideOnce, code(queue.CodeInvalid, "a field is missing"), 400, "invalid"},
		{"broken", decideOnce, io.ErrShortWrite, 500, "internal"},
		{"no decision", `{"code":"K7QM-2F9X"}`, nil, 400, "invalid"},
		{"an empty decision", `{"code":"K7QM-2F9X","decision":""}`, nil, 400, "invalid"},
		{"a decision that is none", `{"code":"K7QM-2F9X","decision":"pending"}`, nil, 400, "invalid"},
		{"another letter case", `{"code":"K7QM-2F9X","decision":"Once"}`, nil, 400, "invalid"},
		{"an unknown key", `{"code":"K7QM-2F9X","decision":"once","force":true}`, nil, 400, "invalid"},
		{"two decisions", `{"code":"K7QM-2F9X","decision":"deny","decision":"once"}`, nil, 400, "invalid"},
		{"two decisions, one with an escape", `{"code":"K7QM-2F9X","decision":"deny","de\u0063ision":"once"}`, nil, 400, "invalid"},
		{"two decisions, in other letter case", `{"code":"K7QM-2F9X","decision":"deny","Decision":"once"}`, nil, 400, "invalid"},
		{"a key with a long s", "{\"code\":\"K7QM-2F9X\",\"deci\u017fion\":\"once\"}", nil, 400, "invalid"},
		{"two values of a field", `{"code":"K7QM-2F9X","decision":"once","values":{"a":"x","a":"y"}}`, nil, 400, "invalid"},
		{"two values", decideOnce + decideOnce, nil, 400, "invalid"},
		{"a list", `["once"]`, nil, 400, "invalid"},
		{"no JSON", `code=K7QM-2F9X&decision=once`, nil, 400, "invalid"},
		{"a value that is no text", `{"code":"K7QM-2F9X","decision":"once","values":{"a":1}}`, nil, 400, "invalid"},
		{"too large", `{"code":"` + strings.Repeat("x", control.MaxRequest) + `"}`, nil, 413, "invalid"},
		{"too large behind the value", decideOnce + strings.Repeat(" ", control.MaxRequest), nil, 413, "invalid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q.mu.Lock()
			q.err = tc.err
			q.mu.Unlock()
			for _, r := range []request{asPage(d, "POST /decide", tc.body), asTerminal(d, "POST /control/decide", tc.body)} {
				res, body := r.send(t, d)
				var f control.Failure
				if err := json.Unmarshal([]byte(body), &f); err != nil || res.StatusCode != tc.status || f.Error.Problem != tc.problem || f.Error.Message == "" {
					t.Errorf("%s = %d %s, want %d %s", r.line, res.StatusCode, body, tc.status, tc.problem)
				}
			}
		})
	}
	for _, r := range []request{
		asPage(d, "POST /decide", decideOnce).with("Content-Type", "text/plain"),
		asTerminal(d, "POST /control/decide", decideOnce).with("Content-Type", ""),
	} {
		if res, body := r.send(t, d); res.StatusCode != 415 {
			t.Errorf("%s as another type = %d %s, want 415", r.line, res.StatusCode, body)
		}
	}
	// The note is for the log; the page does not show it.
	if res, body := asPage(d, "POST /decide", `{"code":"K7QM-2F9X","decision":"once","note":"x"}`).send(t, d); res.StatusCode != 400 {
		t.Errorf("POST /decide with a note = %d %s, want 400", res.StatusCode, body)
	}
	if got := q.verdicts(); len(got) > 0 {
		t.Errorf("bad requests decided: %+v", got)
	}
}

func TestControl(t *testing.T) {
	d, _ := testDesk(t, nil)
	res, body := asTerminal(d, "GET /control/pending", "").send(t, d)
	var got control.Queue
	if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != 200 {
		t.Fatalf("GET /control/pending = %d %s", res.StatusCode, body)
	}
	if diff := cmp.Diff(control.Queue{Pending: []control.Call{control.CallOf(testCall)}}, got); diff != "" {
		t.Errorf("GET /control/pending differs (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		line   string
		body   string
		status int
	}{
		{"POST /control/pending", "", 405},
		{"POST /control/events", "", 405},
		{"GET /control/decide", "", 405},
		{"DELETE /control/decide", "", 405},
		{"GET /control/open", "", 405},
		{"GET /control/x", "", 404},
		{"GET /control/", "", 404},
		{"POST /control/open", `{"a":1}`, 400},
	} {
		if res, body := asTerminal(d, tc.line, tc.body).send(t, d); res.StatusCode != tc.status {
			t.Errorf("%s = %d %s, want %d", tc.line, res.StatusCode, body, tc.status)
		}
	}
}

func TestWithoutThePage(t *testing.T) {
	d, _ := testDesk(t, func(o *Options) { o.Page = false })
	if res, body := asPage(d, "GET /", "").send(t, d); res.StatusCode != 403 || !strings.Contains(body, "its configuration leaves it out") {
		t.Errorf("GET / = %d %s, want 403 and why", res.StatusCode, body)
	}
	if res, body := asTerminal(d, "POST /control/open", "{}").send(t, d); res.StatusCode != 404 || !strings.Contains(body, "leaves it out") {
		t.Errorf("POST /control/open = %d %s, want 404 and why", res.StatusCode, body)
	}
	if res, body := asTerminal(d, "GET /control/pending", "").send(t, d); res.StatusCode != 200 {
		t.Errorf("GET /control/pending = %d %s, want 200", res.StatusCode, body)
	}
	if err := d.OpenPage(); err == nil {
		t.Error("OpenPage() = nil, want an error")
	}
}

// entryFile asks for the file that opens the page and returns its path, and the
// token and address in it.
func entryFile(t *testing.T, d *Desk) (file string, _ link) {
	t.Helper()
	res, body := asTerminal(d, "POST /control/open", "{}").send(t, d)
	var o control.Opened
	if err := json.Unmarshal([]byte(body), &o); err != nil || res.StatusCode != 200 {
		t.Fatalf("POST /control/open = %d %s", res.StatusCode, body)
	}
	text, err := os.ReadFile(o.File)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`action="([^?"]*)\?([^"]{40,})">\s*<input type="hidden" name="token" value="([^"]{40,})"`).FindStringSubmatch(string(text))
	if found == nil || found[1] != d.origin+"/enter" || found[2] == found[3] || strings.Contains(string(text), "{{") {
		t.Fatalf("the file is\n%s", text)
	}
	return o.File, link{found[2], found[3]}
}

// A link is the content of a file that opens the page: the place for its
// request, and the token.
type link struct{ place, token string }

func enterWith(l link) request {
	return request{line: "POST /enter?" + l.place, body: "token=" + l.token, headers: map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Origin": "null",
		"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
	}}
}

func TestEnter(t *testing.T) {
	d, _ := testDesk(t, nil)
	file, token := entryFile(t, d)
	res, body := enterWith(token).send(t, d)
	if res.StatusCode != 200 {
		t.Fatalf("POST /enter = %d %s", res.StatusCode, body)
	}
	// The page that has both secrets loads nothing, and nothing left in the
	// browser can intercept it.
	script := page.Text("enter.js")
	digest := sha256.Sum256([]byte(script))
	wantPolicy := "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'; style-src " + page.Inline(page.Style()) + "; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
	if got := res.Header.Get("Content-Security-Policy"); got != wantPolicy || !strings.Contains(body, "<script>"+script+"</script>") || regexp.MustCompile(`(?i)src=|https?:`).MatchString(body) {
		t.Errorf("POST /enter has the policy %q, want %q, and its only script inline:\n%s", got, wantPolicy, body)
	}
	if !strings.Contains(body, "<style>"+page.Style()+"</style>") || strings.Contains(body, "{{") {
		t.Errorf("POST /enter does not look like the page:\n%s", body)
	}
	if got := res.Header.Get("Clear-Site-Data"); got != `"cache", "storage"` {
		t.Errorf("Clear-Site-Data = %q", got)
	}
	cookie := res.Header.Get("Set-Cookie")
	port := strings.Split(d.address, ":")[1]
	if want := "packs-mcp-" + port + "=" + d.cookie + "; Path=/; HttpOnly; SameSite=Strict"; cookie != want {
		t.Errorf("Set-Cookie = %q, want %q", cookie, want)
	}
	if !strings.Contains(body, `content="`+d.pageKey+`"`) || strings.Contains(body, d.cookie) || strings.Contains(body, token.token) || strings.Contains(body, token.place) {
		t.Errorf("POST /enter = %s", body)
	}
	if _, err := os.Lstat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if res, body := enterWith(token).send(t, d); res.StatusCode != 403 || !strings.Contains(body, "used already") {
		t.Errorf("POST /enter with a spent token = %d %s, want 403", res.StatusCode, body)
	}
	for _, path := range []string{"/", "/page.css", "/page.js"} {
		res, body := asPage(d, "GET "+path, "").with("X-Packs-Key", "").send(t, d)
		if res.StatusCode != 200 || body == "" {
			t.Errorf("GET %s = %d", path, res.StatusCode)
		}
		checkHeaders(t, res)
	}
}

// None of these is signed in, and none spends the token.
func TestEnterRefuses(t *testing.T) {
	d, _ := testDesk(t, nil)
	_, token := entryFile(t, d)
	enter := enterWith(token)
	for _, tc := range []struct {
		name string
		request
	}{
		{"another origin", enter.with("Origin", "https://evil.example")},
		{"our own origin", enter.with("Origin", d.origin)},
		{"a frame", enter.with("Sec-Fetch-Dest", "iframe")},
		{"a script", enter.with("Sec-Fetch-Dest", "empty")},
		{"passed on by a worker", enter.with("Sec-Fetch-Mode", "same-origin")},
		{"from this address", enter.with("Sec-Fetch-Site", "same-origin")},
		{"from another port", enter.with("Sec-Fetch-Site", "same-site")},
		{"another type", enter.with("Content-Type", "text/plain")},
		{"another host", enter.with("Host", "localhost")},
		{"a GET", request{line: "GET /enter?" + token.place}},
		{"in the address", request{line: "POST /enter?token=" + token.token, headers: enter.headers}},
		{"in the address too", enter.as(enter.line + "&token=" + token.token)},
		{"without a place", enter.as("POST /enter")},
		{"at another place", enter.as("POST /enter?" + secret())},
		{"twice", request{line: enter.line, headers: enter.headers, body: enter.body + "&" + enter.body}},
		{"too long", request{line: enter.line, headers: enter.headers, body: enter.body + "&x=" + strings.Repeat("x", control.MaxRequest)}},
	} {
		if res, body := tc.send(t, d); res.StatusCode != 403 || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: POST /enter = %d %s, want 403", tc.name, res.StatusCode, body)
		}
	}
	for _, origin := range []string{"null", "", "file://"} {
		_, token := entryFile(t, d)
		if res, body := enterWith(token).with("Origin", origin).send(t, d); res.StatusCode != 200 {
			t.Errorf("POST /enter with Origin %q = %d %s, want 200", origin, res.StatusCode, body)
		}
	}
	if res, body := enter.send(t, d); res.StatusCode != 200 {
		t.Errorf("POST /enter after refusals = %d %s, want 200", res.StatusCode, body)
	}
}

func TestEnterExpires(t *testing.T) {
	c := &clock{t: time.Unix(1_000, 0)}
	d, _ := testDesk(t, func(o *Options) { o.Now = c.now })
	_, inTime := entryFile(t, d)
	file, late := entryFile(t, d)
	c.move(runfolder.EntryTime - time.Second)
	if res, body := enterWith(inTime).send(t, d); res.StatusCode != 200 {
		t.Errorf("POST /enter in time = %d %s, want 200", res.StatusCode, body)
	}
	c.move(time.Second)
	if res, body := enterWith(late).send(t, d); res.StatusCode != 403 {
		t.Errorf("POST /enter too late = %d %s, want 403", res.StatusCode, body)
	}
	if _, err := os.Lstat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	for range maxEntries {
		entryFile(t, d)
	}
	if res, body := asTerminal(d, "POST /control/open", "{}").send(t, d); res.StatusCode != 500 || !strings.Contains(body, "too many") {
		t.Errorf("POST /control/open, once too often = %d %s, want 500", res.StatusCode, body)
	}
}

func TestAttach(t *testing.T) {
	r := &rooms{}
	d, _ := testDesk(t, func(o *Options) { o.Chats = r })
	for _, tc := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"chat":"chat-1","pack":"triage","on":true}`, 200, "{}"},
		{`{"chat":"chat-1","pack":"triage","on":false}`, 200, "{}"},
		{`{"chat":"chat-1","pack":"triage"}`, 400, "say which pack"},
		{`{"chat":"chat-1","pack":"missing","on":true}`, 400, `there is no pack \\x1b[2Jmissing`},
	} {
		if res, body := asPage(d, "POST /attach", tc.body).send(t, d); res.StatusCode != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("POST /attach %s = %d %s, want %d %s", tc.body, res.StatusCode, body, tc.status, tc.want)
		}
	}
	if diff := cmp.Diff([]string{"chat-1 triage on", "chat-1 triage off"}, r.set); diff != "" {
		t.Errorf("what was set differs (-want +got):\n%s", diff)
	}
	none, _ := testDesk(t, nil)
	if res, body := asPage(none, "POST /attach", `{"chat":"c","pack":"p","on":true}`).send(t, none); res.StatusCode != 400 {
		t.Errorf("POST /attach without rooms = %d %s, want 400", res.StatusCode, body)
	}
}

func TestArtifacts(t *testing.T) {
	odd := "a\u202e\xff\".png"
	r := &rooms{files: map[string]string{}}
	kinds := map[string]string{
		"a.txt": "text/plain; charset=utf-16", "b.html": "text/html", "c.svg": "image/svg+xml", "d.pdf": "application/pdf", "e.png": "image/png",
		"f.bin": "application/octet-stream", "g": "", "h.xhtml": "application/xhtml+xml", "i.js": "text/javascript", odd: "image/png", "sub/j.md": "text/markdown",
	}
	room := Chat{ID: "chat-1"}
	for name, kind := range kinds {
		r.files[name] = "<script>" + name
		room.Artifacts = append(room.Artifacts, Artifact{Path: name, MIME: kind})
	}
	r.chats = []Chat{room}
	c := &clock{t: time.Unix(1_000, 0)}
	d, _ := testDesk(t, func(o *Options) { o.Chats, o.Now = r, c.now })
	mint := func(name, as string) string {
		t.Helper()
		body := fmt.Sprintf(`{"chat":"chat-1","key":%q,"as":%q}`, base64.RawURLEncoding.EncodeToString([]byte(name)), as)
		res, got := asPage(d, "POST /artifact", body).send(t, d)
		var v struct{ URL string }
		if err := json.Unmarshal([]byte(got), &v); err != nil || res.StatusCode != 200 || !strings.HasPrefix(v.URL, "/artifact/") {
			t.Fatalf("POST /artifact %q = %d %s", name, res.StatusCode, got)
		}
		return v.URL
	}
	get := func(url string) request { return asPage(d, "GET "+url, "").with("X-Packs-Key", "") }
	const plain, other = "text/plain; charset=utf-8", "application/octet-stream"
	for _, tc := range []struct {
		name        string
		as          string
		kind        string
		disposition string
	}{
		{"a.txt", "tab", plain, `inline; filename=a.txt`},
		{"a.txt", "download", plain, `attachment; filename=a.txt`},
		{"b.html", "tab", plain, `inline; filename=b.html`},
		{"c.svg", "tab", plain, `inline; filename=c.svg`},
		{"d.pdf", "tab", other, `attachment; filename=d.pdf`},
		{"e.png", "tab", "image/png", `inline; filename=e.png`},
		{"f.bin", "tab", other, `attachment; filename=f.bin`},
		{"g", "tab", other, `attachment; filename=g`},
		{"h.xhtml", "tab", plain, `inline; filename=h.xhtml`},
		{"i.js", "tab", plain, `inline; filename=i.js`},
		{odd, "download", "image/png", `attachment; filename="a_u202e_xff\".png"`},
		{"sub/j.md", "download", plain, `attachment; filename=j.md`},
	} {
		url := mint(tc.name, tc.as)
		res, body := get(url).send(t, d)
		if res.StatusCode != 200 || body != "<script>"+tc.name {
			t.Errorf("GET of %q = %d %q", tc.name, res.StatusCode, body)
		}
		for header, want := range map[string]string{
			"Content-Type": tc.kind, "Content-Disposition": tc.disposition, "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'", "Cache-Control": "no-store",
		} {
			if got := res.Header.Get(header); got != want {
				t.Errorf("%s of %q = %q, want %q", header, tc.name, got, want)
			}
		}
		if res, _ := get(url).send(t, d); res.StatusCode != 403 {
			t.Errorf("GET of %q again = %d, want 403", tc.name, res.StatusCode)
		}
	}
	// The address alone signs nobody in, and expires soon.
	for name, change := range map[string]func(request) request{
		"no cookie":      func(r request) request { return r.with("Cookie", "") },
		"another origin": func(r request) request { return r.with("Sec-Fetch-Site", "cross-site") },
		"another port":   func(r request) request { return r.with("Sec-Fetch-Site", "same-site") },
		"too late":       func(r request) request { c.move(ticketTime); return r },
	} {
		if res, _ := change(get(mint("a.txt", "tab"))).send(t, d); res.StatusCode != 403 {
			t.Errorf("%s: GET = %d, want 403", name, res.StatusCode)
		}
	}
	for _, key := range []string{"", "!", base64.RawURLEncoding.EncodeToString([]byte("missing"))} {
		res, body := asPage(d, "POST /artifact", fmt.Sprintf(`{"chat":"chat-1","key":%q,"as":"tab"}`, key)).send(t, d)
		if res.StatusCode != 404 || strings.Contains(body, "secret/place") {
			t.Errorf("POST /artifact %q = %d %s, want 404 without a path", key, res.StatusCode, body)
		}
	}
}

func TestRoomsAreSafeToShow(t *testing.T) {
	evil := "x\u202e\x1b[2J\xff"
	got := pageChats([]Chat{{
		ID: "chat-1", Client: evil, Person: evil, Ends: evil, Packs: []Pack{{ID: "a", Name: evil, Description: evil, Trust: evil, Problems: []string{evil}}},
		Artifacts: []Artifact{{Path: evil, MIME: evil}},
	}})
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), `x\\u202e\\x1b[2J\\xff`, "SAFE")
	if n := strings.Count(text, "SAFE"); n != 9 || strings.ContainsAny(text, "\u202e\x1b\ufffd") || strings.Contains(text, `\u`) {
		t.Errorf("pageChats = %s", text)
	}
	if key, err := pathOf(got[0].Artifacts[0].Key); err != nil || key != evil {
		t.Errorf("artifactKey = %q, %v, want %q", key, err, evil)
	}
}

// A request for a service worker's script changes nothing, however it is made:
// no worker is installed, and the request does not end the page.
func TestWorkerIsRefused(t *testing.T) {
	script := request{line: "GET /sw.js", headers: map[string]string{"Service-Worker": "script", "Sec-Fetch-Dest": "serviceworker", "Sec-Fetch-Site": "same-origin"}}
	d, q := testDesk(t, nil)
	_, token := entryFile(t, d)
	page, _ := listen(t, d, asPage(d, "GET /events", ""))
	for _, tc := range []struct {
		name string
		request
	}{
		{"Service-Worker", script.with("Sec-Fetch-Dest", "")},
		{"Service-Worker alone", request{line: "GET /", headers: map[string]string{"Service-Worker": "script"}}},
		{"Sec-Fetch-Dest", script.with("Service-Worker", "")},
		{"of /control", script.as("GET /control/sw.js")},
		{"with another Host", script.with("Host", "evil.example")},
		{"with the cookie", asPage(d, "GET /page.js", "").with("X-Packs-Key", "", "Service-Worker", "script")},
		{"with the page's key", asPage(d, "GET /page.js", "").with("Service-Worker", "script")},
	} {
		res, body := tc.send(t, d)
		if res.StatusCode != 403 || res.Header.Get("Content-Type") == "text/javascript" || res.Header.Get("Service-Worker-Allowed") != "" || res.Header.Get("Clear-Site-Data") != "" {
			t.Errorf("%s: %s = %d %s, want 403", tc.name, tc.line, res.StatusCode, body)
		}
	}
	for {
		event, _, err := page.next()
		if err != nil {
			t.Fatal(err)
		}
		if event == "history" {
			break
		}
	}
	if res, body := asPage(d, "POST /decide", decideOnce).send(t, d); res.StatusCode != 200 || len(q.verdicts()) != 1 {
		t.Errorf("POST /decide afterwards = %d %s, want 200", res.StatusCode, body)
	}
	if res, body := enterWith(token).send(t, d); res.StatusCode != 200 {
		t.Errorf("POST /enter afterwards = %d %s, want 200", res.StatusCode, body)
	}
	if got := d.refused.Load(); got < 7 {
		t.Errorf("%d requests were counted, want 7", got)
	}
}

// Without the terminal, other programs can only ask for the page.
func TestWithoutTheTerminal(t *testing.T) {
	d, q := testDesk(t, func(o *Options) { o.Terminal = false })
	for _, r := range []request{
		asTerminal(d, "GET /control/pending", ""), asTerminal(d, "GET /control/events", ""), asTerminal(d, "POST /control/decide", decideOnce), asTerminal(d, "GET /control/x", ""),
	} {
		res, body := r.send(t, d)
		var f control.Failure
		if err := json.Unmarshal([]byte(body), &f); err != nil || res.StatusCode != 403 || f.Error.Problem != control.ProblemPageOnly || !strings.Contains(body, "on its page only") {
			t.Errorf("%s = %d %s, want 403 and why", r.line, res.StatusCode, body)
		}
		if res, body := r.with("Authorization", "").send(t, d); res.StatusCode != 403 || strings.Contains(body, "page") {
			t.Errorf("%s without the key = %d %s, want 403 and nothing else", r.line, res.StatusCode, body)
		}
	}
	if got := q.verdicts(); len(got) > 0 {
		t.Errorf("the terminal decided: %+v", got)
	}
	entryFile(t, d)
	found, err := terminal.Find(t.Context(), d.folder.Path())
	if err != nil || len(found.Servers) != 1 || len(found.Skipped) != 0 || !found.Servers[0].PageOnly {
		t.Fatalf("Find() = %+v, %v; want one server, of the page only", found, err)
	}
	if file, err := found.Servers[0].OpenPage(t.Context()); err != nil {
		t.Errorf("OpenPage() = %q, %v", file, err)
	}
}

func TestPanic(t *testing.T) {
	d, q := testDesk(t, nil)
	q.panics = true
	if res, body := asTerminal(d, "POST /control/decide", decideOnce).send(t, d); res.StatusCode != 500 || strings.Contains(body, "a bug") {
		t.Errorf("POST /control/decide that panics = %d %s, want 500", res.StatusCode, body)
	}
	q.mu.Lock() // the handler that panicked does not hold it
	q.panics = false
	q.mu.Unlock()
	if res, body := asTerminal(d, "POST /control/decide", decideOnce).send(t, d); res.StatusCode != 200 {
		t.Errorf("POST /control/decide afterwards = %d %s, want 200", res.StatusCode, body)
	}
}

// The assets refer to nothing elsewhere and have nothing inline.
func TestAssets(t *testing.T) {
	const script = `innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|setHTML|srcdoc|eval\(|Function\(|https?:`
	const style = `url\(|@import|https?:`
	all := map[string]string{
		"page/index.html": `(?i)https?://|<style|style=|\son[a-z]+=|<script(?: defer)?>|innerHTML`,
		"page/enter.html": `(?i)https?://|<style[^>]|<style>[^{]|style=|\ssrc=|\son[a-z]+=|<script(?: defer)?>[^{]`,
		"page/enter.js":   script + `|</|\{\{`,
		"page/page.css":   style + `|</|\{\{`, // it stands in other pages
	}
	for _, name := range []string{"ui", "calls", "changes", "rooms", "page"} {
		all["page/"+name+".js"] = script
	}
	for name, bad := range all {
		clean := strings.ReplaceAll(page.Text(strings.TrimPrefix(name, "page/")), "http://www.w3.org/2000/svg", "")
		if found := regexp.MustCompile(bad).FindString(clean); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
	entries, err := filepath.Glob("page/*")
	if others := 4; err != nil || len(entries) != len(all)+others { // redirect.html, refused.html, login.html and page.go
		t.Errorf("page/ has %q, want %d files: everything in it is in the binary", entries, len(all)+others)
	}
	d, _ := testDesk(t, nil)
	for _, name := range []string{"page.css", "ui.js", "calls.js", "changes.js", "rooms.js", "page.js", "card.js", "card.css"} {
		line := "GET /" + name
		if res, body := asPage(d, line, "").send(t, d); res.StatusCode != 200 || body == "" {
			t.Errorf("%s = %d %.40q", line, res.StatusCode, body)
		}
	}
}
