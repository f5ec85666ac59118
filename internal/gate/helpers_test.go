package gate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// The bounds of what goes into the log; see package lines.
const (
	linesOfChat      = 100 // about calls on which nobody decided
	linesOfPerson    = 500 // the same, in all chats, in linesPeriod
	linesPeriod      = time.Hour
	linesArguments   = 256 << 10 // bytes of arguments in these lines
	longestArguments = 64 << 10  // bytes of arguments in one line
)

// reachesHosts lets a run reach two hosts.
func reachesHosts(r *call.Request) {
	r.Run.Policy.Network = sandbox.NetworkHosts
	r.Run.Policy.Hosts = []hosts.Host{{Name: "api.github.com", Port: 443}, {Name: "uploads.github.com", Port: 443}}
}

// A runner starts nothing and remembers what it was given.
type runner struct {
	mu      sync.Mutex
	level   sandbox.Level
	box     sandbox.Report // of the probe, except for Level
	probes  int
	started []sandbox.Command
	before  func() // called at the start of a run
	result  *sandbox.Result
	err     error
}

func (r *runner) Probe(ctx context.Context) sandbox.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probes++
	box := r.box
	box.Level = r.level
	return box
}

func (r *runner) Layers(_ context.Context, folders []string) []sandbox.Layer {
	var all []sandbox.Layer
	for _, dir := range folders {
		all = append(all, sandbox.Layer{Folder: dir, Kind: sandbox.LayerOverlay})
	}
	return all
}

func (r *runner) setLevel(l sandbox.Level) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.level = l
	r.box.Loopback = l == sandbox.LevelFull
}

func (r *runner) Run(_ context.Context, _ sandbox.Policy, c sandbox.Command) (*sandbox.Result, error) {
	r.mu.Lock()
	r.started = append(r.started, c)
	before, level := r.before, r.level
	r.mu.Unlock()
	if before != nil {
		before()
	}
	if r.result == nil && r.err == nil {
		return &sandbox.Result{Level: level}, nil
	}
	return r.result, r.err
}

func (r *runner) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.started)
}

// A recorder keeps entries in memory. It encodes them like the real log, so that what
// cannot be written fails here too.
type recorder struct {
	mu      sync.Mutex
	entries []audit.Entry
	synced  []bool
	fail    func(audit.Entry) error // nil: never

	failures int // see Failures
}

func (l *recorder) Append(e audit.Entry) error     { return l.write(e, true) }
func (l *recorder) AppendLazy(e audit.Entry) error { return l.write(e, false) }

func (l *recorder) Failures() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}

func (l *recorder) write(e audit.Entry, sync bool) error {
	if _, err := json.Marshal(e); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(e); err != nil {
			return err
		}
	}
	l.entries, l.synced = append(l.entries, e), append(l.synced, sync)
	return nil
}

// durable reports whether everything that was written is on disk: syncing an entry
// syncs those before it.
func (l *recorder) durable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.synced) == 0 || l.synced[len(l.synced)-1]
}

func (l *recorder) all() []audit.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]audit.Entry(nil), l.entries...)
}

// last returns the newest entry, or an empty one.
func (l *recorder) last() audit.Entry {
	all := l.all()
	if len(all) == 0 {
		return audit.Entry{}
	}
	return all[len(all)-1]
}

// A memory keeps grants like a file, and refuses them like one.
type memory struct {
	mu     sync.Mutex
	grants []grants.Grant
	err    error // returned by both methods
}

func (m *memory) Load() ([]grants.Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.grants), m.err
}

