package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// HM-01: every denial leaves exactly one line with its reason, in a real log with a
// valid chain. Denials that no person decides do so up to a bound.
func TestEveryDenialIsRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	b := newBench(t, func(o *Options) { o.Log = log })
	req := toolRun()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	spent := b.ask(req).State
	if _, err := b.answer(req, accept(spent, "deny")); err == nil {
		t.Fatal("deny allows")
	}
	n := 1
	for _, c := range []struct {
		name   string
		ctx    context.Context
		req    call.Request
		answer func() *answers.Answer
	}{
		{"cancelled", cancelled, req, nil},
		{"incomplete", t.Context(), call.Request{}, nil},
		{"bad arguments", t.Context(), with(req, func(r *call.Request) { r.Arguments = call.ParseArguments([]byte("{")) }), nil},
		{"cannot ask", t.Context(), with(req, func(r *call.Request) { r.Caller.CanAsk = false }), nil},
		{"too long", t.Context(), with(req, func(r *call.Request) { r.Run.Command.Args[0] = strings.Repeat("x", 50_000) }), nil},
		{"unsolicited", t.Context(), req, func() *answers.Answer { return accept("", "once") }},
		{"forged", t.Context(), req, func() *answers.Answer { return accept("x.y", "once") }},
		{"spent", t.Context(), req, func() *answers.Answer { return accept(spent, "once") }},
		{"other call", t.Context(), req, func() *answers.Answer { return accept(b.ask(openCall()).State, "once") }},
		{"declined", t.Context(), req, func() *answers.Answer { return answers.FromForm(b.ask(req).State, "decline", nil) }},
		{"malformed", t.Context(), req, func() *answers.Answer { return accept(b.ask(req).State, "always") }},
	} {
		var a *answers.Answer
		if c.answer != nil {
			a = c.answer()
		}
		permit, q, err := b.Check(c.ctx, c.req, a)
		if permit != nil || q != nil || !errors.Is(err, ErrDenied) {
			t.Errorf("%s: Check() = %v, %v, %v, want a denial", c.name, permit, q, err)
		}
		n++
		lines := 0
		for line, err := range audit.Read(path) {
			if err != nil {
				t.Fatal(err)
			}
			if e := line.Entry; e.Decision != "deny" || e.Reason == "" {
				t.Errorf("%s: line %d has decision %q, reason %q", c.name, line.Number, e.Decision, e.Reason)
			}
			lines++
		}
		if lines != n {
			t.Fatalf("%s: %d lines in the log, want %d", c.name, lines, n)
		}
	}
	report, err := audit.Verify(path)
	if err != nil || !report.OK {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
}

