package approve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// A Keyboard reads the lines that a person types. A line counts only for the
// question that was on the screen before it was typed.
type Keyboard struct {
	lines   <-chan typedLine
	discard func()    // drops input that the terminal buffers
	since   time.Time // when the question was shown; earlier lines do not count
}

// A typedLine is one line, without its end.
type typedLine struct {
	text string
	read time.Time // when the last of it arrived
	err  error     // input has ended; io.EOF after Ctrl-D
}

// NewKeyboard starts reading standard input, until ctx ends. A program has one
// Keyboard, since it may read ahead.
func NewKeyboard(ctx context.Context, e *cli.Env) *Keyboard {
	a := &app{e}
	return a.keyboard(ctx)
}

// keyboard starts reading standard input, until ctx ends.
func (a *app) keyboard(ctx context.Context) *Keyboard {
	discard := func() {}
	if f, ok := a.Stdin.(*os.File); ok {
		discard = func() { discardInput(f) }
	}
	return newKeyboard(ctx, a.Stdin, discard)
}

func newKeyboard(ctx context.Context, in io.Reader, discard func()) *Keyboard {
	lines := make(chan typedLine)
	go func() { // ends with the next line, or with the program
		clocked := &clockedReader{Reader: in}
		r := bufio.NewReader(clocked)
		for {
			text, err := r.ReadString('\n')
			select {
			case lines <- typedLine{strings.TrimRight(text, "\r\n"), clocked.at, err}:
			case <-ctx.Done():
				return
			}
			// A terminal can be read on after Ctrl-D. Other input ends again, for each question.
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

// forget discards everything that was typed so far. It is called when a question
// has been shown, so that nobody answers what they have not seen.
func (k *Keyboard) forget() {
	k.discard()
	k.since = time.Now()
}

// counts reports whether a line was typed after forget.
func (k *Keyboard) counts(l typedLine) bool { return l.err != nil || l.read.After(k.since) }

// Ask shows a prompt and returns the next line.
func (k *Keyboard) Ask(ctx context.Context, out io.Writer, prompt string) (string, error) {
	k.forget()
	fmt.Fprint(out, prompt)
	for {
		select {
		case l := <-k.lines:
			if !k.counts(l) {
				continue
			}
			if l.err != nil {
				fmt.Fprintln(out)
			}
			return l.text, l.err
		case <-ctx.Done():
			fmt.Fprintln(out)
			return "", ctx.Err()
		}
	}
}

// A look describes what the terminal can show.
type look struct {
	bold, plain string // switch bold type on and off; empty if not wanted
	moves       bool   // the cursor can be moved
	sentences   bool   // for a screen reader: nothing is drawn, and nothing broken
	width       func() int
}

const (
	usualWidth = 80
	// unbroken is a width that no text has.
	unbroken = 1 << 20
	// widest keeps lines readable in a wide window.
	widest = 100
)

// look determines what standard output can show.
func (a *app) look() look { return a.lookOf(a.Stdout) }

// lookOf determines what a stream can show.
func (a *app) lookOf(out io.Writer) look {
	s := a.Screen(out)
	l := look{moves: s.Moves(), sentences: s.Plain(), width: func() int {
		switch w := s.Width(); {
		case s.Plain():
			return unbroken
		case w > 0:
			return min(w, widest)
		}
		return usualWidth
	}}
	if s.Colors() {
		l.bold, l.plain = "\x1b[1m", "\x1b[0m"
	}
	return l
}

// ruleWidth is how long the rules around a question are.
const ruleWidth = 60

// summaryLines is how much of a command is shown before the person asks for all of
// it.
const summaryLines = 4

// printSummary prints what a person needs at first sight of a call.
func (l look) printSummary(out io.Writer, w waiting) {
	l.printTitle(out, w)
	if l.sentences {
		fmt.Fprint(out, w.Card.Sentences(false))
		return
	}
	fmt.Fprint(out, w.Card.Summary(l.width(), summaryLines))
}

// printAll prints everything that there is to decide about.
func (l look) printAll(out io.Writer, w waiting) {
	l.printTitle(out, w)
	if l.sentences {
		fmt.Fprint(out, w.Card.Sentences(true))
		return
	}
	fmt.Fprintf(out, "%s\n%s", w.Card.Summary(l.width(), 0), w.Card.Details(l.width()))
	fmt.Fprintln(out, strings.Repeat("-", min(l.width(), ruleWidth)))
}

// gap separates what is printed, by an empty line.
func (l look) gap(out io.Writer) {
	if !l.sentences {
		fmt.Fprintln(out)
	}
}

func (l look) printTitle(out io.Writer, w waiting) {
	if l.sentences {
		fmt.Fprintf(out, "A call waits for you under the code %s.\n", w.Code)
		return
	}
	fmt.Fprintf(out, "\n---- %s %s\n", w.Code, strings.Repeat("-", max(0, min(l.width(), ruleWidth)-15)))
	fmt.Fprintf(out, "%s%s%s\n", l.bold, w.Card.Title, l.plain)
}