func (m *memory) Update(change func([]grants.Grant) ([]grants.Grant, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	now, err := change(slices.Clone(m.grants))
	if err == nil {
		m.grants = now
	}
	return err
}

// remembers gives a gate a store for answers that always hold.
func remembers(o *Options) { o.Grants = new(memory) }

// A bench is a gate with everything around it accessible to a test.
type bench struct {
	*Gate
	t      *testing.T
	runner *runner
	log    *recorder
	logged *bytes.Buffer // the server's own log
	mu     sync.Mutex
	time   time.Time
}

func newBench(t *testing.T, options ...func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, runner: new(runner), log: new(recorder), logged: new(bytes.Buffer), time: time.Unix(1_800_000_000, 0)}
	o := Options{
		Runner: b.runner, Log: b.log, Logger: slog.New(slog.NewTextHandler(b.logged, nil)),
		Server: "test", Pending: 10 * time.Minute,
		Now: func() time.Time {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.time
		},
	}
	for _, f := range options {
		f(&o)
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.Gate = g
	return b
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.time = b.time.Add(d)
}

// ask makes the first call, which must be answered with a question.
func (b *bench) ask(req call.Request) *Question {
	b.t.Helper()
	permit, q, err := b.Check(b.t.Context(), req, nil)
	if permit != nil || q == nil || err != nil {
		b.t.Fatalf("Check(%s) = %v, %v, %v, want a question", req.Kind, permit, q, err)
	}
	return q
}

// answer makes the second call.
func (b *bench) answer(req call.Request, a *answers.Answer) (*Permit, error) {
	b.t.Helper()
	permit, q, err := b.Check(b.t.Context(), req, a)
	if q != nil {
		b.t.Fatalf("Check(%s, an answer) asks again", req.Kind)
	}
	if (permit == nil) == (err == nil) {
		b.t.Fatalf("Check(%s, an answer) = %v, %v, want exactly one of them", req.Kind, permit, err)
	}
	return permit, err
}

// approve asks and decides.
func (b *bench) approve(req call.Request, d queue.Decision) *Permit {
	b.t.Helper()
	permit, err := b.answer(req, accept(b.ask(req).State, string(d)))
	if err != nil {
		b.t.Fatalf("Check(%s, %s) = %v, want a permit", req.Kind, d, err)
	}
	return permit
}

// outcome returns the result of a first call: "asks", "allows", or the reason of the
// denial.
func (b *bench) outcome(req call.Request) string {
	b.t.Helper()
	permit, q, err := b.Check(b.t.Context(), req, nil)
	switch {
	case permit != nil && q == nil && err == nil:
		return allows
	case permit == nil && q != nil && err == nil:
		return asks
	case permit == nil && q == nil && errors.Is(err, ErrDenied):
		return err.Error()
	}
	b.t.Fatalf("Check(%s) = %v, %v, %v, want exactly one of them, and errors to be denials", req.Kind, permit, q, err)
	return ""
}

const (
	asks   = "asks"
	allows = "allows"
)

func accept(state, decision string) *answers.Answer {
	return answers.FromForm(state, "accept", map[string]any{"decision": decision})
}

// denied fails unless err is a denial with this text in its reason, and the newest
// line of the log says the same.
func (b *bench) denied(err error, reason string) {
	b.t.Helper()
	if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), reason) {
		b.t.Errorf("error = %v, want a denial with %q", err, reason)
	}
	e := b.log.last()
	if e.Event != audit.EventDecision || e.Decision != "deny" || !strings.Contains(e.Reason, reason) {
		b.t.Errorf("last line = %s %q with reason %q, want a denial with %q", e.Event, e.Decision, e.Reason, reason)
	}
}

// toolRun is the call of a pack's tool.
func toolRun() call.Request {
	return call.Request{
		Caller:    call.Caller{Chat: "stdio-1", Client: "test 1.0", Call: "call-1", CanAsk: true, ChatEnd: "until this client closes"},
		Kind:      call.KindRun,
		Method:    "capability_packs_call_tool",
		Pack:      call.Pack{ID: "triage", Dir: "/packs/triage", Trust: call.TrustUser, Digest: "sha256:" + strings.Repeat("ab", 32), About: "Triage incidents."},
		Arguments: call.ParseArguments([]byte(`{"who":"Ada"}`)),
		Logged:    strictjson.Write(map[string]any{"who": "Ada"}),
		Workspace: "/desk/chat",
		Run: &call.Run{
			Tool: "greet", Definition: strings.Repeat("de", 32), About: "Say hello to somebody.",
			Command: sandbox.Command{
				Program: program.Program{
					Name: "./scripts/greet.sh", Path: "/packs/triage/scripts/greet.sh", Resolved: "/packs/triage/scripts/greet.sh",
					Digest: strings.Repeat("01", 32), Interpreters: []program.Interpreter{{Name: "/bin/sh", Path: "/bin/sh", Resolved: "/bin/sh", Digest: strings.Repeat("02", 32)}},
				},
				Args: []string{"Ada"}, Dir: "/desk/chat", Env: []string{"HOME=/desk/chat", "MODE=kind"}, Workspace: "/desk/chat",
			},
			UsualDir: true,
			Policy: sandbox.Policy{
				ReadOnly: []string{"/packs/triage"}, Writable: []string{"/desk/chat"}, Limits: sandbox.DefaultLimits(),
			},
			Env: []string{"MODE=kind"},
		},
	}
}

