package audit_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// maxSize makes the log rotate about every hundred entries.
const maxSize = 32 << 10

// TestMain lets the test binary run as a separate writer; see writer.
func TestMain(m *testing.M) {
	if path := os.Getenv("AUDIT_TEST_WRITER"); path != "" {
		if err := write(path, os.Getenv("AUDIT_TEST_RUNS")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// write records runs as a server does, as many as requested or until it is
// killed, and prints each entry that is on disk.
func write(path, runs string) error {
	count, err := strconv.Atoi(runs)
	if err != nil {
		return err
	}
	server := "pid-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	log, err := audit.Open(path, audit.Options{MaxSize: maxSize, Server: server})
	if err != nil {
		return err
	}
	for i := range count {
		run := fmt.Sprintf("run-%s-%d", server, i)
		for _, e := range []audit.Entry{
			{Event: audit.EventDecision, Decision: "once", Channel: "page", Run: run, Reason: strings.Repeat("x", i%300)},
			{Event: audit.EventRunStart, Run: run},
			{Event: audit.EventRunEnd, Run: run},
			{Event: audit.EventDecision, Decision: "deny", Run: run, Reason: "a fifth of the calls"},
		}[:3+max(0, i%5-3)] {
			if err := log.Append(e); err != nil {
				return err
			}
			fmt.Printf("%s %s %s\n", e.Event, e.Decision, run)
		}
	}
	return log.Close()
}

func writer(t *testing.T, path string, runs int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.timeout=60s")
	cmd.Env = append(os.Environ(), "AUDIT_TEST_WRITER="+path, "AUDIT_TEST_RUNS="+strconv.Itoa(runs))
	cmd.Stderr = t.Output()
	return cmd
}

// said is what writers reported to be on disk.
type said struct {
	mu    sync.Mutex
	lines map[string]bool
}

func (s *said) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[line] = true
}

// judge verifies the log: only torn lines may be wrong, no run may have an end
// without a start, and every reported entry must be there.
func judge(t *testing.T, path string, s *said) audit.Report {
	t.Helper()
	r, err := audit.Verify(path)
	if err != nil {
		t.Fatalf("Verify(%q) = %v, want no error", path, err)
	}
	if !r.OK {
		t.Errorf("Verify(%q) = %v, want nothing but torn lines", path, r.Problems)
	}
	for _, run := range r.Runs {
		if !run.Started() {
			t.Errorf("the log has the end of %s without its start", run.Line.Entry.Run)
		}
	}
	there := make(map[string]bool)
	for line, err := range audit.Read(path) {
		if _, torn := errors.AsType[*audit.LineError](err); torn {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		e := line.Entry
		there[fmt.Sprintf("%s %s %s", e.Event, e.Decision, e.Run)] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range s.lines {
		if !there[line] {
			t.Errorf("the log lacks %q, which was on the disk", line)
		}
	}
	return r
}

// Ten servers write a thousand calls to one log while it rotates continuously: each entry
// is there once, and the chain is intact.
func TestTenProcesses(t *testing.T) {
	const processes, runs = 10, 100
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s := &said{lines: make(map[string]bool)}
	var wg sync.WaitGroup
	for range processes {
		cmd := writer(t, path, runs)
		wg.Go(func() {
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("a writer ended with %v", err)
			}
			for line := range strings.Lines(string(out)) {
				s.add(strings.TrimSpace(line))
			}
		})
	}
	wg.Wait()
	r := judge(t, path, s)
	if len(r.Problems) > 0 || len(r.Runs) > 0 || r.Entries != len(s.lines) || r.Entries < 3*processes*runs || len(r.Files) < 10 {
		t.Errorf("%d entries in %d files, %d of them said, problems %v, runs without an end %d; want all of them and no problem",
			r.Entries, len(r.Files), len(s.lines), r.Problems, len(r.Runs))
	}
}

// kills returns how often a writer is killed; PACKS_MCP_AUDIT_KILLS sets another
// number, for a longer run.
func kills(t *testing.T) int {
	text := os.Getenv("PACKS_MCP_AUDIT_KILLS")
	if text == "" {
		return 200
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("PACKS_MCP_AUDIT_KILLS is %q, want a number", text)
	}
	return n
}

// Writers are killed at random moments while others write the same log.
func TestKilledProcesses(t *testing.T) {
	const slots = 8
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s := &said{lines: make(map[string]bool)}
	tickets := make(chan int, slots)
	var wg sync.WaitGroup
	for range slots {
		wg.Go(func() {
			for i := range tickets {
				kill(t, writer(t, path, 1<<30), s, rand.N(25))
				if i%100 == 50 {
					judge(t, path, &said{})
				}
			}
		})
	}
	n := kills(t)
	for i := range n {
		tickets <- i
	}
	close(tickets)
	wg.Wait()
	r := judge(t, path, s)
	torn := len(r.Problems)

	// The next server continues, and torn lines stay recorded.
	log, err := audit.Open(path, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(audit.Entry{Event: audit.EventServerStart}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if after := judge(t, path, s); len(after.Problems) < torn {
		t.Errorf("%d torn lines after, %d before", len(after.Problems), torn)
	}
	t.Logf("%d kills: %d entries in %d files, %d torn lines, %d runs without an end", n, r.Entries, len(r.Files), torn, len(r.Runs))
}

// kill starts a writer, and kills it a moment after it has printed a number of
// lines.
func kill(t *testing.T, cmd *exec.Cmd, s *said, lines int) {
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	scan := bufio.NewScanner(out)
	for range lines {
		if !scan.Scan() {
			t.Errorf("a writer ended by itself: %v", scan.Err())
			break
		}
		s.add(scan.Text())
	}
	// The random number of rounds makes the moment random.
	for range rand.N(200_000) {
		_ = time.Now()
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	for scan.Scan() { // what it printed before it died; a line is one write
		s.add(scan.Text())
	}
	_ = cmd.Wait() // killed
}
