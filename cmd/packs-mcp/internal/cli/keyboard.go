package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// ReadTime is how long a question is shown before it can be answered. Nobody can read
// it faster.
const ReadTime = 500 * time.Millisecond

// A Keyboard reads the lines that a person types. A line counts only for the
// question that was on the screen before it was typed.
type Keyboard struct {
	lines   <-chan TypedLine
	discard func()    // drops input that the terminal buffers
	since   time.Time // when the question was shown; earlier lines do not count
}

// A TypedLine is one line, without its end.
type TypedLine struct {
	Text string
	Err  error     // input has ended; io.EOF after Ctrl-D
	read time.Time // when the last part of it arrived
}

// NewKeyboard starts reading a stream, until ctx ends. A program has only one
// Keyboard, since it may read ahead.
func NewKeyboard(ctx context.Context, in io.Reader) *Keyboard {
	discard := func() {}
	if f, ok := in.(*os.File); ok {
		discard = func() { discardInput(f) }
	}
	lines := make(chan TypedLine)
	go func() { // ends with the next line, or with the program
		clocked := &clockedReader{Reader: in}
		r := bufio.NewReader(clocked)
		for {
			text, err := r.ReadString('\n')
			select {
			case lines <- TypedLine{strings.TrimRight(text, "\r\n"), err, clocked.at}:
			case <-ctx.Done():
				return
			}
			// A terminal can still be read after Ctrl-D. Other input reports its end
			// again for each question.
		}
	}()
	return &Keyboard{lines: lines, discard: discard}
}

// A clockedReader records when it was last read.
type clockedReader struct {
	io.Reader
	at time.Time
}

func (r *clockedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.at = time.Now()
	return n, err
}

// Lines delivers what is typed; see [Keyboard.Counts].
func (k *Keyboard) Lines() <-chan TypedLine { return k.lines }

// Forget discards everything that was typed so far. It is called when a question
// has been shown, so that nobody answers what they have not seen.
func (k *Keyboard) Forget() {
	k.discard()
	k.since = time.Now()
}

// Counts reports whether a line was typed after Forget.
func (k *Keyboard) Counts(l TypedLine) bool { return l.Err != nil || l.read.After(k.since) }

// Ask shows a prompt and returns the next line.
func (k *Keyboard) Ask(ctx context.Context, out io.Writer, prompt string) (string, error) {
	k.Forget()
	fmt.Fprint(out, prompt)
	for {
		select {
		case l := <-k.lines:
			if !k.Counts(l) {
				continue
			}
			if l.Err != nil {
				fmt.Fprintln(out)
			}
			return l.Text, l.Err
		case <-ctx.Done():
			fmt.Fprintln(out)
			return "", ctx.Err()
		}
	}
}

// Rest gives the person time to see a question. What was typed before that does not
// count. It returns io.EOF if the input ends meanwhile.
func (k *Keyboard) Rest(ctx context.Context) error {
	timer := time.NewTimer(ReadTime)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case l := <-k.lines:
			if l.Err != nil {
				return io.EOF
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