func TestWeakSandbox(t *testing.T) {
	for _, c := range []struct {
		have, require sandbox.Level
		refused       bool
	}{
		{sandbox.LevelNone, sandbox.LevelNone, false},
		{sandbox.LevelNone, sandbox.LevelPartial, true},
		{sandbox.LevelPartial, sandbox.LevelFull, true},
		{sandbox.LevelFull, sandbox.LevelPartial, false},
	} {
		b := newBench(t, func(o *Options) { o.Require = c.require })
		b.runner.setLevel(c.have)
		b.runner.box.Hint = "allow user namespaces"
		_, q, err := b.Check(t.Context(), toolRun(), nil)
		if !c.refused {
			if q == nil || err != nil {
				t.Errorf("have %v, require %v: Check() = %v, %v, want a question", c.have, c.require, q, err)
			}
			continue
		}
		weak, ok := errors.AsType[*WeakSandboxError](err)
		if !ok || weak.Have != c.have || weak.Require != c.require || weak.Hint != "allow user namespaces" {
			t.Errorf("have %v, require %v: Check() = %v, want a *WeakSandboxError", c.have, c.require, err)
		}
		b.denied(err, "the configuration requires")
		if n := len(b.log.all()); n != 1 {
			t.Errorf("%d lines in the log, want 1", n)
		}
		if got := b.log.last().Sandbox; got != c.have.String() {
			t.Errorf("the line of the denial has the level %q, want %q", got, c.have)
		}
		// Calls that start nothing need no sandbox.
		if got := b.outcome(openCall()); got != asks {
			t.Errorf("open: %s, want %s", got, asks)
		}
	}
	t.Run("a network of its own", func(t *testing.T) {
		req := with(toolRun(), func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkLoopback })
		for level, want := range map[sandbox.Level]string{
			sandbox.LevelNone: asks, sandbox.LevelFull: asks,
			sandbox.LevelPartial: `it needs the network "loopback", which the sandbox here, of level "partial", cannot give it`,
		} {
			b := newBench(t)
			b.runner.setLevel(level)
			if got := b.outcome(req); got != want {
				t.Errorf("loopback at level %v: %s, want %s", level, got, want)
			}
		}
	})
	t.Run("only the hosts that are named", func(t *testing.T) {
		req := with(toolRun(), reachesHosts)
		const weak = `it needs the network "hosts", which the sandbox here, of level %q, cannot give it`
		for level, want := range map[sandbox.Level]string{
			sandbox.LevelNone: fmt.Sprintf(weak, "none"), sandbox.LevelPartial: fmt.Sprintf(weak, "partial"), sandbox.LevelFull: asks,
		} {
			b := newBench(t)
			b.runner.setLevel(level)
			if got := b.outcome(req); got != want {
				t.Errorf("hosts at level %v: %s, want %s", level, got, want)
			}
		}
	})
	t.Run("what starts nothing does not wait for the probe", func(t *testing.T) {
		b := newBench(t)
		for _, req := range []call.Request{listCall(), openCall(), readCall(), enableCall()} {
			b.outcome(req)
		}
		if err := b.Refuse(openCall(), accept("x.y", "once"), "why not"); err == nil {
			t.Error("Refuse() = nil, want a denial")
		}
		if b.runner.probes != 0 {
			t.Errorf("%d probes, want none", b.runner.probes)
		}
	})
	t.Run("it got weaker after the question", func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Require = sandbox.LevelFull })
		b.runner.setLevel(sandbox.LevelFull)
		q := b.ask(toolRun())
		b.runner.setLevel(sandbox.LevelNone)
		_, err := b.answer(toolRun(), accept(q.State, "once"))
		if _, ok := errors.AsType[*WeakSandboxError](err); !ok {
			t.Errorf("Check() = %v, want a *WeakSandboxError", err)
		}
	})
}

