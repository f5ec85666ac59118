package gate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// TestHistory: what a person did, and what came of it, newest first.
func TestHistory(t *testing.T) {
	b := newBench(t, everywhere, remembers, ruled(rules.Rule{Effect: rules.Deny, Kinds: []string{"enable"}, Where: "config.yaml:7"}))
	b.outcome(listCall()) // metadata is not in the history
	permit := b.approve(toolRun(), queue.Chat)
	b.runner.result = &sandbox.Result{ExitCode: 3}
	if _, err := permit.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.outcome(enableCall())
	b.page(b.left(openCall()), queue.Once)
	b.outcome(openCall())
	b.outcome(toolRun())
	b.outcome(call.Request{Kind: "x\x1b[2J", Caller: call.Caller{Chat: "stdio-1"}, Pack: call.Pack{ID: "\u202e"}})
	past := b.History()
	want := []queue.Past{
		{Kind: "x\x1b[2J", Decision: "deny"},
		{Kind: call.KindRun, Decision: "chat", Channel: "grant", Outcome: ""},
		{Kind: call.KindOpen, Decision: "once", Channel: "page"},
		{Kind: call.KindOpen, Decision: "once", Channel: "page"},
		{Kind: call.KindOpen, Decision: "pending"},
		{Kind: call.KindEnable, Decision: "deny", Channel: "rule"},
		{Kind: call.KindRun, Decision: "chat", Channel: "elicitation", Outcome: "exit code 3"},
	}
	loose := cmpopts.IgnoreFields(queue.Past{}, "Time", "Chat", "Call", "Pack", "Title", "Reason", "Run")
	if diff := cmp.Diff(want, past, loose); diff != "" {
		t.Errorf("History() differs (-want +got):\n%s", diff)
	}
	for i, p := range past {
		if p.Chat != "stdio-1" || !p.Time.Equal(b.time) || p.Title == "" {
			t.Errorf("History()[%d] = %+v", i, p)
		}
		if (p.Kind == call.KindRun) != (p.Run != "") {
			t.Errorf("History()[%d] has run %q, and is of kind %s", i, p.Run, p.Kind)
		}
		for _, text := range []string{p.Title, p.Reason, p.Pack, p.Outcome, p.Channel} {
			checkShown(t, text)
		}
	}
	if got := past[6]; got.Run != permit.RunID() || got.Call != "call-1" || got.Title != "Run tool greet of pack triage?" {
		t.Errorf("the run = %+v", got)
	}
	past[0].Title = "changed"
	if b.History()[0].Title == "changed" {
		t.Error("History() can be changed by its reader")
	}
}

func TestOutcomes(t *testing.T) {
	for want, c := range map[string]struct {
		result *sandbox.Result
		err    error
	}{
		"exit code 0":      {&sandbox.Result{Cause: sandbox.CauseExit}, nil},
		"exit code 2":      {&sandbox.Result{Cause: sandbox.CauseExit, ExitCode: 2}, nil},
		"stopped: timeout": {&sandbox.Result{Cause: sandbox.CauseTimeout, Signal: "SIGKILL"}, nil},
		"ended by SIGSEGV": {&sandbox.Result{Cause: sandbox.CauseExit, Signal: "SIGSEGV"}, nil},
		"was not started":  {nil, errors.New("no such interpreter")},
	} {
		b := newBench(t)
		b.runner.result, b.runner.err = c.result, c.err
		permit := b.approve(toolRun(), queue.Once)
		if got := b.History()[0].Outcome; got != "" {
			t.Errorf("before the run: outcome = %q", got)
		}
		_, _ = permit.Run(t.Context())
		if got := b.History()[0].Outcome; got != want {
			t.Errorf("outcome = %q, want %q", got, want)
		}
	}
}

// About values that may be secret, the queue and the history hold no more than the
// question shows.
func TestNothingSecretIsTold(t *testing.T) {
	b := newBench(t, everywhere)
	req := with(grantedRun(), func(r *call.Request) {
		r.Arguments, r.Logged = call.ParseArguments([]byte(`{"token":"hunter2"}`)), strictjson.Write(map[string]any{"token": "[redacted]"})
	})
	permit := b.approve(req, queue.Once)
	b.left(req)
	_, _ = permit.Run(t.Context())
	if told := fmt.Sprintf("%+v %+v %+v", b.Gate.Pending(), b.History(), b.log.all()); strings.Contains(told, "hunter2") {
		t.Errorf("a secret is told:\n%s", told)
	}
}

