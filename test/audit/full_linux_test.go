package audit_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// A server is the real program with its streams.
type server struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	last  int // id of the last request
}

// start builds the program, or takes the one that PACKS_MCP_BIN names, and
// starts a server without packs.
func start(t *testing.T, home string) *server {
	t.Helper()
	program := os.Getenv("PACKS_MCP_BIN")
	if program == "" {
		// The test cache tracks the files that a test reads, but not what "go
		// build" reads: without this, a result for an older program would be
		// reused.
		for _, dir := range []string{"cmd", "internal", "schemas", "examples", "go.mod", "go.sum"} {
			err := filepath.WalkDir(filepath.Join("..", "..", dir), func(_ string, _ fs.DirEntry, err error) error { return err })
			if err != nil {
				t.Fatal(err)
			}
		}
		program = filepath.Join(t.TempDir(), "packs-mcp")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/packs-mcp/packs-mcp/cmd/packs-mcp").CombinedOutput(); err != nil {
			t.Fatalf("building the program: %v\n%s", err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "PACKS_MCP_HOME=" + home, "PACKS_MCP_SANDBOX_REQUIRE=none"}
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	s.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *server) send(message string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, message+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// ask makes a request and returns the answer as text.
func (s *server) ask(method, params string) string {
	s.t.Helper()
	s.last++
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, s.last, method, params))
	for s.lines.Scan() {
		var answer struct{ ID int }
		if err := json.Unmarshal(s.lines.Bytes(), &answer); err == nil && answer.ID == s.last {
			return s.lines.Text()
		}
	}
	s.t.Fatalf("the server ended before it answered %s: %v", method, s.lines.Err())
	return ""
}

// list makes a call that needs no approval but is recorded.
func (s *server) list() string {
	s.t.Helper()
	return s.ask("tools/call", `{"name":"capability_packs_list","arguments":{}}`)
}

// limit sets the largest size of the files that the server writes.
func (s *server) limit(bytes uint64) {
	s.t.Helper()
	var now unix.Rlimit
	err := unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &now)
	if err == nil {
		err = unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: min(bytes, now.Max), Max: now.Max}, nil)
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		s.t.Skipf("the limits of another process cannot be set here: %v", err)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// HM-01: when the disk is full, a call is denied with a message, and the server
// continues by itself once there is room again. Nothing is lost, and the rest of
// the torn line is recorded.
func TestFullDisk(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "audit.jsonl")
	s := start(t, home)
	if answer := s.list(); strings.Contains(answer, `"isError":true`) {
		t.Fatalf("the first call: %s", answer)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s.limit(uint64(fi.Size()) + 100) // the next line ends in the middle
	for range 3 {
		if answer := s.list(); !strings.Contains(answer, `"isError":true`) || !strings.Contains(answer, "the audit log cannot be written") {
			t.Errorf("a call with a full disk: %s, want a denial that says why", answer)
		}
	}
	if r, err := audit.Verify(path); err != nil || !r.OK || len(r.Problems) == 0 || r.Problems[0].Kind != audit.Torn {
		t.Errorf("Verify() with a full disk = %+v, %v, want a torn line", r, err)
	}
	s.limit(unix.RLIM_INFINITY)
	if answer := s.list(); strings.Contains(answer, `"isError":true`) {
		t.Errorf("a call when there is room again: %s", answer)
	}
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	if s.lines.Scan() {
		t.Errorf("the server said more: %s", s.lines.Text())
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}

	r, err := audit.Verify(path)
	if err != nil || !r.OK || len(r.Problems) != 1 || r.Problems[0].Kind != audit.Torn {
		t.Errorf("Verify() at the end = %+v, %v, want one torn line", r, err)
	}
	var events []string
	for line, err := range audit.Read(path) {
		if err != nil {
			events = append(events, "torn")
			continue
		}
		e := line.Entry
		events = append(events, string(e.Event))
		if e.Event == audit.EventRecovered && (e.Recovered.Torn == nil || e.Recovered.Torn.Bytes != 100 || e.Recovered.Missing != 0) {
			t.Errorf("recovered is %+v, want a fragment of 100 bytes", e.Recovered)
		}
	}
	if got, want := strings.Join(events, " "), "server.start decision torn recovered decision server.stop"; got != want {
		t.Errorf("the log is %q, want %q", got, want)
	}
}