// TestLogThatFails: what cannot be logged does not happen.
func TestLogThatFails(t *testing.T) {
	failing := func(event audit.Event) func(audit.Entry) error {
		return func(e audit.Entry) error {
			if e.Event == event {
				return errDisk
			}
			return nil
		}
	}
	check := func(b *bench, err error) {
		b.t.Helper()
		if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "cannot be written") {
			b.t.Errorf("error = %v, want a denial", err)
		}
		if strings.Contains(err.Error(), errDisk.Error()) {
			b.t.Errorf("error = %v, which tells the client the cause", err)
		}
		if !strings.Contains(b.logged.String(), errDisk.Error()) {
			b.t.Errorf("the server's log is %q, want the cause in it", b.logged)
		}
	}
	t.Run("at a decision", func(t *testing.T) {
		for _, first := range []func() call.Request{toolRun, openCall} {
			b := newBench(t)
			q := b.ask(first())
			b.log.fail = failing(audit.EventDecision)
			permit, err := b.answer(first(), accept(q.State, "chat"))
			if permit != nil {
				t.Error("there is a permit")
			}
			check(b, err)
			b.log.fail = nil
			if got := b.outcome(first()); got != asks {
				t.Errorf("afterwards: %s, want %s: there must be no grant", got, asks)
			}
		}
	})
	t.Run("under a grant", func(t *testing.T) {
		for _, first := range []func() call.Request{toolRun, openCall} {
			b := newBench(t)
			b.approve(first(), queue.Chat)
			b.log.fail = failing(audit.EventDecision)
			permit, _, err := b.Check(t.Context(), first(), nil)
			if permit != nil {
				t.Error("there is a permit")
			}
			check(b, err)
		}
	})
	t.Run("at metadata", func(t *testing.T) {
		b := newBench(t)
		b.log.fail = failing(audit.EventDecision)
		_, _, err := b.Check(t.Context(), listCall(), nil)
		check(b, err)
	})
	t.Run("at a denial", func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Require = sandbox.LevelFull })
		b.log.fail = failing(audit.EventDecision)
		_, _, err := b.Check(t.Context(), toolRun(), nil)
		check(b, err)
		_, err = b.answer(openCall(), accept("", "once"))
		check(b, err)
	})
	t.Run("before the run", func(t *testing.T) {
		b := newBench(t)
		permit := b.approve(toolRun(), queue.Once)
		b.log.fail = failing(audit.EventRunStart)
		_, err := permit.Run(t.Context())
		check(b, err)
		if b.runner.count() != 0 {
			t.Error("it was started")
		}
		b.log.fail = nil
		if _, err := permit.Run(t.Context()); !errors.Is(err, ErrSpent) {
			t.Errorf("second Run() = %v, want %v", err, ErrSpent)
		}
	})
	t.Run("without the store", func(t *testing.T) {
		for _, event := range []audit.Event{audit.EventDecision, audit.EventRunStart} {
			b := newBench(t)
			q := b.ask(toolRun())
			b.log.fail = func(e audit.Entry) error {
				if e.Event == event {
					return fmt.Errorf("%w: no answer", audit.ErrUnavailable)
				}
				return nil
			}
			permit, err := b.answer(toolRun(), accept(q.State, "once"))
			if permit != nil {
				_, err = permit.Run(t.Context())
			}
			denied, ok := errors.AsType[*DeniedError](err)
			if !ok || !denied.Unavailable || b.runner.count() != 0 {
				t.Errorf("at %s: %v, and %d programs were started; want a denial that says that the store is away", event, err, b.runner.count())
			}
		}
	})
	t.Run("after the run", func(t *testing.T) {
		b := newBench(t)
		b.runner.result = &sandbox.Result{Stdout: sandbox.Capture{Head: []byte("secret"), Total: 6}}
		permit := b.approve(toolRun(), queue.Once)
		b.log.fail = failing(audit.EventRunEnd)
		result, err := permit.Run(t.Context())
		if result != nil {
			t.Errorf("Run() = %+v, want the result withheld", result)
		}
		// The error must not say that nothing happened: the model would call again.
		if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "the program ran, but its end could not be recorded") {
			t.Errorf("Run() = %v, want that the program ran", err)
		}
	})
}