// grantedRun is the call of a tool that works on a project, with a program in
// somebody's home, and with everything that a configuration can open.
func grantedRun() call.Request {
	r := toolRun()
	p := &r.Run.Command.Program
	*p = program.Program{
		Name: "python3", Path: "/home/ada/.pyenv/versions/3.12.4/bin/python3", Resolved: "/home/ada/.pyenv/versions/3.12.4/bin/python3.12",
		Digest: strings.Repeat("04", 32), Needs: []string{"/home/ada/.pyenv/versions/3.12.4"}, Shim: "/home/ada/.pyenv/shims/python3",
	}
	r.Run.Command.Args = []string{"/packs/triage/sync.py"}
	r.Run.Command.Dir = "/home/ada/site"
	r.Run.Command.Env = append(r.Run.Command.Env, "GITHUB_TOKEN=hunter2")
	r.Run.Project = "/home/ada/site"
	r.Run.Policy.ReadOnly = append(r.Run.Policy.ReadOnly, "/home/ada/.config/gh", "/srv/data")
	r.Run.Policy.Layers = []sandbox.Layer{
		{Folder: "/home/ada/.cache/gh", Kind: sandbox.LayerCopy, Reason: "something is mounted in it"},
		{Folder: "/home/ada/big", Kind: sandbox.LayerReadOnly, Reason: "it is on NFS, and it has more than 20000 names, too many for a copy"},
		{Folder: "/home/ada/site", Kind: sandbox.LayerOverlay},
	}
	p.Links = []paths.Link{{Path: "/home/ada/bin/python3", Target: "../.pyenv/shims/python3"}}
	r.Run.Policy.Links = []paths.Link{{Path: "/home/ada/data", Target: "/srv/data"}}
	r.Run.Granted = call.Granted{
		Env: []string{"GITHUB_TOKEN"}, Unset: []string{"GH_HOST"}, Home: "/home/ada",
		Folders: []string{"/home/ada/.config/gh", "/srv/data", "/home/ada/.cache/gh"},
		LeftOut: []call.Missing{{What: "/home/ada/.netrc", Why: "is not there"}},
	}
	return r
}

// execRun is a command that the model wrote.
func execRun() call.Request {
	r := toolRun()
	r.Kind, r.Method = call.KindExec, "capability_packs_exec_best_effort"
	r.Arguments = call.ParseArguments(json.RawMessage(`{"pack_id":"triage","command":"git","args":["log","--oneline"]}`))
	r.Logged = r.Arguments.Compact()
	r.Run.Tool, r.Run.Definition, r.Run.About, r.Run.Env = "", "", "", nil
	r.Run.Command.Program = program.Program{Name: "git", Path: "/usr/bin/git", Resolved: "/usr/bin/git", Digest: strings.Repeat("03", 32)}
	r.Run.Command.Args = []string{"log", "--oneline"}
	r.Run.Command.Env = []string{"HOME=/desk/chat"}
	return r
}

// callOf is a request of another kind than run.
func callOf(kind call.Kind, args string) call.Request {
	r := toolRun()
	r.Kind, r.Run, r.Workspace = kind, nil, ""
	r.Method = map[call.Kind]string{
		call.KindList: "capability_packs_list", call.KindOpen: "capability_packs_open_docs",
		call.KindRead: "capability_packs_read_file", call.KindEnable: "capability_packs_enable_tools",
	}[kind]
	r.Arguments = call.ParseArguments(json.RawMessage(args))
	r.Logged = r.Arguments.Compact()
	switch kind {
	case call.KindList:
		r.Pack = call.Pack{}
	case call.KindRead:
		r.Path = "docs/steps.md"
	case call.KindEnable:
		r.Tools = []string{"greet", "close_ticket"}
	}
	return r
}

func openCall() call.Request { return callOf(call.KindOpen, `{"pack_id":"triage"}`) }
func readCall() call.Request {
	return callOf(call.KindRead, `{"pack_id":"triage","path":"docs/steps.md"}`)
}
func enableCall() call.Request { return callOf(call.KindEnable, `{"pack_id":"triage"}`) }
func listCall() call.Request   { return callOf(call.KindList, `{}`) }

func workspaceRead() call.Request {
	r := callOf(call.KindRead, `{"pack_id":"workspace","path":"docs/steps.md"}`)
	r.Pack, r.Workspace = call.Pack{ID: "workspace", Trust: call.TrustUser}, "/desk/chat"
	return r
}

// copyOf returns a request that shares nothing with r.
func copyOf(r call.Request) call.Request { return call.Freeze(r, 0).Request }

// with returns a request that is changed in one way.
func with(r call.Request, change func(*call.Request)) call.Request {
	r = copyOf(r)
	change(&r)
	return r
}

// The layout and texts of questions; see package prompt.
const (
	promptWidth  = 80
	labelWidth   = 12
	hanging      = "  "
	formMarker   = "▸ "
	formRow      = 72 // columns of each of a form's first three lines
	maxChanges   = 12
	ownWorkspace = "the chat's workspace" // in facts, see package call
)

// textOf returns a question as a terminal shows it.
func textOf(q *Question) string { return q.Card.Text(promptWidth) }

// columnsOf returns how many columns a character takes at most in a terminal.
func columnsOf(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100: // where wide characters begin
		return 2
	}
	return 1
}

// hexSum returns the SHA-256 digest of b in hex.
func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// longestValue is how many bytes a person can fill in.
const longestValue = 16 << 10

var errDisk = errors.New("disk full")

// runBy makes the request's program a script that another program runs.
func runBy(r *call.Request, path, digest string) {
	r.Run.Command.Program.Interpreters = []program.Interpreter{{Name: path, Path: path, Resolved: path, Digest: digest}}
}
