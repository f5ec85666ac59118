package approve

import (
	"fmt"
	"io"
	"strings"
)

// A look describes what the terminal can show.
type look struct {
	bold, plain string // switch bold type on and off; empty if not wanted
	moves       bool   // the cursor can be moved
	sentences   bool   // for a screen reader: no drawing, and no line breaks
	width       func() int
}

const (
	usualWidth = 80
	// unbroken is wider than any text.
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

// printSummary prints what a person needs at first about a call.
func (l look) printSummary(out io.Writer, w waiting) {
	l.printTitle(out, w)
	if l.sentences {
		fmt.Fprint(out, w.Card.Sentences(false))
		return
	}
	fmt.Fprint(out, w.Card.Summary(l.width(), summaryLines))
}

// printAll prints everything that the decision is about.
func (l look) printAll(out io.Writer, w waiting) {
	l.printTitle(out, w)
	if l.sentences {
		fmt.Fprint(out, w.Card.Sentences(true))
		return
	}
	fmt.Fprintf(out, "%s\n%s", w.Card.Summary(l.width(), 0), w.Card.Details(l.width()))
	fmt.Fprintln(out, strings.Repeat("-", min(l.width(), ruleWidth)))
}

// gap prints an empty line between two parts.
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
