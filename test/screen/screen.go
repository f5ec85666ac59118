//go:build unix

// Package screen runs the program on a terminal, for the tests of several packages: it types,
// and reads the screen.
//
// It does not know the program's words, and emulates no terminal: the screen is every byte
// that the program wrote.
package screen

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A Session is the program on a terminal, with a person at it.
type Session struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	text strings.Builder // everything that was on the screen
	more chan struct{}
	read chan struct{} // closed when everything is in text
	seen int           // how much of text the person has read
}

// Start starts packs-mcp, found in PATH, on a new terminal. If there is no terminal, it skips
// the test.
func Start(t *testing.T, env []string, dir string, args ...string) *Session {
	t.Helper()
	return Program(t, env, dir, "packs-mcp", args...)
}

// Program is Start for another program, such as a shell.
func Program(t *testing.T, env []string, dir, program string, args ...string) *Session {
	t.Helper()
	return Sized(t, 50, 200, env, dir, program, args...)
}

// Sized is Program on a terminal with this many rows and columns.
func Sized(t *testing.T, rows, cols uint16, env []string, dir, program string, args ...string) *Session {
	t.Helper()
	s := &Session{t: t, cmd: exec.Command(program, args...), more: make(chan struct{}, 1), read: make(chan struct{})}
	s.cmd.Env, s.cmd.Dir = env, dir
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: rows, Cols: cols})
	if err != nil {
		t.Skipf("pseudo-terminal: %v", err)
	}
	s.tty = tty
	t.Cleanup(func() { tty.Close(); _ = s.cmd.Process.Kill() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				close(s.more)
				close(s.read)
				return
			}
		}
	}()
	return s
}

// Until reads until some words are on the screen, and returns what it read.
func (s *Session) Until(words string) string {
	s.t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		fresh := s.text.String()[s.seen:]
		s.mu.Unlock()
		if i := strings.Index(fresh, words); i >= 0 {
			s.seen += i + len(words)
			return fresh[:i+len(words)]
		}
		select {
		case _, ok := <-s.more:
			if !ok && !strings.Contains(s.Screen()[s.seen:], words) {
				s.t.Fatalf("the program ended before %q; since the last question it wrote\n%s", words, fresh)
			}
		case <-timeout:
			s.t.Fatalf("%q does not come; since the last question there was\n%s", words, fresh)
		}
	}
}

// Screen returns everything that was on the screen.
func (s *Session) Screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Enter types text.
func (s *Session) Enter(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, text); err != nil {
		s.t.Fatal(err)
	}
}

// Ended waits for the program's end and its last output, and returns its status.
func (s *Session) Ended() int {
	s.t.Helper()
	err := s.cmd.Wait()
	select {
	case <-s.read:
	case <-time.After(5 * time.Second): // another process has the terminal, too
	}
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	if err != nil {
		s.t.Errorf("the program ended with %v", err)
	}
	return 0
}