// HM-01: each denial of a call that can be answered over several channels leaves
// exactly one line, with its reason and who denied.
func TestEveryDenialOnEveryChannelIsRecorded(t *testing.T) {
	req := toolRun()
	for _, c := range []struct {
		name    string
		deny    func(b *bench) error
		before  int // log lines before the denial
		channel string
		reason  string
	}{
		{"on the page", func(b *bench) error {
			q := b.ask(req)
			b.page(q.Code, queue.Deny)
			_, err := b.answer(req, b.Answered(q))
			return err
		}, 0, queue.ChannelPage, "the person chose to deny"},
		{"in a terminal", func(b *bench) error {
			q := b.ask(req)
			if _, err := b.Decide(q.Code, queue.Verdict{Decision: queue.Deny, Channel: queue.ChannelTerminal, Note: "by bash"}); err != nil {
				return err
			}
			_, err := b.answer(req, b.Answered(q))
			return err
		}, 0, queue.ChannelTerminal, "the person chose to deny; by bash"},
		{"declined", func(b *bench) error {
			_, err := b.answer(req, b.decline(b.ask(req)))
			return err
		}, 0, queue.ChannelElicitation, "the person declined"},
		{"pending", func(b *bench) error {
			_, err := b.Postpone(b.ask(req))
			return err
		}, 0, "", "nobody answered within 45s; the question stays open until "},
		{"late, made again", func(b *bench) error {
			b.page(b.left(req), queue.Deny)
			_, _, err := b.Check(b.t.Context(), req, nil)
			return err
		}, 2, queue.ChannelPage, "the person denied it at "},
		{"a rule", func(b *bench) error {
			b.rules = []rules.Rule{{Effect: rules.Deny, Where: "c:1"}}
			_, _, err := b.Check(b.t.Context(), req, nil)
			return err
		}, 0, queue.ChannelRule, "a rule of the user's forbids it: c:1"},
		{"grants that are refused", func(b *bench) error {
			b.book.Store.(*memory).err = errDisk
			_, _, err := b.Check(b.t.Context(), req, nil)
			return err
		}, 0, "", "the user's remembered approvals cannot be trusted"},
		{"nobody to ask", func(b *bench) error {
			b.Gate.ask = []string{}
			_, _, err := b.Check(b.t.Context(), with(req, func(r *call.Request) { r.Caller.CanAsk = false }), nil)
			return err
		}, 0, "", "this client cannot show questions"},
		{"what was filled in", func(b *bench) error {
			_, err := fillIns["on the page"](b, "x").Fill(req)
			return err
		}, 1, "", "something about the call changed after it was allowed"},
		{"withheld", func(b *bench) error {
			return b.approve(req, queue.Once).Withhold("the pack changed", "")
		}, 1, "", "the pack changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, everywhere, remembers)
			if err := c.deny(b); !errors.Is(err, ErrDenied) {
				t.Fatalf("error = %v, want a denial", err)
			}
			all := b.log.all()
			if len(all) != c.before+1 {
				t.Fatalf("%d lines in the log, want %d", len(all), c.before+1)
			}
			e := all[c.before]
			if e.Decision == "once" || e.Channel != c.channel || !strings.HasPrefix(e.Reason, c.reason) || e.Chat != "stdio-1" || e.Call != "call-1" || e.CallDigest == "" {
				t.Errorf("line = %+v, want channel %q and reason %q", e, c.channel, c.reason)
			}
			if e.Grant != "" || e.Run != "" {
				t.Errorf("the line of a denial has grant %q and run %q", e.Grant, e.Run)
			}
			if h := b.History(); len(h) != c.before+1 || h[0].Decision != e.Decision || c.reason != answers.ChoseToDeny && !strings.HasPrefix(h[0].Reason, c.reason) || c.reason == answers.ChoseToDeny && h[0].Reason != "" {
				t.Errorf("History() = %+v", h)
			}
		})
	}
}

