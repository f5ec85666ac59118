//go:build unix

package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// shownBy returns what a Progress writes to a terminal. Each tick simulates slow
// work.
func shownBy(t *testing.T, flags Flags, ticks int) string {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	defer ptmx.Close()
	if err := pty.Setsize(ptmx, &pty.Winsize{Cols: 60, Rows: 20}); err != nil {
		t.Fatal(err)
	}
	env := Env{Flags: flags, Environ: []string{"TERM=xterm"}, Stderr: tty}
	p := &Progress{what: "checking packs", screen: env.Screen(tty), stop: make(chan struct{})}
	first, more := make(chan time.Time), make(chan time.Time)
	p.stopped.Go(func() { p.show(first, more, time.Now()) })
	read := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, ptmx) // ends with an error when the terminal is closed
		read <- b.String()
	}()
	if ticks > 0 {
		first <- time.Time{}
	}
	for i := range ticks - 1 {
		p.Of(i+1, 4)
		more <- time.Time{}
	}
	p.Close()
	p.Close() // a second call does no harm
	tty.Close()
	return <-read
}

func TestProgress(t *testing.T) {
	if got := shownBy(t, Flags{}, 0); got != "" {
		t.Errorf("what is quick shows %q", got)
	}
	got := shownBy(t, Flags{Color: colorNever}, 3)
	if part := "\r\x1b[K[##########..........] checking packs, 2 of 4\r"; !strings.Contains(got, part) {
		t.Errorf("the progress %q lacks %q", got, part)
	}
	if !strings.HasSuffix(got, "\r\x1b[K") || strings.Contains(got, "\n") {
		t.Errorf("something of the progress stays: %q", got)
	}
	if got := shownBy(t, Flags{Plain: true}, 1); got != "This takes a moment: checking packs.\r\n" {
		t.Errorf("a plain screen shows %q", got)
	}
}

func TestProgressWithoutANumber(t *testing.T) {
	p := Progress{what: "checking packs", screen: new(Screen)}
	if got := p.text(3900 * time.Millisecond); got != "checking packs, 3 s" {
		t.Errorf("text() = %q", got)
	}
}

// A stream that is not a terminal gets nothing, and needs no goroutine.
func TestNoProgressInAPipe(t *testing.T) {
	var b bytes.Buffer
	env := Env{Stderr: &b}
	p := env.Progress("checking packs")
	p.Of(1, 2)
	p.Close()
	if b.Len() > 0 {
		t.Errorf("a pipe gets %q", b.String())
	}
}
