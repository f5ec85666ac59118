//go:build unix

package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// fifoIn makes a FIFO in dir.
func fifoIn(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A program that does not end when asked does not delay the server's shutdown, even
// if it was asked before for another reason.
func TestRunShutdown(t *testing.T) {
	for _, tt := range []struct {
		mode   string
		limits sandbox.Limits
		cause  sandbox.Cause
	}{
		{"deaf", sandbox.Limits{}, sandbox.CauseCancelled},
		{"tells", sandbox.Limits{OutputTotal: 100_000}, sandbox.CauseOutputLimit},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			c := behave(t, tt.mode, "fifo")
			fifo := fifoIn(t, c.Dir)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			seen := make(chan struct{})
			go func() {
				defer close(seen)
				f, err := os.Open(fifo) // waits for the program to open it
				cancel(fmt.Errorf("told to end: %w", sandbox.ErrShutdown))
				if err == nil {
					_ = f.Close()
				}
			}()
			// If this waits for an hour, the test's own limit fails it.
			r := New(Options{Skip: skipped(), Grace: time.Hour, ShutdownGrace: time.Millisecond, TempDir: t.TempDir()})
			tt.limits.Timeout = time.Hour
			res, err := r.Run(ctx, allow(tt.limits, c), c)
			if err != nil {
				t.Fatal(err)
			}
			<-seen
			if res.Cause != tt.cause || res.Signal != "SIGKILL" {
				t.Errorf("Cause, Signal = %q, %q, want %q, SIGKILL", res.Cause, res.Signal, tt.cause)
			}
		})
	}
}

func TestShutdownGrace(t *testing.T) {
	for _, tt := range []struct{ grace, shutdown, want time.Duration }{
		{0, 0, time.Second}, {0, time.Minute, 5 * time.Second}, {time.Minute, 0, time.Second},
		{100 * time.Millisecond, 0, 100 * time.Millisecond}, {time.Minute, 2 * time.Second, 2 * time.Second},
	} {
		if got := New(Options{Skip: skipped(), Grace: tt.grace, ShutdownGrace: tt.shutdown}).o.ShutdownGrace; got != tt.want {
			t.Errorf("New(%v, %v): ShutdownGrace = %v, want %v", tt.grace, tt.shutdown, got, tt.want)
		}
	}
}

// A killed server cannot end its runs itself.
func TestServerKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a program together with the process that started it")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fifo := fifoIn(t, dir)
	server := again("server", nil)
	server.Args = []string{server.Path, "hold", dir, fifo}
	server.Stdout, server.Stderr = nil, nil
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Wait() }()
	defer func() { _ = server.Process.Kill() }()

	// Opened for both, so that this does not block; after that, only the program keeps
	// it open for writing.
	both, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Skipf("no deadline for a FIFO: %v", err)
	}
	r := bufio.NewReader(f)
	line, err := r.ReadString('\n')
	_ = both.Close()
	if err != nil {
		t.Fatalf("the program does not start: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the program goes on after its server was killed: %v", err)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
