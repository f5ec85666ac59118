package auditcmd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
)

var times = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?`)

// run runs a command line, as the program does, and returns its status.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	env := &cli.Env{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	return env.Run(ctx, env.Root(Commands(env)...), args)
}

// auditHome returns a home whose audit log has entries, and a log for writing more.
func auditHome(t *testing.T, maxSize int64, entries ...audit.Entry) (environ []string, log *audit.Log) {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit.jsonl"), audit.Options{MaxSize: maxSize})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	for _, e := range entries {
		if err := log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"HOME=" + dir, "PACKS_MCP_HOME=" + dir, "LocalAppData=" + dir, "AppData=" + dir}, log
}

// auditCommand runs "packs-mcp audit" and returns its status and what it wrote,
// with TIME and HASH for times and hashes.
func auditCommand(t *testing.T, environ []string, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := run(t.Context(), append([]string{"audit"}, args...), environ, strings.NewReader(""), &out, &out)
	text := times.ReplaceAllString(out.String(), "TIME")
	return code, regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(text, "HASH")
}

func crashed() []audit.Entry {
	code := 3
	return []audit.Entry{
		{Event: audit.EventServerStart, Server: "one", Reason: "packs-mcp 1"},
		{Event: audit.EventDecision, Server: "one", Chat: "c1", Kind: "run", Pack: "acme/lint", Tool: "call/fmt", Decision: "always", Channel: "page", Grant: "g1", Changed: []string{"scripts/a.sh changed"}},
		{Event: audit.EventRunStart, Server: "one", Run: "run-A", Kind: "run", Pack: "acme/lint", Tool: "call/fmt", Program: "/bin/fmt", Dir: "/w\u202e", Sandbox: "full"},
		{Event: audit.EventDecision, Server: "two", Chat: "c2", Kind: "open", Pack: "beta", Tool: "open", Decision: "deny", Channel: "rule", Reason: "a rule forbids it\x1b[2J", Rule: "config.yaml:3"},
		{Event: audit.EventServerStart, Server: "two"},
		{Event: audit.EventRunStart, Server: "two", Run: "run-B", Kind: "run", Pack: "beta", Tool: "call/x", Program: "/bin/x", Dir: "/w"},
		{Event: audit.EventRunEnd, Server: "two", Run: "run-B", Kind: "run", Pack: "beta", Tool: "call/x", Program: "/bin/x", ExitCode: &code, DurationMS: 12},
		{Event: audit.EventRunStart, Server: "two", Run: "run-C", Kind: "run", Pack: "beta", Tool: "call/x", Program: "/bin/x", Dir: "/w"},
		{Event: audit.EventRevoke, Server: "two", Pack: "beta", Grant: "g1", Channel: "command"},
		{Event: audit.EventServerStop, Server: "two"},
	}
}

// The log shows a crash between the start and the end of a run.
func TestAuditShowsCrashes(t *testing.T) {
	environ, _ := auditHome(t, 1200, crashed()...)
	code, got := auditCommand(t, environ, "show")
	want := `     1  TIME  server.start one (packs-mcp 1)
     2  TIME  decision     run acme/lint (call/fmt) → always by page grant g1 changed since it was allowed: scripts/a.sh changed
     3  TIME  run.start    run acme/lint (call/fmt) /bin/fmt in /w\u202e, sandbox full — it has no end: the server was killed, or still runs it; another server began at TIME
     4  TIME  decision     open beta (open) → deny by rule (a rule forbids it\x1b[2J) rule config.yaml:3
     5  TIME  server.start two
     6  TIME  run.start    run beta (call/x) /bin/x in /w, sandbox unknown
     7  TIME  run.end      run beta (call/x) /bin/x: exit 3 after 12 ms
     8  TIME  run.start    run beta (call/x) /bin/x in /w, sandbox unknown — it has no end: its server stopped at TIME without recording one
     9  TIME  revoke       beta by command grant g1
    10  TIME  server.stop  two
`
	if diff := cmp.Diff(want, got); code != 0 || diff != "" {
		t.Errorf("audit show: status %d (-want +got):\n%s", code, diff)
	}
	code, got = auditCommand(t, environ, "verify")
	got = regexp.MustCompile(`(?m)^ok: 10 entries in \d files, .*audit-000000000001\.jsonl to audit\.jsonl$`).ReplaceAllString(got, "OK")
	want = `OK
from: 1 TIME
to: 10 TIME
last: 10 HASH
note: run-A of pack acme/lint (call/fmt) began at TIME, entry 3: it has no end: the server was killed, or still runs it; another server began at TIME
note: run-C of pack beta (call/x) began at TIME, entry 8: it has no end: its server stopped at TIME without recording one
`
	if diff := cmp.Diff(want, got); code != 0 || diff != "" {
		t.Errorf("audit verify: status %d (-want +got):\n%s", code, diff)
	}
	if code, got = auditCommand(t, environ, "verify", "--json"); code != 0 || strings.Count(got, `"missing": "end"`) != 2 {
		t.Errorf("audit verify --json: status %d, %s, want two runs without an end", code, got)
	}
}

func TestAuditShowFilters(t *testing.T) {
	environ, _ := auditHome(t, 1200, crashed()...)
	for args, want := range map[string]string{
		"--pack acme/lint":           "2 3",
		"--pack LINT":                "2 3",
		"--pack beta --event revoke": "9",
		"--decision deny":            "4",
		"--run run-B":                "6 7",
		"--chat c":                   "2 4",
		"--chat c1":                  "2",
		"--since 1h -n 2":            "9 10",
		"--since 1h --pack other":    "The",
		"--last 1":                   "10",
		"--decision deny --run run-": "The", // The log has no such event.
	} {
		code, got := auditCommand(t, environ, append([]string{"show"}, strings.Fields(args)...)...)
		var seqs []string
		for line := range strings.Lines(got) {
			seqs = append(seqs, strings.Fields(line)[0])
		}
		if strings.Join(seqs, " ") != want || code != 0 {
			t.Errorf("audit show %s = status %d, entries %v, want %v", args, code, seqs, want)
		}
	}
}

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 30, 0, 0, time.FixedZone("x", 3600))
	for in, want := range map[string]string{
		"90s": "2026-03-10T12:28:30+01:00", "2h": "2026-03-10T10:30:00+01:00", "7d": "2026-03-03T12:30:00+01:00", "1w": "2026-03-03T12:30:00+01:00",
		"2026-03-01": "2026-03-01T00:00:00+01:00", "2026-03-01 08:15": "2026-03-01T08:15:00+01:00", "08:15": "2026-03-10T08:15:00+01:00",
		"2026-03-01T08:15:00Z": "2026-03-01T08:15:00Z",
	} {
		if got, ok := parseSince(in, now); !ok || got.Format(time.RFC3339) != want {
			t.Errorf("parseSince(%q) = %v, %v, want %v", in, got.Format(time.RFC3339), ok, want)
		}
	}
	for _, in := range []string{"", "yesterday", "-2h", "d", "-1d", "999999999d", "25:00", "2026-13-01"} {
		if got, ok := parseSince(in, now); ok {
			t.Errorf("parseSince(%q) = %v, want nothing", in, got)
		}
	}
}

// follow begins with the last events and continues with new ones, even after the log
// was renamed.
func TestAuditFollow(t *testing.T) {
	environ, log := auditHome(t, 1200, crashed()...)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, w := io.Pipe()
	var status int
	var stderr bytes.Buffer
	var done sync.WaitGroup
	done.Go(func() {
		status = run(ctx, []string{"audit", "follow", "--pack", "beta", "-n", "2"}, environ, strings.NewReader(""), w, &stderr)
		w.Close()
	})
	lines := bufio.NewScanner(r)
	for i, want := range []int{8, 9, 12, 14, 16, 18, 20} {
		if i >= 2 { // two more entries, one of which matches
			for _, pack := range []string{"alpha", "beta"} {
				if err := log.Append(audit.Entry{Event: audit.EventAttach, Pack: pack, Reason: strings.Repeat("x", 300)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !lines.Scan() || strings.Fields(lines.Text())[0] != fmt.Sprint(want) {
			t.Fatalf("line %d is %q, %v, %s; want entry %d", i, lines.Text(), lines.Err(), stderr.String(), want)
		}
	}
	cancel()
	for lines.Scan() {
		t.Errorf("there is more: %q", lines.Text())
	}
	if done.Wait(); status != 0 || stderr.Len() > 0 {
		t.Errorf("audit follow ended with status %d and %q, want 0 and nothing", status, stderr.String())
	}
}
