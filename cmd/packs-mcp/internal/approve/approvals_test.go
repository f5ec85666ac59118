package approve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals"
	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// An office is a running server without a client: a real gate behind a real
// desk, announced in the folders of env.
type office struct {
	t    *testing.T
	env  []string
	gate *gate.Gate
	desk *approvals.Desk

	mu  sync.Mutex
	log []audit.Entry
}

// idleRunner starts nothing.
type idleRunner struct{}

func (idleRunner) Probe(context.Context) sandbox.Report {
	return sandbox.Report{Level: sandbox.LevelFull, Loopback: true}
}

func (idleRunner) Run(context.Context, sandbox.Policy, sandbox.Command) (*sandbox.Result, error) {
	return &sandbox.Result{}, nil
}

func (o *office) Append(e audit.Entry) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = append(o.log, e)
	return nil
}

func (o *office) AppendLazy(e audit.Entry) error { return o.Append(e) }

func (*office) Failures() int { return 0 }

// decisions returns the log's lines with a decision, without automatic denials.
func (o *office) decisions() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []string
	for _, e := range o.log {
		if e.Decision != "" {
			all = append(all, fmt.Sprintf("%s by %s: %s", e.Decision, e.Channel, e.Reason))
		}
	}
	return all
}

// openOffices opens several servers of one user.
func openOffices(t *testing.T, names ...string) []*office {
	t.Helper()
	dir := t.TempDir()
	env := append(os.Environ(), "HOME="+dir, "PACKS_MCP_HOME="+filepath.Join(dir, "state"), "TERM=xterm", "NO_COLOR=1")
	var all []*office
	for _, name := range names {
		o := &office{t: t, env: env}
		var err error
		o.gate, err = gate.New(gate.Options{
			Runner: idleRunner{}, Log: o, Channels: []string{queue.ChannelPage, queue.ChannelTerminal}, Wait: time.Hour, Pending: 2 * time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		o.desk, err = approvals.Open(approvals.Options{
			Calls: o.gate, RunDir: filepath.Join(dir, "state", "run"), Server: name, Project: "/home/ann/src/" + name, Page: true, Terminal: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.desk.Close() })
		all = append(all, o)
	}
	return all
}

// A pendingCall is a call that a client makes.
type pendingCall struct {
	code   string
	leave  func()        // the client stops waiting
	cancel func()        // the client cancels the call
	ended  chan struct{} // closed when there is a result
	result string
}

// call makes a call, which waits. The name is part of its title.
func (o *office) call(t *testing.T, name string, fields ...call.Field) *pendingCall {
	t.Helper()
	req := call.Request{
		Workspace: "/workspace",
		Caller:    call.Caller{Chat: "chat-1", Client: "shop-client 1.0", Call: "call-" + name, ChatEnd: "until this client closes"},
		Kind:      call.KindRun, Method: "capability_packs_call_tool",
		Pack:      call.Pack{ID: "triage", Dir: "/packs/triage", Trust: call.TrustUser, Digest: "sha256:" + strings.Repeat("ab", 32), About: "Says \x1b[2J."},
		Arguments: call.ParseArguments([]byte(`{}`)), Fields: fields,
		Run: &call.Run{
			Tool: name, Definition: "sha256:" + strings.Repeat("cd", 32),
			Command: sandbox.Command{
				Program: program.Program{Name: "echo", Path: "/bin/echo", Resolved: "/bin/echo", Digest: "sha256:" + strings.Repeat("ef", 32)},
				Args:    []string{"hello"}, Dir: "/workspace", Workspace: "/workspace",
			},
		},
	}
	_, q, err := o.gate.Check(t.Context(), req, nil)
	if q == nil {
		t.Fatalf("Check() = %v, want a question", err)
	}
	left, cancelled := make(chan struct{}), make(chan struct{})
	c := &pendingCall{
		code: q.Code, ended: make(chan struct{}),
		leave: sync.OnceFunc(func() { close(left) }), cancel: sync.OnceFunc(func() { close(cancelled) }),
	}
	t.Cleanup(c.cancel)
	go func() {
		defer close(c.ended)
		ctx := context.Background()
		var answer *answers.Answer
		select {
		case <-q.Decided:
			answer = o.gate.Answered(q)
		case <-left:
			if answer, err = o.gate.Postpone(q); err != nil {
				c.result = err.Error()
				return
			}
		case <-cancelled:
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			cancel()
			answer = &answers.Answer{State: q.State, Reason: "the question was closed", Channel: queue.ChannelTerminal}
		}
		permit, _, err := o.gate.Check(ctx, req, answer)
		if c.result = "allowed"; permit == nil {
			c.result = err.Error()
		}
	}()
	return c
}

// until waits for the result of the call.
func (c *pendingCall) until(t *testing.T, want string) {
	t.Helper()
	select {
	case <-c.ended:
		if !strings.Contains(c.result, want) {
			t.Errorf("the call ended with %q, want %q", c.result, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("the call does not end; want %q", want)
	}
}

func (c *pendingCall) waits(t *testing.T) {
	t.Helper()
	select {
	case <-c.ended:
		t.Errorf("the call ended with %q, want it to wait", c.result)
	default:
	}
}

// command runs a command without a terminal.
func (o *office) command(args ...string) (code int, stdout, stderr string) {
	o.t.Helper()
	var out, errs bytes.Buffer
	code = run(o.t.Context(), append([]string{"approvals"}, args...), o.env, strings.NewReader("o\nyes\n"), &out, &errs)
	return code, out.String(), errs.String()
}

func TestApprovalsList(t *testing.T) {
	o := openOffices(t, "shop")[0]
	if code, out, errs := o.command(); code != 0 || out != "" || !strings.Contains(errs, "No call waits. One server of yours is running.") {
		t.Errorf("approvals = %d, %q, %q; want that no call waits", code, out, errs)
	}
	first, second := o.call(t, "first", call.Field{Name: "url", Title: "Where"}), o.call(t, "second")
	second.leave()
	second.until(t, "nobody has answered yet")

	for _, args := range [][]string{{}, {"list"}} {
		code, out, errs := o.command(args...)
		want := regexp.MustCompile(`^` + first.code + `  \d+ s ago  waits 59 min +Run tool first of pack triage\?\n` +
			second.code + `  \d+ s ago  answer for its next try  Run tool second of pack triage\?\n$`)
		if code != 0 || !want.MatchString(out) || !strings.Contains(errs, "packs-mcp approvals approve CODE") {
			t.Errorf("approvals %q = %d, %q, %q", args, code, out, errs)
		}
	}

	code, out, errs := o.command("list", "--json")
	var got struct {
		Pending []map[string]any `json:"pending"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || errs != "" || len(got.Pending) != 2 {
		t.Fatalf("approvals list --json = %d, %q, %q (%v)", code, out, errs, err)
	}
	var keys []string
	for _, k := range []string{"code", "server", "pid", "project", "chat", "client", "kind", "pack", "title", "card", "choices", "fields", "asked", "waits", "expires", "note", "answered"} {
		if _, ok := got.Pending[0][k]; !ok {
			keys = append(keys, k)
		}
	}
	if len(keys) > 0 {
		t.Errorf("list --json leaves out %q:\n%s", keys, out)
	}
	if p := got.Pending[0]; p["code"] != first.code || p["server"] != "shop" || p["pid"] != float64(os.Getpid()) || p["client"] == "" || p["kind"] != "run" {
		t.Errorf("list --json has %v", p)
	}
	if _, waits := got.Pending[1]["waits"]; waits {
		t.Errorf("list --json says until when a call waits that has returned: %v", got.Pending[1])
	}

	code, out, errs = o.command("show", first.code)
	for _, want := range []string{"Run tool first of pack triage?\n", "  $ echo hello\n", "\nExactly what runs\n  program      ", "  asked by     a client", "It needs a value for url: Where", "The client waits 59 min", "packs-mcp approvals approve " + first.code, "packs-mcp approvals deny " + first.code} {
		if code != 0 || errs != "" || !strings.Contains(out, want) {
			t.Errorf("approvals show = %d, %q, want %q in\n%s", code, errs, want, out)
		}
	}
	if r := safetext.Inspect([]byte(out)); r.Total() != 0 {
		t.Errorf("approvals show has %s: %q", r, out)
	}
	first.waits(t)
	if got := o.decisions(); len(got) != 1 { // the second call was postponed
		t.Errorf("looking decided %q", got)
	}
}

func TestApprovalsDecide(t *testing.T) {
	o := openOffices(t, "shop")[0]
	for _, tc := range []struct {
		name    string
		args    func(code string) []string
		out     string
		result  string
		decided string
	}{
		{"once", func(code string) []string { return []string{"approve", code} }, "Allowed (once): Run tool", "allowed", "once by terminal: by a command without a terminal"},
		{"small letters", func(code string) []string { return []string{"approve", strings.ToLower(code)} }, "Allowed (once)", "allowed", "once by terminal: by a command without a terminal"},
		{"without the dash", func(code string) []string { return []string{"approve", strings.ReplaceAll(code, "-", " ")} }, "Allowed (once)", "allowed", "once by terminal: by a command without a terminal"},
		{"deny", func(code string) []string { return []string{"deny", code} }, "Denied: Run tool", "denied", "deny by terminal: "},
		{"once for programs", func(code string) []string { return []string{"approve", code, "--json"} }, "\"decision\": \"once\",\n  \"client_shows_it\": false,\n  \"waits_for_client\": false\n}\n", "allowed", "once by terminal: by a command without a terminal"},
		{"deny for programs", func(code string) []string { return []string{"deny", code, "--json"} }, "\"decision\": \"deny\"", "denied", "deny by terminal: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := o.call(t, strings.ReplaceAll(tc.name, " ", "_"))
			args := tc.args(c.code)
			code, out, errs := o.command(args...)
			if code != 0 || errs != "" || !strings.Contains(out, tc.out) || strings.Contains(out, "?\n") {
				t.Errorf("approvals %q = %d, %q, %q; want %q, and no question", args, code, out, errs, tc.out)
			}
			c.until(t, tc.result)
			all := o.decisions()
			if got := all[len(all)-1]; !strings.HasPrefix(got, tc.decided) {
				t.Errorf("the log says %q, want %q", got, tc.decided)
			}
			for _, verb := range []string{"approve", "deny", "show"} { // the code is spent
				code, out, errs := o.command(verb, c.code)
				if code != 1 || out != "" || !strings.Contains(errs, "packs-mcp: error: the call "+c.code+": it was answered before: ") || !strings.Contains(errs, "hint: the first answer counts") {
					t.Errorf("approvals %s of a spent code = %d, %q, %q", verb, code, out, errs)
				}
			}
		})
	}
}

func TestApprovalsHeld(t *testing.T) {
	o := openOffices(t, "shop")[0]
	c := o.call(t, "late")
	c.leave()
	c.until(t, "nobody has answered yet")
	code, out, errs := o.command("approve", c.code)
	if want := "Have it make the same call again within 1 h 59 min."; code != 0 || errs != "" || !strings.Contains(out, want) {
		t.Errorf("approvals approve of a call that has returned = %d, %q, %q; want %q", code, out, errs, want)
	}
	if _, out, _ := o.command("list"); !strings.Contains(out, "allowed: once") {
		t.Errorf("approvals list = %q, want that it is allowed", out)
	}
	if code, _, errs := o.command("approve", c.code); code != 1 || !strings.Contains(errs, "is allowed already (once)") {
		t.Errorf("approving it again = %d, %q; want that it is allowed already", code, errs)
	}
	if code, out, errs := o.command("deny", c.code); code != 0 || !strings.Contains(out, "Denied: ") {
		t.Errorf("taking it back = %d, %q, %q; want that it is denied", code, out, errs)
	}
	again := o.call(t, "late_again")
	again.leave()
	again.until(t, "nobody has answered yet")
	if code, out, errs := o.command("approve", again.code, "--json"); code != 0 || !strings.Contains(out, `"waits_for_client": true`) || !strings.Contains(out, `"expires": "`) {
		t.Errorf("approvals approve --json of a call that has returned = %d, %q, %q; want until when the answer waits", code, out, errs)
	}
}

func TestApprovalsRefuse(t *testing.T) {
	o := openOffices(t, "shop")[0]
	c, gone := o.call(t, "plain"), o.call(t, "gone")
	field := o.call(t, "field", call.Field{Name: "url", Title: "Where to look"})
	gone.cancel()
	<-gone.ended
	mistyped := c.code[:8] + "A"
	if mistyped == c.code {
		mistyped = c.code[:8] + "B"
	}
	for _, tc := range []struct {
		args []string
		code int
		want string // error and hint, without the program's name
	}{
		{[]string{"approve", "ZZZZ-ZZZZ"}, 1, "error: no call waits under the code ZZZZ-ZZZZ\nhint: see which calls wait: packs-mcp approvals list\n"},
		{[]string{"deny", "zzzzzzzz"}, 1, "error: no call waits under the code ZZZZ-ZZZZ\nhint: see which calls wait: packs-mcp approvals list\n"},
		{[]string{"show", "ZZZZ-ZZZZ"}, 1, "error: no call waits under the code ZZZZ-ZZZZ\nhint: see which calls wait: packs-mcp approvals list\n"},
		{[]string{"approve", gone.code}, 1, "error: the call " + gone.code + ": the client cancelled the call\nhint: nothing was done; if you still want it, ask for it again in your client\n"},
		{[]string{"approve", "../x\x1b"}, 2, `error: "../x\x1b" is not a code` + "\nhint: a code looks like K7QM-2F9X; see: packs-mcp approvals list\n"},
		{[]string{"approve", c.code, "--for", "ever"}, 2, "error: --for is \"ever\"\nhint: it must be once, chat or always; to deny, say: packs-mcp approvals deny CODE\n"},
		{[]string{"approve", c.code, "--for", "chat"}, 1, "error: without a terminal a call can only be allowed once, and nothing for later\nhint: run this in a terminal of yours, or answer on the page: packs-mcp approvals open\n"},
		{[]string{"approve", c.code, "--for", "deny"}, 2, "error: --for is \"deny\"\nhint: it must be once, chat or always; to deny, say: packs-mcp approvals deny CODE\n"},
		{[]string{"approve", c.code, "--set", "url=x"}, 2, "error: the call " + c.code + " needs no value for \"url\"\nhint: see what it needs: packs-mcp approvals show " + c.code + "\n"},
		{[]string{"approve", c.code, "--set", "url"}, 2, "error: --set is \"url\"\nhint: write NAME=VALUE, and each name once\n"},
		{[]string{"approve", field.code}, 1, "error: the call " + field.code + " needs a value for url (Where to look)\nhint: add: --set url=VALUE\n"},
		{[]string{"approve", field.code, "--set", "url=", "--yes"}, 1, "error: the call " + field.code + " needs a value for url (Where to look)\nhint: add: --set url=VALUE\n"},
		{[]string{"approve", field.code, "--set", "url=a", "--set", "url=b"}, 2, "error: --set is \"url=b\"\nhint: write NAME=VALUE, and each name once\n"},
		{[]string{"approve", field.code, "--for", "always", "--set", "url=x"}, 1, "error: the call " + field.code + " cannot be allowed for \"always\"\nhint: it can be allowed for: once\n"},
		{[]string{"open", "--server", "1"}, 1, "error: no server of yours has the pid 1\nhint: leave --server out, or take a pid of: packs-mcp approvals list --json\n"},
		{[]string{"show", mistyped}, 1, "error: no call waits under the code " + mistyped + "\nhint: did you mean " + c.code + "? see which calls wait: packs-mcp approvals list\n"},
	} {
		code, out, errs := o.command(tc.args...)
		if got := strings.ReplaceAll(errs, "packs-mcp: ", ""); code != tc.code || out != "" || got != tc.want {
			t.Errorf("approvals %q = %d, %q, %q; want %d, %q", tc.args, code, out, got, tc.code, tc.want)
		}
	}
	// Asking why decides nothing, not even about a waiting call.
	found, err := terminal.Find(t.Context(), runOf(o))
	if err != nil || len(found.Servers) != 1 {
		t.Fatalf("Find() = %+v, %v; want one server", found, err)
	}
	for _, code := range []string{c.code, field.code} {
		if err := found.Servers[0].Why(t.Context(), code); err == nil || !strings.Contains(err.Error(), "does not say why") {
			t.Errorf("Why(a call that waits) = %v, want that the server does not say", err)
		}
	}
	c.waits(t)
	field.waits(t)
	if code, _, errs := o.command("approve", field.code, "--set", "url=https://example.com/a=b"); code != 0 {
		t.Errorf("approving with a value = %d, %q", code, errs)
	}
	field.until(t, "allowed")
}

func TestApprovalsWithoutAServer(t *testing.T) {
	o := openOffices(t, "shop")[0]
	if err := o.desk.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"approve", "ZZZZ-ZZZZ"}, {"deny", "ZZZZ-ZZZZ"}, {"show", "ZZZZ-ZZZZ"}, {"open"}} {
		if code, out, errs := o.command(args...); code != 1 || out != "" || !strings.HasPrefix(errs, "packs-mcp: error: no server of yours is running, so no call waits\npacks-mcp: hint: start your client, which starts a server, and make the call again there; packs-mcp doctor") {
			t.Errorf("approvals %q without a server = %d, %q, %q", args, code, out, errs)
		}
	}
	if code, out, errs := o.command("list"); code != 0 || out != "" || !strings.Contains(errs, "No server of yours is running") {
		t.Errorf("approvals list without a server = %d, %q, %q", code, out, errs)
	}
	if code, out, errs := o.command("list", "--json"); code != 0 || out != "{\n  \"pending\": []\n}\n" || errs != "" {
		t.Errorf("approvals list --json without a server = %d, %q, %q", code, out, errs)
	}
}

// A running server that does not answer may still have calls.
func TestApprovalsOfSilentServers(t *testing.T) {
	o := openOffices(t, "shop")[0]
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	t.Cleanup(broken.Close)
	plant := func(name string) {
		t.Helper()
		data, err := json.Marshal(control.Announcement{
			Version: 2, PID: os.Getpid(), Server: name, Address: broken.Listener.Addr().String(), Key: strings.Repeat("k", 43), Started: time.Now(),
		})
		if err == nil {
			err = os.WriteFile(filepath.Join(runOf(o), "1-"+name+".json"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	plant("a")
	one := "packs-mcp: error: one server of yours does not answer, so a call of it may wait\npacks-mcp: hint: the warnings say why;"
	code, out, errs := o.command("list")
	if code != 1 || out != "" || !strings.Contains(errs, "No call waits at the servers that answer.\n") || !strings.Contains(errs, one) || !strings.Contains(errs, "status 500") {
		t.Errorf("approvals list = %d, %q, %q; want 1, and that one server does not answer", code, out, errs)
	}
	c := o.call(t, "one")
	for _, args := range [][]string{{"list"}, {"list", "--json"}, {}} {
		if code, out, errs := o.command(args...); code != 1 || !strings.Contains(out, c.code) || !strings.Contains(errs, one) {
			t.Errorf("approvals %q = %d, %q, %q; want 1, the call, and that one server does not answer", args, code, out, errs)
		}
	}
	code, _, errs = o.command("deny", "ZZZZ-ZZZZ")
	if want := "error: no call of the servers that answer waits under the code ZZZZ-ZZZZ, and one server of yours does not answer"; code != 1 || !strings.Contains(errs, want) || !strings.Contains(errs, "hint: the warnings") {
		t.Errorf("approvals deny = %d, %q; want %q", code, errs, want)
	}
	if code, out, errs := o.command("deny", c.code); code != 0 || !strings.Contains(out, "Denied: ") {
		t.Errorf("approvals deny = %d, %q, %q", code, out, errs)
	}
	if err := o.desk.Close(); err != nil {
		t.Fatal(err)
	}
	plant("b")
	for _, args := range [][]string{{"list"}, {"deny", "ZZZZ-ZZZZ"}, {"open"}} {
		code, out, errs := o.command(args...)
		if code != 1 || out != "" || !strings.Contains(errs, "error: 2 servers of yours do not answer, so calls of theirs may wait\n") || strings.Contains(errs, "No server of yours") {
			t.Errorf("approvals %q = %d, %q, %q; want 1, and that two servers do not answer", args, code, out, errs)
		}
	}
	if got := (&console{found: servers{silent: 2}}).idleText(); strings.Contains(got, "No server") || !strings.Contains(got, "at the servers that answer") {
		t.Errorf("idleText() with silent servers = %q", got)
	}
}

// A server whose configuration leaves out the terminal still has a page.
func TestApprovalsOfThePageOnly(t *testing.T) {
	o := openOffices(t, "shop")[0]
	page, err := approvals.Open(approvals.Options{Calls: o.gate, RunDir: runOf(o), Server: "site", Project: "/home/ann/src/site", Page: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = page.Close() })
	o.env = append(o.env, "BROWSER="+filepath.Join(t.TempDir(), "none"))
	only := fmt.Sprintf("One server of yours (pid %d, site) takes answers on its page only: packs-mcp approvals open --server %d\n", os.Getpid(), os.Getpid())
	code, out, errs := o.command("list")
	if code != 0 || out != "" || errs != only+"No call waits. One server of yours is running.\n" {
		t.Errorf("approvals list = %d, %q, %q; want %q", code, out, errs, only)
	}
	if err := o.desk.Close(); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := o.command("list"); code != 0 || out != "" || errs != only {
		t.Errorf("approvals list without another server = %d, %q, %q; want %q", code, out, errs, only)
	}
	for _, verb := range []string{"approve", "deny", "show"} {
		code, out, errs := o.command(verb, "ZZZZ-ZZZZ")
		if code != 1 || out != "" || !strings.Contains(errs, "where this terminal can answer\n") || !strings.HasSuffix(errs, "hint: "+only) {
			t.Errorf("approvals %s = %d, %q, %q; want the way to the page", verb, code, out, errs)
		}
	}
	code, out, errs = o.command("open")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if text, err := os.ReadFile(lines[len(lines)-1]); code != 0 || err != nil || !strings.Contains(string(text), page.Address()) {
		t.Errorf("approvals open = %d, %q, %q, %v; want the file that leads to the page", code, out, errs, err)
	}
	if got := (&console{found: servers{pageOnly: make([]*terminal.Server, 1)}}).idleText(); strings.Contains(got, "No server") {
		t.Errorf("idleText() = %q", got)
	}
}

// A code is searched for on all servers, and each server answers for its own.
func TestApprovalsOfSeveralServers(t *testing.T) {
	all := openOffices(t, "shop", "site")
	a, b := all[0].call(t, "one"), all[1].call(t, "two")
	if _, out, _ := all[0].command("list"); !strings.Contains(out, fmt.Sprintf("triage? (pid %d, shop)\n", os.Getpid())) || !strings.Contains(out, fmt.Sprintf("triage? (pid %d, site)\n", os.Getpid())) {
		t.Errorf("approvals list = %q, want both servers", out)
	}
	if code, _, errs := all[0].command("approve", b.code); code != 0 {
		t.Errorf("approvals approve = %d, %q", code, errs)
	}
	b.until(t, "allowed")
	a.waits(t)
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"__complete", "approvals", "deny", ""}, all[0].env, strings.NewReader(""), &stdout, &stderr)
	out, errs := stdout.String(), stderr.String()
	if code != 0 || !strings.HasPrefix(out, a.code+"\tRun tool one of pack triage?\n") {
		t.Errorf("completion = %d, %q, %q; want the code %s", code, out, errs, a.code)
	}
}

// The page of the server with an open call opens. Where no browser can run, the
// command names the file.
func TestApprovalsOpen(t *testing.T) {
	all := openOffices(t, "shop", "site")
	for i, o := range all {
		o.env = append(o.env, "BROWSER="+filepath.Join(t.TempDir(), "none"))
		all[i] = o
	}
	open := func() string {
		t.Helper()
		code, out, errs := all[0].command("open")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		file := lines[len(lines)-1]
		if code != 0 || errs != "" || !strings.HasPrefix(out, "No browser could be opened here (") {
			t.Fatalf("approvals open = %d, %q, %q", code, out, errs)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("approvals open names %q: %v", file, err)
		}
		return string(data)
	}
	if page := open(); !strings.Contains(page, all[1].desk.Address()) {
		t.Error("approvals open does not open the page of the newest server")
	}
	all[0].call(t, "one")
	if page := open(); !strings.Contains(page, all[0].desk.Address()) {
		t.Error("approvals open does not open the page of the server with a call that waits")
	}
}

func TestStatement(t *testing.T) {
	for title, want := range map[string]string{
		"Run tool a of pack b?":                   "Run tool a of pack b",
		"Open the documents of pack b? (changed)": "Open the documents of pack b (changed)",
		"Read why?.md from pack b?":               "Read why?.md from pack b",
		"Run tool a":                              "Run tool a",
	} {
		if got := statement(title); got != want {
			t.Errorf("statement(%q) = %q, want %q", title, got, want)
		}
	}
}

func TestCanonicalCode(t *testing.T) {
	for typed, want := range map[string]string{
		"K7QM-2F9X": "K7QM-2F9X", "k7qm2f9x": "K7QM-2F9X", " K7QM 2F9X ": "K7QM-2F9X",
		"": "", "K7QM": "", "K7QM-2F9X-A": "", "K7QM-2F9É": "", "K7QM/2F9X": "", "К7QM-2F9X": "",
	} {
		got, err := canonicalCode(typed)
		if got != want || (want == "") != (err != nil) {
			t.Errorf("canonicalCode(%q) = %q, %v; want %q", typed, got, err, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		text          string
		width, indent int
		want          string
	}{
		{"one two three", 0, 0, "one two three"},
		{"one two three", 7, 2, "one two\n  three"},
		{"one two three", 3, 0, "one\ntwo\nthree"},
		{"onetwothree", 3, 0, "onetwothree"},
		{"", 3, 0, ""},
	} {
		if got := wrap(tc.text, tc.width, tc.indent); got != tc.want {
			t.Errorf("wrap(%q, %d, %d) = %q, want %q", tc.text, tc.width, tc.indent, got, tc.want)
		}
	}
}

func TestSpan(t *testing.T) {
	got := []string{span(-time.Second), span(0), span(59 * time.Second), span(60 * time.Second), span(59*time.Minute + 59*time.Second), span(61 * time.Minute)}
	if diff := cmp.Diff([]string{"0 s", "0 s", "59 s", "1 min", "59 min", "1 h 1 min"}, got); diff != "" {
		t.Errorf("span() differs (-want +got):\n%s", diff)
	}
}

func TestExplained(t *testing.T) {
	err := explained(errors.New("reading the server's answer: EOF"))
	if h, ok := errors.AsType[*cli.HintedError](err); !ok || !strings.Contains(err.Error(), "not known whether the answer arrived") || !strings.Contains(h.Hint, "audit") {
		t.Errorf("explained(a lost answer) = %v", err)
	}
}

// The person who asks is shown apart from what a client says about itself.
func TestOrigin(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct{ client, person, want string }{
		{"x, for grace", "ada", `Asked 3 s ago for ada, by a client that calls itself "x, for grace" (pid 7).`},
		{`x" for grace, by "y`, "ada", `Asked 3 s ago for ada, by a client that calls itself "x\" for grace, by \"y" (pid 7).`},
		{"x, for grace", "", `Asked 3 s ago by a client that calls itself "x, for grace" (pid 7).`},
		{"", "ada", "Asked 3 s ago for ada, by a client without a name (pid 7)."},
	} {
		w := waiting{Call: control.Call{Client: tc.client, Person: tc.person, Asked: now.Add(-3 * time.Second)}, server: &terminal.Server{PID: 7}}
		if got := origin(w, now); got != tc.want {
			t.Errorf("origin of %q for %q = %s, want %s", tc.client, tc.person, got, tc.want)
		}
	}
}

func (idleRunner) Layers(context.Context, []string) []sandbox.Layer { return nil }