func TestRunLines(t *testing.T) {
	b := newBench(t)
	req := toolRun()
	req.Caller.Person = "ada"
	permit := b.approve(req, queue.Once)
	b.runner.before = func() {
		if e := b.log.last(); e.Event != audit.EventRunStart || e.Run != permit.RunID() {
			t.Errorf("last line when the program starts = %s of %q, want %s of %q", e.Event, e.Run, audit.EventRunStart, permit.RunID())
		}
		if !b.log.durable() {
			t.Error("the program starts before the log is on disk")
		}
	}
	b.runner.result = &sandbox.Result{
		ExitCode: -1, Signal: "SIGKILL", Cause: sandbox.CauseTimeout, Duration: 1500 * time.Millisecond, Level: sandbox.LevelPartial,
		Stdout: sandbox.Capture{Total: 7}, Stderr: sandbox.Capture{Total: 3, Head: []byte("hello\ncat: /keys/hunter2: Permission denied\n")},
		Artifacts: []sandbox.Artifact{{Path: "out/made.txt", Size: 5}},
		Usage:     sandbox.Usage{CPU: 1200 * time.Millisecond, MaxRSS: 5 << 20},
		Changes: []*changes.Set{{ID: "c1", Folder: "/site", Changes: []changes.Change{
			{Path: "made.txt", State: changes.Applied},
			{Path: ".envrc", State: changes.Held, Reason: "its name is protected"},
			{Path: "fifo", State: changes.Refused, Reason: "it is a FIFO"},
		}}},
	}
	permit.Hide(func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") })
	if _, err := permit.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !b.log.durable() {
		t.Error("the result is there before the log is on disk")
	}
	code := -1
	common := audit.Entry{
		Sandbox: "none",
		Server:  "test", Chat: "stdio-1", Caller: "ada", Client: "test 1.0", Call: "call-1", Run: permit.RunID(),
		Kind: "run", Tool: "capability_packs_call_tool/greet", Pack: "triage", PackDigest: req.Pack.Digest,
		CallDigest: callDigest(&req, sandbox.LevelNone), ArgsDigest: hexSum([]byte(`{"who":"Ada"}`)), Args: strictjson.Write(map[string]any{"who": "Ada"}),
	}
	decision, start := common, common
	decision.Event, decision.Decision, decision.Channel = audit.EventDecision, "once", "elicitation"
	start.Event, start.Program, start.ProgramDigest = audit.EventRunStart, "/packs/triage/scripts/greet.sh", req.Run.Command.Program.Digest
	start.Dir, start.Network = "/desk/chat", "none"
	end := start
	end.Args = strictjson.Compact{}
	end.Event, end.Sandbox = audit.EventRunEnd, "partial"
	end.ExitCode, end.Signal, end.Cause, end.DurationMS = &code, "SIGKILL", "timeout", 1500
	end.StdoutBytes, end.StderrBytes, end.Artifacts = 7, 3, []string{"out/made.txt"}
	start.Reads, start.Writes = []string{"/packs/triage"}, []string{"/desk/chat"}
	start.Limits = &audit.Limits{
		TimeoutMS: 30_000, CPUMS: 30_000, Memory: 2 << 30, Processes: 256, OpenFiles: 1024, FileSize: 256 << 20, Workspace: 1 << 30, OutputSize: 64 << 20,
	}
	end.Refused = []string{"EACCES use /keys/[redacted]"}
	end.CPUMS, end.MaxRSS = 1200, 5<<20
	made := common
	made.Args = strictjson.Compact{}
	made.Event, made.Dir, made.Set = audit.EventChanges, "/site", "c1"
	made.Applied, made.Held, made.Refused = []string{"made.txt"}, []string{".envrc: its name is protected"}, []string{"fifo: it is a FIFO"}
	if diff := cmp.Diff([]audit.Entry{decision, start, end, made}, b.log.all(), cmp.AllowUnexported(strictjson.Compact{})); diff != "" {
		t.Errorf("lines differ (-want +got):\n%s", diff)
	}
}

func TestRunThatFails(t *testing.T) {
	b := newBench(t)
	b.runner.err = errors.New("no such interpreter")
	permit := b.approve(toolRun(), queue.Once)
	if _, err := permit.Run(t.Context()); !errors.Is(err, b.runner.err) {
		t.Errorf("Run() = %v, want %v", err, b.runner.err)
	}
	if e := b.log.last(); e.Event != audit.EventRunEnd || e.Error != "no such interpreter" || e.ExitCode != nil {
		t.Errorf("last line = %+v, want a run.end with the error", e)
	}

	b = newBench(t)
	b.runner.before = func() { panic("the secret cause") }
	permit = b.approve(toolRun(), queue.Once)
	_, err := permit.Run(t.Context())
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("Run() = %v, want an error without the text of the panic", err)
	}
	if e := b.log.last(); e.Event != audit.EventRunEnd || e.Error == "" {
		t.Errorf("last line = %+v, want a run.end with an error", e)
	}
	if !strings.Contains(b.logged.String(), "the secret cause") {
		t.Errorf("the server's log is %q, want the cause in it", b.logged)
	}

	// A call that is cancelled before there is a process still counts as cancelled.
	b = newBench(t)
	permit = b.approve(toolRun(), queue.Once)
	ctx, cancel := cancelled(t)
	b.runner.before, b.runner.err = cancel, fmt.Errorf("starting program: %w", context.Canceled)
	if _, err := permit.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Run() = %v, want %v", err, context.Canceled)
	}
	if e := b.log.last(); e.Event != audit.EventRunEnd || e.Error == "" || e.Cause != string(sandbox.CauseCancelled) {
		t.Errorf("last line = %+v, want a run.end with the error, and that it was cancelled", e)
	}
}

