//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// A terminal gets lines that fit, and colours unless the person does not want them.
func TestScreenOfATerminal(t *testing.T) {
	const columns = 40
	for _, test := range []struct {
		flags         Flags
		environ       []string
		colors, moves bool
	}{
		{Flags{}, []string{"TERM=xterm"}, true, true},
		{Flags{}, []string{"TERM=dumb"}, false, false},
		{Flags{}, nil, false, false},
		{Flags{}, []string{"TERM=xterm", "NO_COLOR=1"}, false, true},
		{Flags{}, []string{"TERM=xterm", "NO_COLOR="}, true, true},
		{Flags{Color: colorAlways}, []string{"TERM=xterm", "NO_COLOR=1"}, true, true},
		{Flags{Color: colorNever}, []string{"TERM=xterm"}, false, true},
		{Flags{Plain: true}, []string{"TERM=xterm"}, false, false},
	} {
		ptmx, tty, err := pty.Open()
		if err != nil {
			t.Skipf("there are no terminals here: %v", err)
		}
		defer ptmx.Close()
		if err := pty.Setsize(ptmx, &pty.Winsize{Cols: columns, Rows: 20}); err != nil {
			t.Fatal(err)
		}
		env := Env{Flags: test.flags, Environ: test.environ}
		s := env.Screen(tty)
		if s.Colors() != test.colors || s.Moves() != test.moves {
			t.Errorf("%+v %v: colours = %v and moves = %v, want %v and %v", test.flags, test.environ, s.Colors(), s.Moves(), test.colors, test.moves)
		}
		text := strings.Repeat("word ", 20)
		go func() {
			fmt.Fprint(s, "begun, ")                    // a line in two parts
			fmt.Fprintf(s, "%s\n", s.Style(Bold, text)) // which is then broken
			fmt.Fprintln(s, "end")
			tty.Close()
		}()
		lines := bufio.NewScanner(ptmx)
		n := 0
		for lines.Scan() && strings.TrimSpace(lines.Text()) != "end" {
			n++
			if w := Columns(strings.TrimRight(lines.Text(), "\r")); w > columns && !test.flags.Plain {
				t.Errorf("%v: the line %q has %d columns", test.environ, lines.Text(), w)
			}
		}
		if test.flags.Plain != (n == 1) {
			t.Errorf("%+v: the text has %d lines", test.flags, n)
		}
	}
}
