package server

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// What the tests of package httpd need too.
var (
	triage = testdata.Packs("triage")
	hold   = testdata.Packs("hold")

	alive     = servertest.Alive
	decide    = servertest.Decide
	needShell = servertest.NeedShell
	newRunner = servertest.NewRunner
	objects   = servertest.Objects
	plant     = testdata.Plant
	result    = servertest.Result
	says      = servertest.Says
	texts     = servertest.Texts
	until     = servertest.Until
	withMeta  = servertest.WithMeta
)

// The credentials of a site.
const (
	tokenAda   = "token-of-ada-0123456789"
	tokenGrace = "token-of-grace-0123456789"
)

// newSite serves a world over HTTP, for Ada and Grace.
func newSite(t *testing.T, w *world, change ...func(*httpd.Options)) *servertest.Site {
	t.Helper()
	o := httpd.Options{Credentials: []httpd.Credential{{Token: tokenAda, Person: "ada"}, {Token: tokenGrace, Person: "grace"}}}
	for _, f := range change {
		f(&o)
	}
	h, err := httpd.New(w.srv, o)
	if err != nil {
		t.Fatal(err)
	}
	return servertest.Serve(t, h)
}

// A world is a server with packs, a real gate, a real runner and a real audit
// log, and one client on a pipe that speaks raw JSON.
type world struct {
	t      *testing.T
	root   string // of the packs
	audit  string // the log's path
	log    logbuf.Buffer
	lib    *packs.Library
	store  *attach.Store // of attached packs; nil: none
	srv    *Server
	in     *io.PipeWriter
	lines  chan map[string]any
	done   chan error
	next   int
	closed bool
	// answer is how the client's user answers a question; nil: the client cannot ask.
	answer func(message string, schema map[string]any) map[string]any
	asked  []string         // the questions that came
	notes  []map[string]any // the notifications that came
}

// setup configures a world.
type setup struct {
	packs  packs.Options
	store  *attach.Store // nil: no person attaches anything
	server Options
	gate   gate.Options
	// library returns what the server asks for packs in place of the library; nil: the
	// library.
	library func(Library) Library
	// decider returns what the server asks in place of the gate; nil: the gate.
	decider func(Decider) Decider
}

type option func(*setup)

// lookOften makes the server look at the resources that clients subscribe to so often
// that a test need not wait.
func lookOften(s *setup) { s.server.lookEvery = 5 * time.Millisecond }

// newWorld starts a server over the packs of a txtar tree, which are attached
// unless an option says otherwise.
func newWorld(t *testing.T, tree string, options ...option) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir()}
	plant(t, w.root, tree)
	logger := slog.New(slog.NewTextHandler(&w.log, nil))
	w.audit = filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(w.audit, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s := &setup{
		packs: packs.Options{
			Roots:  []packs.Root{{Dir: w.root, Source: "flag", Trust: packs.TrustUser, AttachAll: true}},
			Logger: logger,
		},
		server: Options{
			Version: "test", Logger: logger, Workspaces: t.TempDir(),
			Environ: os.Environ(),
		},
		gate: gate.Options{
			// Without confinement, even if this machine supports it: most of what is
			// tested here does not depend on it. See confined for the rest.
			Runner: newRunner(t, sandbox.LevelNone), Require: sandbox.LevelNone, Log: log, Logger: logger,
			Wait: 10 * time.Second,
		},
	}
	for _, f := range options {
		f(s)
	}
	w.store = s.store
	if w.lib, err = packs.NewLibrary(t.Context(), s.packs, s.store); err != nil {
		t.Fatal(err)
	}
	if s.server.Library == nil {
		s.server.Library = w.lib
	}
	if s.library != nil {
		s.server.Library = s.library(s.server.Library)
	}
	if s.server.Gate, err = gate.New(s.gate); err != nil {
		t.Fatal(err)
	}
	if s.decider != nil {
		s.server.Gate = s.decider(s.server.Gate)
	}
	if w.srv, err = New(s.server); err != nil {
		t.Fatal(err)
	}
	w.connect()
	return w
}

// space is the folder of the workspace of the world's only chat.
func (w *world) space() string { return w.srv.chats.All()[0].Workspaces.First().Dir }

// tellOften makes the server tell clients so often what a call waits for that a test
// need not wait.
func tellOften(s *setup) { s.server.progress = time.Millisecond }

// confined makes programs run at a level, and skips the test if this machine does not
// have it.
func confined(t *testing.T, level sandbox.Level) option {
	t.Helper()
	r := newRunner(t, level)
	if box := r.Probe(t.Context()); box.Level != level {
		what := "landlock"
		if level == sandbox.LevelFull {
			what = "userns"
		}
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), what) {
			t.Fatalf("%s: required by PACKS_MCP_REQUIRE, and the sandbox level here is %v: %+v", what, box.Level, box.Trials)
		}
		t.Skipf("%s: the sandbox level here is %v, and the test needs %v", what, box.Level, level)
	}
	return func(s *setup) { s.gate.Runner, s.gate.Require = r, level }
}

// connect connects the client with a chat of its own.
func (w *world) connect() {
	t := w.t
	w.lines, w.done = make(chan map[string]any, 4096), make(chan error, 1)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w.in = inW
	go func() {
		err := wire.ServeStdio(context.WithoutCancel(t.Context()), w.srv, inR, outW)
		outW.Close()
		w.done <- err
	}()
	go func() {
		defer close(w.lines)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var m map[string]any
			if err := json.Unmarshal(line, &m); err != nil {
				t.Errorf("the server wrote a line that is not JSON: %q", line)
				return
			}
			w.lines <- m
		}
	}()
	t.Cleanup(w.close)
}