// A decision by a grant may still be on its way to the disk. If the disk fails before
// the program starts, nothing starts: the line may be lost, even if the next one gets
// there.
func TestLostDecision(t *testing.T) {
	b := newBench(t)
	b.approve(toolRun(), queue.Chat)
	permit, _, err := b.Check(t.Context(), toolRun(), nil)
	if err != nil || permit == nil {
		t.Fatalf("Check() = %v, %v", permit, err)
	}
	started := b.runner.count()
	b.log.mu.Lock()
	b.log.failures++
	b.log.mu.Unlock()
	if _, err := permit.Run(t.Context()); !errors.Is(err, ErrDenied) || b.runner.count() != started {
		t.Errorf("Run() = %v, and started %d programs; want a denial and none", err, b.runner.count()-started)
	}
}

// TestSyncedLines: a person's decision is on disk before anything happens. A grant's
// decision may take a second, but is on disk before a program starts.
func TestSyncedLines(t *testing.T) {
	for _, c := range []struct {
		first  func() call.Request
		asked  bool
		synced bool
	}{
		{openCall, true, true}, {openCall, false, false}, {readCall, false, false},
		{toolRun, true, true}, {toolRun, false, false}, {listCall, false, false},
	} {
		b := newBench(t)
		if c.first().Kind != call.KindList {
			b.approve(c.first(), queue.Chat)
		}
		var permit *Permit
		if !c.asked {
			var err error
			if permit, _, err = b.Check(t.Context(), c.first(), nil); err != nil || permit == nil {
				t.Fatalf("%s: Check() = %v, %v", c.first().Kind, permit, err)
			}
		}
		if got := b.log.synced[len(b.log.synced)-1]; got != c.synced {
			t.Errorf("%s, asked %v: on disk at once = %v, want %v", c.first().Kind, c.asked, got, c.synced)
		}
		e := b.log.last()
		switch {
		case c.first().Kind == call.KindList:
		case c.asked && (e.Decision != "chat" || e.Channel == ""), !c.asked && (e.Decision != "chat" || e.Reason == "" || e.Channel != "grant"):
			t.Errorf("%s, asked %v: line = %+v", c.first().Kind, c.asked, e)
		}
		if permit == nil || !c.first().Kind.Starts() {
			continue
		}
		started := false
		b.runner.before = func() {
			if started = true; !b.log.durable() {
				t.Errorf("%s: the program starts before the decision is on disk", c.first().Kind)
			}
		}
		if _, err := permit.Run(t.Context()); err != nil || !started {
			t.Errorf("%s: Run() = %v, started %v", c.first().Kind, err, started)
		}
	}
}

func TestLoggedArguments(t *testing.T) {
	req := toolRun()
	req.Arguments, req.Logged = call.ParseArguments([]byte(`{"token":"hunter2"}`)), strictjson.Write(map[string]any{"token": "[redacted]"})
	for _, c := range []struct {
		full bool
		req  call.Request
		want string
	}{
		{false, req, `{"token":"[redacted]"}`},
		{true, req, `{"token":"hunter2"}`},
		{false, with(req, func(r *call.Request) { r.Logged = strictjson.Compact{} }), ""},
	} {
		b := newBench(t, func(o *Options) { o.FullArguments = c.full })
		b.approve(c.req, queue.Once)
		if got := b.log.last().Args.String(); got != c.want {
			t.Errorf("full %v: args = %s, want %s", c.full, got, c.want)
		}
		if got, want := b.log.last().ArgsDigest, hexSum([]byte(`{"token":"hunter2"}`)); got != want {
			t.Errorf("args_digest = %s, want %s", got, want)
		}
	}
}

