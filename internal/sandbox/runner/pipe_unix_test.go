//go:build unix

package runner

import (
	"os"
	"testing"
	"time"
)

// A program's output is read, however late the reader runs. A pipe that only a child
// holds open is not waited for.
func TestDrained(t *testing.T) {
	open := func() (*pipes, *os.File) {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return &pipes{stdout: r}, w
	}
	p, w := open()
	if holds(p.stdout) {
		t.Error("there is something in an empty pipe")
	}
	nobody := make(chan struct{})
	p.drained(nobody, time.Nanosecond) // it returns

	if _, err := w.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	if !holds(p.stdout) {
		t.Error("there is nothing in a pipe that was written to")
	}
	late := make(chan struct{})
	go func() {
		defer close(late)
		for range 3 {
			time.Sleep(5 * time.Millisecond) // three times the wait
		}
		var b [5]byte
		if _, err := p.stdout.Read(b[:]); err != nil || string(b[:]) != "hello" {
			t.Errorf("read %q, %v", b, err)
		}
	}()
	p.drained(late, 5*time.Millisecond)
	select {
	case <-late:
	default:
		t.Error("what is there was not waited for")
	}

	// Closed by somebody.
	p.closeReaders()
	if holds(p.stdout) {
		t.Error("there is something in a closed pipe")
	}
}