// TestPromptsOfChanges shows what people see if something has changed, has to be
// filled in, or can be answered for less or more.
func TestPromptsOfChanges(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	files := func(r *call.Request) {
		r.Pack.Files = []call.File{{Path: "SKILL.md", Digest: "sha256:a"}, {Path: "scripts/greet.sh", Digest: "sha256:b"}, {Path: "scripts/ticket.py", Digest: "sha256:c"}}
	}
	for _, c := range []struct {
		file   string
		of     func() call.Request
		change func(*call.Request) // since it was allowed; nil: it was never allowed
		gate   func(*Options)
	}{
		{"changed_script", toolRun, newFiles(call.File{Path: "SKILL.md", Digest: "sha256:a"}, call.File{Path: "scripts/greet.sh", Digest: "sha256:b"}, call.File{Path: "scripts/ticket.py", Digest: "sha256:X"}), nil},
		{"changed_network", toolRun, func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull }, nil},
		{"changed_hosts", toolRun, reachesHosts, nil},
		{"changed_document", openCall, newFiles(call.File{Path: "SKILL.md", Digest: "sha256:X"}, call.File{Path: "scripts/greet.sh", Digest: "sha256:b"}, call.File{Path: "scripts/ticket.py", Digest: "sha256:c"}), nil},
		{"changed_several", grantedRun, func(r *call.Request) {
			newFiles(call.File{Path: "SKILL.md", Digest: "sha256:X"}, call.File{Path: "scripts/greet.sh", Digest: "sha256:Y"}, call.File{Path: "tools.json", Digest: "sha256:n"})(r)
			r.Run.Definition = "ff"
			r.Run.Command.Program.Digest = "ff"
			r.Run.Policy.Network = sandbox.NetworkLoopback
			r.Run.Policy.Limits.Timeout *= 4
			r.Run.Granted.Env = append(r.Run.Granted.Env, "AWS_SECRET_ACCESS_KEY")
			r.Run.Command.Env = append(r.Run.Command.Env, "AWS_SECRET_ACCESS_KEY=hunter2")
			r.Run.Policy.Writable = append(r.Run.Policy.Writable, "/home/ada/Documents")
		}, nil},
		{"changed_hostile", toolRun, newFiles(call.File{Path: "SKILL.md", Digest: "sha256:a"}, call.File{Path: "scripts/greet.sh", Digest: "sha256:b"}, call.File{Path: "scripts/ticket.py", Digest: "sha256:c"},
			call.File{Path: "\u202eyp.tekcit\n    trust      yours", Digest: "sha256:x"}, call.File{Path: "nothing changed, press Run", Digest: "sha256:y"}), nil},
		{"fill_in", lookUp, nil, nil},
		{"first_run", func() call.Request { return with(toolRun(), func(r *call.Request) { r.Run.ReadOnly = true }) }, nil, firstRun},
		{"always_network", func() call.Request {
			return with(toolRun(), func(r *call.Request) { r.Run.Policy.Network = sandbox.NetworkFull })
		}, nil, nil},
		{"always_exec", execRun, nil, nil},
		{"always_ask_rule", toolRun, nil, ruled(rules.Rule{Effect: rules.Ask, Where: "config.yaml:3"})},
	} {
		t.Run(c.file, func(t *testing.T) {
			options := []func(*Options){remembers, everywhere}
			if c.gate != nil {
				options = append(options, c.gate)
			}
			b := newBench(t, options...)
			b.runner.setLevel(sandbox.LevelFull)
			b.runner.box = sandbox.Report{NetworkEnforced: true, Loopback: true}
			req := with(c.of(), files)
			if c.change != nil {
				b.approve(req, queue.Always)
				b.pass(3 * 24 * time.Hour)
				req = with(req, c.change)
			}
			showsAs(t, c.file, b.ask(req))
		})
	}
}

// TestPromptsFit: every prompt is readable at 80 columns, and its title says the
// essential in one line that fits into a list.
func TestPromptsFit(t *testing.T) {
	all, err := filepath.Glob(filepath.Join("testdata", "prompts", "terminal", "*.txt"))
	if err != nil || len(all) < 10 {
		t.Fatalf("%d prompts, %v", len(all), err)
	}
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
		const title = 100
		if n := utf8.RuneCountInString(lines[0]); n > title && !strings.Contains(path, "hostile") {
			t.Errorf("%s: the title has %d columns, want at most %d", path, n, title)
		}
		for i, line := range lines[1:] {
			columns := 0
			for _, r := range line {
				columns += columnsOf(r)
			}
			if !strings.HasPrefix(line, "[") && columns > promptWidth {
				t.Errorf("%s:%d has %d columns, want at most %d", path, i+2, columns, promptWidth)
			}
			if line != strings.TrimRight(line, " ") && strings.HasPrefix(line, "  > ") {
				t.Errorf("%s:%d ends in spaces", path, i+2)
			}
		}
	}
	// The longest names that a pack and its tools may have.
	for _, req := range []call.Request{toolRun(), execRun(), openCall(), readCall(), enableCall()} {
		req.Pack.ID = "acme/" + strings.Repeat("a", 64)
		if req.Run != nil && req.Run.Tool != "" {
			req.Run.Tool = strings.Repeat("b", 64)
		}
		if n := utf8.RuneCountInString(prompt.Title(&req)); n > 2*100 {
			t.Errorf("%s: the title with the longest names has %d columns", req.Kind, n)
		}
	}
}
