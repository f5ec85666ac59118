package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

func TestRefusalsAreBoundedByChatAndPerson(t *testing.T) {
	b := newBench(t)
	b.refusals = lines.NewRefusals(time.Hour) // Close writes the lines with counts
	refuse := func(person, chat, code string, times int) {
		for range times {
			b.Refused(lines.Refusal{Caller: call.Caller{Person: person, Chat: chat, Call: "call-1"}, Method: "m", Arguments: call.ParseArguments([]byte(`{"a":1}`)), Code: code, Reason: "why\x1b[2J"})
		}
	}
	written := func() (written, counted map[string]int) {
		written, counted = make(map[string]int), make(map[string]int)
		for _, e := range b.log.all() {
			if e.Event != audit.EventRefusal || e.Reason == "" {
				t.Fatalf("the log has %+v", e)
			}
			if e.Count > 0 {
				counted[e.Caller] += e.Count
				continue
			}
			written[e.Caller+"/"+e.Chat]++
			if e.ArgsDigest == "" || !e.Args.IsZero() || strings.ContainsRune(e.Reason, '\x1b') {
				t.Fatalf("the log has %+v", e)
			}
		}
		return written, counted
	}
	refuse("ada", "chat-0", "not_found", linesOfChat+5)
	for i := range 20 { // each has few arguments, but together they are too many
		refuse("ada", fmt.Sprintf("chat-%d", i+1), "path_denied", linesOfChat/2)
	}
	refuse("bob", "chat-b", "not_found", 3)
	got, counted := written()
	ada := 0
	for who, n := range got {
		if strings.HasPrefix(who, "ada/") {
			ada += n
		}
	}
	if got["ada/chat-0"] != linesOfChat || ada != linesOfPerson || got["bob/chat-b"] != 3 || len(counted) != 0 {
		t.Errorf("lines %v, of ada %d, counted %v", got, ada, counted)
	}
	// An ended chat only frees its own bound; the person's is freed by the hour.
	b.EndChat("chat-0")
	refuse("ada", "chat-0", "not_found", 1)
	b.pass(linesPeriod)
	refuse("ada", "chat-0", "not_found", 7)
	b.Close()
	got, counted = written()
	if want := 5 + 20*linesOfChat/2 - (linesOfPerson - linesOfChat) + 1; got["ada/chat-0"] != linesOfChat+7 || counted["ada"] != want || counted["bob"] != 0 {
		t.Errorf("lines %v, counted %v, want %d", got, counted, want)
	}
	last := b.log.last()
	if last.Reason != "more calls were refused: path_denied 600, not_found 6" {
		t.Errorf("the last line says %q", last.Reason)
	}
	b.Close()
	if b.log.last().Seq != last.Seq || len(b.log.all()) != linesOfPerson+3+7+1 {
		t.Error("Close wrote a line about nothing")
	}
}

// Counts are written after a while, even if no call follows.
func TestRefusalsAreCountedInTime(t *testing.T) {
	b := newBench(t)
	b.refusals = lines.NewRefusals(time.Millisecond)
	for range linesOfChat + 1 {
		b.Refused(lines.Refusal{Caller: call.Caller{Chat: "chat-1"}, Method: "m", Code: "not_found", Reason: "why"})
	}
	for begin := time.Now(); b.log.last().Count == 0; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("no line counts the refusal")
		}
	}
}

// A log that cannot be written does not affect refused calls.
func TestRefusalsWithoutALog(t *testing.T) {
	b := newBench(t)
	b.log.fail = func(audit.Entry) error { return errors.New("the disk is full") }
	b.Refused(lines.Refusal{Caller: call.Caller{Chat: "chat-1"}, Method: "m", Code: "not_found", Reason: "why"})
	if !strings.Contains(b.logged.String(), "could not be recorded") {
		t.Errorf("the server's log has %q", b.logged)
	}
}

// Texts that are cut do not end in the beginning of a token.
func TestCutTextsHaveNoTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	b := newBench(t, func(o *Options) { o.Log = log })
	token := "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
	const maxReason = 500 // of package lines
	across := func(most int) string { return strings.Repeat("/", most-20) + token }
	b.runner.result = &sandbox.Result{Stderr: sandbox.Capture{Head: []byte("cat: '" + across(maxReason-len("EACCES use ")) + "': Permission denied\n")}}
	b.Refused(lines.Refusal{Caller: call.Caller{Chat: "chat-1"}, Method: "m", Pack: across(100), Code: "not_found", Reason: across(maxReason)})
	if _, err := b.approve(toolRun(), queue.Once).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), token[:10]) || strings.Count(string(data), "[redacted]…") != 3 {
		t.Errorf("the log has\n%s", data)
	}
}

// Calls that a rule denies, or that come with a made-up state, are bounded like
// refusals: their number, and the arguments in their lines.
func TestDenialsNobodyDecidesAreBounded(t *testing.T) {
	denies := func(o *Options) { o.Rules = []rules.Rule{{Effect: rules.Deny, Where: "c:1", Kinds: []string{"run"}}} }
	for name, c := range map[string]struct {
		option func(*Options)
		answer *answers.Answer
		change func(*call.Request)
	}{
		"rule":          {option: denies},
		"forged state":  {answer: accept("x.y", "once")},
		"cannot ask":    {change: func(r *call.Request) { r.Caller.CanAsk = false }},
		"weak sandbox":  {option: func(o *Options) { o.Require = sandbox.LevelFull + 1 }},
		"bad arguments": {change: func(r *call.Request) { r.Kind = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			option := c.option
			if option == nil {
				option = func(*Options) {}
			}
			b := newBench(t, option)
			b.refusals = lines.NewRefusals(time.Hour)
			req := toolRun()
			req.Arguments = call.ParseArguments(json.RawMessage(`"` + strings.Repeat("x", 60_000) + `"`))
			req.Logged = req.Arguments.Compact()
			if c.change != nil {
				c.change(&req)
			}
			const more = 7
			for range linesOfChat + more {
				if p, q, err := b.Check(t.Context(), req, c.answer); p != nil || q != nil || !errors.Is(err, ErrDenied) {
					t.Fatalf("Check() = %v, %v, %v, want a denial", p, q, err)
				}
			}
			b.Close()
			written, args, counted := 0, 0, 0
			for _, e := range b.log.all() {
				if args += len(e.Args.String()); e.Count > 0 {
					counted += e.Count
					continue
				}
				if written++; e.Decision != "deny" || e.ArgsDigest == "" {
					t.Fatalf("the log has %+v", e)
				}
			}
			if written != linesOfChat || counted != more || args == 0 || args > linesArguments {
				t.Errorf("%d lines with %d bytes of arguments, %d counted", written, args, counted)
			}
			if last := b.log.last(); last.Reason != "more calls were refused: denied 7" {
				t.Errorf("the last line says %q", last.Reason)
			}
		})
	}
}