// An answer to a call that cannot be made is recorded, and allows nothing if the call
// can be made again.
func TestRefuse(t *testing.T) {
	b := newBench(t)
	req := toolRun()
	q := b.ask(req)
	answer := accept(q.State, "once")
	err := b.Refuse(call.Request{Caller: req.Caller, Method: req.Method}, answer, "the tool is gone")
	if !errors.Is(err, ErrDenied) {
		t.Fatalf("Refuse = %v, want a denial", err)
	}
	if _, _, err := b.Check(t.Context(), req, answer); !errors.Is(err, ErrDenied) {
		t.Errorf("Check with the spent state = %v, want a denial", err)
	}
}

// Withholding is recorded, and a withheld run does not start.
func TestWithhold(t *testing.T) {
	b := newBench(t)
	req := toolRun()
	q := b.ask(req)
	permit, _, err := b.Check(t.Context(), req, accept(q.State, "once"))
	if err != nil {
		t.Fatal(err)
	}
	if !permit.Covers(req) {
		t.Error("Covers of the same request = false, want true")
	}
	if other := with(toolRun(), func(r *call.Request) { r.Run.Command.Dir = "/elsewhere" }); permit.Covers(other) {
		t.Error("Covers of another folder = true, want false")
	}
	if err := permit.Withhold("the pack changed", ""); !errors.Is(err, ErrDenied) {
		t.Errorf("Withhold = %v, want a denial", err)
	}
	if _, err := permit.Run(t.Context()); !errors.Is(err, ErrSpent) {
		t.Errorf("Run after Withhold = %v, want ErrSpent", err)
	}
}

// However long a call is, the log has it.
func TestTooLongForTheLog(t *testing.T) {
	b := newBench(t)
	b.log.fail = func(e audit.Entry) error {
		if !e.Args.IsZero() {
			return audit.ErrTooLong
		}
		return nil
	}
	req := toolRun()
	req.Arguments = call.ParseArguments([]byte(`{"who":"Ada"}`))
	req.Logged = req.Arguments.Compact()
	err := b.Refuse(req, &answers.Answer{State: "forged"}, "unsolicited")
	if e, ok := errors.AsType[*DeniedError](err); !ok || !strings.HasPrefix(e.Reason, "unsolicited") {
		t.Errorf("Refuse = %v, want the denial itself", err)
	}
	if all := b.log.all(); len(all) != 1 || !all[0].Args.IsZero() || all[0].ArgsDigest == "" {
		t.Errorf("the log has %+v, want one entry without arguments and with their digest", all)
	}
}