// close ends the input and waits for the server. It may be called again.
func (w *world) close() {
	w.in.Close()
	if w.closed {
		return
	}
	w.closed = true
	select {
	case <-w.done:
	case <-time.After(20 * time.Second):
		w.t.Error("the server did not end with its input")
	}
}

func (w *world) send(m map[string]any) {
	w.t.Helper()
	m["jsonrpc"] = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.raw(string(b))
}

func (w *world) raw(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// receive returns the next message that is neither a question nor a notification.
func (w *world) receive() map[string]any {
	w.t.Helper()
	for {
		select {
		case m, ok := <-w.lines:
			if !ok {
				w.t.Fatal("the server closed the connection")
			}
			switch {
			case m["method"] == "elicitation/create":
				w.question(m)
			case m["method"] != nil:
				w.notes = append(w.notes, m)
			default:
				return m
			}
		case <-time.After(20 * time.Second):
			w.t.Fatal("the server does not answer")
		}
	}
}

func (w *world) question(m map[string]any) {
	params := m["params"].(map[string]any)
	message := params["message"].(string)
	w.asked = append(w.asked, message)
	if w.answer == nil {
		w.t.Fatalf("the server asked a client that cannot show questions: %s", message)
	}
	if result := w.answer(message, params["requestedSchema"].(map[string]any)); result != nil {
		w.send(map[string]any{"id": m["id"], "result": result})
	}
}

func (w *world) request(method string, params map[string]any) map[string]any {
	w.t.Helper()
	w.next++
	w.send(map[string]any{"id": w.next, "method": method, "params": params})
	return w.receive()
}

// initialize does the handshake of the older era; it declares elicitation when
// there is somebody to answer.
func (w *world) initialize() map[string]any {
	w.t.Helper()
	caps := map[string]any{}
	if w.answer != nil {
		caps["elicitation"] = map[string]any{}
	}
	reply := w.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": caps,
		"clientInfo": map[string]any{"name": "test", "version": "1"},
	})
	w.send(map[string]any{"method": "notifications/initialized"})
	return result(w.t, reply)
}

// tool calls a tool and returns its structured content.
func (w *world) tool(name string, args map[string]any) (content map[string]any, isError bool) {
	w.t.Helper()
	r := result(w.t, w.request("tools/call", map[string]any{"name": name, "arguments": args}))
	isError, _ = r["isError"].(bool)
	content, ok := r["structuredContent"].(map[string]any)
	if !ok {
		w.t.Fatalf("tools/call %s: no structured content in %v", name, r)
	}
	text := r["content"].([]any)[0].(map[string]any)["text"].(string)
	var same map[string]any
	if err := json.Unmarshal([]byte(text), &same); err != nil {
		w.t.Errorf("tools/call %s: the text is not the same JSON: %q", name, text)
	}
	return content, isError
}

// ok fails the test unless the call of a tool succeeded.
func (w *world) ok(name string, args map[string]any) map[string]any {
	w.t.Helper()
	content, isError := w.tool(name, args)
	if isError {
		w.t.Fatalf("tools/call %s %v failed: %v", name, args, content)
	}
	return content
}

// fails calls a tool that must fail with the code, and returns the error.
func (w *world) fails(code, name string, args map[string]any) map[string]any {
	w.t.Helper()
	content, isError := w.tool(name, args)
	e, _ := content["error"].(map[string]any)
	if !isError || e["code"] != code {
		w.t.Fatalf("tools/call %s %v = %v (isError %v), want the error %s", name, args, content, isError, code)
	}
	if e["message"] == "" {
		w.t.Errorf("tools/call %s %v: the error has no message", name, args)
	}
	return e
}

// enable enables a pack's tools.
func (w *world) enable(pack string, tools ...string) map[string]any {
	w.t.Helper()
	args := map[string]any{"pack_id": pack}
	if len(tools) > 0 {
		args["tools"] = tools
	}
	return w.ok("capability_packs_enable_tools", args)
}

// put writes one file below the folder of packs.
func (w *world) put(path, data string, mode os.FileMode) {
	w.t.Helper()
	path = filepath.Join(w.root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), mode); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		w.t.Fatal(err)
	}
}

// entries returns what the audit log holds.
func (w *world) entries() []audit.Entry {
	w.t.Helper()
	var all []audit.Entry
	for line, err := range audit.Read(w.audit) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, line.Entry)
	}
	return all
}

// modern makes a request of 2026-07-28: it says everything about itself.
func (w *world) modern(method string, params map[string]any) map[string]any {
	w.t.Helper()
	w.next++
	w.send(map[string]any{"id": w.next, "method": method, "params": withMeta(params, w.answer != nil)})
	return w.receive()
}

// limited sets a server's limits.
func limited(l Limits) option { return func(s *setup) { s.server.Limits = l } }

// listed returns the names of tools/list, in order.
func (w *world) listed() []string {
	w.t.Helper()
	var names []string
	for _, tool := range objects(result(w.t, w.request("tools/list", nil))["tools"]) {
		names = append(names, tool["name"].(string))
	}
	return names
}
