package httpd

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/server"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// The tests of package server need these too.
var (
	triage = testdata.Packs("triage")
	hold   = testdata.Packs("hold")

	alive     = servertest.Alive
	decide    = servertest.Decide
	needShell = servertest.NeedShell
	objects   = servertest.Objects
	result    = servertest.Result
	says      = servertest.Says
	texts     = servertest.Texts
	until     = servertest.Until
	withMeta  = servertest.WithMeta
)

// A world is a host: a server with packs, a real gate, a real runner and a real
// audit log.
type world struct {
	t          *testing.T
	root       string // of the packs
	workspaces string // folder of the chats' workspaces
	audit      string // the log's path
	log        logbuf.Buffer
	gate       *gate.Gate
	srv        *server.Server
}

// setup configures a world.
type setup struct {
	server server.Options
	gate   gate.Options
}

type option func(*setup)

// everywhere shows questions on the page and in the terminal too, and sets how
// long calls wait.
func everywhere(wait time.Duration) option {
	return func(s *setup) {
		s.gate.Channels = []string{queue.ChannelElicitation, queue.ChannelPage, queue.ChannelTerminal}
		s.gate.Wait = wait
	}
}

// everyFile allows every file to be read.
func everyFile() option {
	return func(s *setup) {
		s.gate.Rules = []rules.Rule{{Effect: rules.Allow, Kinds: []string{"read"}, Where: "config.yaml:1"}}
	}
}

// newWorld returns a server with the packs of a txtar tree, all attached.
func newWorld(t *testing.T, tree string, options ...option) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir(), workspaces: t.TempDir(), audit: filepath.Join(t.TempDir(), "audit.jsonl")}
	testdata.Plant(t, w.root, tree)
	logger := slog.New(slog.NewTextHandler(&w.log, nil))
	log, err := audit.Open(w.audit, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	lib, err := packs.NewLibrary(t.Context(), packs.Options{
		Roots:  []packs.Root{{Dir: w.root, Source: "flag", Trust: packs.TrustUser, AttachAll: true}},
		Logger: logger,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{
		server: server.Options{
			Version: "test", Library: lib, Logger: logger, Workspaces: w.workspaces,
			Environ: os.Environ(),
		},
		gate: gate.Options{Runner: servertest.NewRunner(t, sandbox.LevelNone), Require: sandbox.LevelNone, Log: log, Logger: logger, Wait: 10 * time.Second},
	}
	for _, f := range options {
		f(s)
	}
	if w.gate, err = gate.New(s.gate); err != nil {
		t.Fatal(err)
	}
	s.server.Gate = w.gate
	if w.srv, err = server.New(s.server); err != nil {
		t.Fatal(err)
	}
	return w
}

// put writes one file below the folder of packs.
func (w *world) put(path, data string, mode os.FileMode) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.root, filepath.FromSlash(path)), []byte(data), mode); err != nil {
		w.t.Fatal(err)
	}
}

// chats returns how many chats there are.
func (w *world) chats() int { return len(w.srv.ChatViews(w.t.Context())) }

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

// awaitLog waits until the audit log has an event.
func (w *world) awaitLog(event audit.Event) {
	w.t.Helper()
	until(w.t, "the log has "+string(event), func() bool {
		for _, e := range w.entries() {
			if e.Event == event {
				return true
			}
		}
		return false
	})
}

// awaitText waits until the server's log contains text.
func (w *world) awaitText(text string) {
	w.t.Helper()
	until(w.t, "the log has "+text, func() bool { return strings.Contains(w.log.String(), text) })
}

// pending waits until so many calls wait for a person.
func (w *world) pending(n int) []queue.Pending {
	w.t.Helper()
	for late := time.After(20 * time.Second); ; {
		changed := w.gate.Changes()
		all := w.gate.Pending()
		if len(all) == n {
			return all
		}
		select {
		case <-changed:
		case <-late:
			w.t.Fatalf("%d calls wait for a person, want %d: %+v", len(all), n, all)
		}
	}
}

// decide answers a pending call as the page would.
func (w *world) decide(code string, d queue.Decision) {
	w.t.Helper()
	if _, err := w.gate.Decide(code, queue.Verdict{Decision: d, Channel: queue.ChannelPage}); err != nil {
		w.t.Fatalf("Decide(%q, %q) = %v", code, d, err)
	}
}

// code returns the code of a reply's error; empty if there is none.
func code(t *testing.T, reply map[string]any) string {
	t.Helper()
	content, _ := result(t, reply)["structuredContent"].(map[string]any)
	e, _ := content["error"].(map[string]any)
	c, _ := e["code"].(string)
	return c
}

// folders returns the workspaces in which a person's programs ran in chats of a
// transport.
func (w *world) folders(person, transport string) []string {
	w.t.Helper()
	var all []string
	for _, e := range w.entries() {
		if e.Event == audit.EventRunStart && e.Caller == person && strings.HasPrefix(e.Chat, transport) {
			all = append(all, e.Dir)
		}
	}
	return all
}

// pid waits until a person's program runs in a chat of a transport.
func (w *world) pid(person, transport string) (pid string) {
	w.t.Helper()
	until(w.t, "a program of "+person+" runs", func() bool {
		for _, dir := range w.folders(person, transport) {
			if data, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
				pid = strings.TrimSpace(string(data))
			}
		}
		return pid != ""
	})
	return pid
}

// release lets a person's programs finish.
func (w *world) release(person string) {
	w.t.Helper()
	for _, dir := range w.folders(person, "") {
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A site serves a world over HTTP, on a real socket.
type site struct {
	*servertest.Site
	w    *world
	http *Server
}

const (
	tokenAda   = "token-of-ada-0123456789"
	tokenGrace = "token-of-grace-0123456789"
)

// newSite serves a world over HTTP, for Ada and Grace.
func newSite(t *testing.T, w *world, change ...func(*Options)) *site {
	t.Helper()
	return newSiteOf(t, w, w.srv, change...)
}

// newSiteOf is newSite with a host in front of the world's.
func newSiteOf(t *testing.T, w *world, host Host, change ...func(*Options)) *site {
	t.Helper()
	o := Options{Credentials: []Credential{{Token: tokenAda, Person: "ada"}, {Token: tokenGrace, Person: "grace"}}}
	for _, f := range change {
		f(&o)
	}
	h, err := New(host, o)
	if err != nil {
		t.Fatal(err)
	}
	return &site{Site: servertest.Serve(t, h), w: w, http: h}
}