// TestLongArguments: a call that nobody has to allow writes a line of bounded length,
// whatever its arguments are. What was started is logged in full, once.
func TestLongArguments(t *testing.T) {
	long := []byte(`{"who":"` + strings.Repeat("A", longestArguments) + `"}`)
	args := func(r *call.Request) {
		r.Arguments = call.ParseArguments(long)
		r.Logged = r.Arguments.Compact()
	}
	size := func(e audit.Entry) int {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	for name, c := range map[string]struct {
		req  call.Request
		full bool
	}{
		"listed":            {with(listCall(), args), false},
		"listed, in full":   {with(listCall(), args), true},
		"nobody to ask":     {with(toolRun(), func(r *call.Request) { args(r); r.Caller.CanAsk = false }), false},
		"a name twice":      {with(toolRun(), func(r *call.Request) { r.Arguments = call.ParseArguments(twice(longestArguments)) }), true},
		"of the wrong kind": {with(toolRun(), func(r *call.Request) { args(r); r.Kind = "x" }), false},
	} {
		b := newBench(t, func(o *Options) { o.FullArguments = c.full })
		b.outcome(c.req)
		e := b.log.last()
		if n := size(e); len(b.log.all()) != 1 || n > 4<<10 || !e.Args.IsZero() || e.ArgsDigest == "" {
			t.Errorf("%s: %d lines, the last of %d bytes, with arguments: %v, with their digest: %v",
				name, len(b.log.all()), n, !e.Args.IsZero(), e.ArgsDigest != "")
		}
		for _, p := range b.History() {
			if len(p.Reason)+len(p.Title) > 4<<10 {
				t.Errorf("%s: the history keeps %d bytes of it", name, len(p.Reason)+len(p.Title))
			}
		}
	}

	b := newBench(t, ruled(rules.Rule{Effect: rules.Allow, Tool: "triage/greet", Where: "c:1"}))
	argv := []string{strings.Repeat("A", longestArguments)}
	permit, _, err := b.Check(t.Context(), with(toolRun(), func(r *call.Request) { args(r); r.Run.Logged = argv }), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := permit.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, e := range b.log.all() {
		switch {
		case e.Event == audit.EventRunStart && e.Args.String() == string(long) && slices.Equal(e.Argv, argv):
			whole++
		case size(e) > 4<<10:
			t.Errorf("the line %q has %d bytes", e.Event, size(e))
		}
		if e.ArgsDigest == "" {
			t.Errorf("the line %q has no digest of the arguments", e.Event)
		}
	}
	if whole != 1 {
		t.Errorf("%d lines have what was started whole, want 1", whole)
	}

	// What can be shown is logged.
	b = newBench(t)
	req := with(toolRun(), func(r *call.Request) { r.Logged = strictjson.Write(strings.Repeat("A", longestArguments-2)) })
	b.approve(req, queue.Once)
	if e := b.log.last(); len(e.Args.String()) != longestArguments {
		t.Errorf("the log has %d bytes of arguments, want %d", len(e.Args.String()), longestArguments)
	}
}

// twice returns an object with the same long name two times.
func twice(n int) json.RawMessage {
	key := `"` + strings.Repeat("A", n) + `":1`
	return json.RawMessage("{" + key + "," + key + "}")
}

// A folder whose files are bound to an answer may change while a call waits for its
// place if that call itself was allowed, but not if only an earlier answer allows it.
func TestCoversWhatItReads(t *testing.T) {
	reads := func(digest string) call.Request {
		return with(execRun(), func(r *call.Request) { r.Run.Reads = []call.File{{Path: "/desk/chat", Digest: digest}} })
	}
	for d, covers := range map[queue.Decision]bool{queue.Once: true, queue.Chat: false} {
		b := newBench(t)
		permit := b.approve(reads("one"), d)
		if d != queue.Once {
			var err error
			if permit, _, err = b.Check(t.Context(), reads("one"), nil); err != nil || permit == nil {
				t.Fatalf("Check after %q = %v, %v, want a permit", d, permit, err)
			}
		}
		if !permit.Covers(reads("one")) {
			t.Errorf("after %q, Covers of the same = false", d)
		}
		if got := permit.Covers(reads("two")); got != covers {
			t.Errorf("after %q, Covers of a folder that changed = %v, want %v", d, got, covers)
		}
	}

	// An answer is bound to what was asked about, and not to what is there when it
	// comes.
	b := newBench(t)
	q := b.ask(reads("one"))
	if permit, _, err := b.Check(t.Context(), reads("two"), accept(q.State, string(queue.Chat))); err != nil || permit == nil {
		t.Fatalf("Check of the answer = %v, %v, want a permit", permit, err)
	}
	for _, digest := range []string{"one", "two"} {
		if got := b.outcome(reads(digest)); got != asks {
			t.Errorf("after an answer for the chat about another folder, a call with %q: %s, want %s", digest, got, asks)
		}
	}
}

// A rule of the user's allows a command that an answer could only allow once.
func TestRuleAllowsOnceOnly(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Rules = []rules.Rule{{Effect: rules.Allow, Kinds: []string{"exec"}, Where: "config.yaml:1"}}
	})
	if got := b.outcome(with(execRun(), func(r *call.Request) { r.Run.OnceOnly = "it can read too much" })); got != allows {
		t.Errorf("with a rule that allows it, the call: %s, want %s", got, allows)
	}
}
