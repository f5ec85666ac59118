package prompt

import (
	"fmt"
	"strings"
	"unicode"
)

// The layout of a card in a terminal. Lines are broken here, so that values never
// reach the column of the labels, and none can look like the next fact.
const (
	labelWidth = 12
	quoteMark  = "> "
	hanging    = "  " // before the second and later lines of one value
	narrowest  = 40   // columns; in a narrower terminal, the terminal breaks the lines
)

// Text returns the whole card for a terminal of this many columns.
func (c *Card) Text(width int) string {
	return c.Title + "\n" + c.Summary(width, 0) + "\n" + c.Details(width)
}

// Summary returns what a person needs at first below the title: the command and the
// marks. A command of more than this many lines is cut, and the summary says so; 0
// means no limit.
func (c *Card) Summary(width, lines int) string {
	width = max(width, narrowest)
	var b strings.Builder
	put := func(begin, text string) {
		for i, l := range wrap(text, width-len(begin), width-len(begin)-len(hanging)) {
			if i > 0 {
				l = strings.Repeat(" ", len(begin)) + hanging + l
			} else {
				l = begin + l
			}
			fmt.Fprintln(&b, strings.TrimRight(l, " "))
		}
	}
	if c.Command != "" {
		const begin = "  $ "
		command := c.Command
		if lines > 0 {
			command = cut(command, (width-len(begin)-len(hanging))*lines)
		}
		put(begin, command)
	}
	for _, w := range []struct {
		Weight
		begin string
	}{{Danger, "  CAUTION: "}, {Notice, "  "}, {Plain, "  "}} {
		var texts []string
		for _, m := range c.Marks {
			if m.Weight == w.Weight {
				texts = append(texts, m.Text)
			}
		}
		if len(texts) > 0 {
			put(w.begin, strings.Join(texts, ", "))
		}
	}
	return b.String()
}

// Details returns all facts by section, and what the pack says.
func (c *Card) Details(width int) string {
	width = max(width, narrowest)
	var b strings.Builder
	heading := func(text string) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, text)
	}
	for title, facts := range c.sections() {
		heading(title)
		label := ""
		for _, f := range facts {
			shown := f.Label
			if shown == label {
				shown = "" // the same as on the line above
			} else {
				label = f.Label
			}
			begin := fmt.Sprintf("  %-*s ", labelWidth, shown)
			indent := strings.Repeat(" ", 2+labelWidth+1)
			for i, l := range wrap(f.Value, width-len(begin), width-len(indent)-len(hanging)) {
				if i > 0 {
					begin = indent + hanging
				}
				fmt.Fprintln(&b, begin+l) // a space at its end belongs to the value
			}
		}
	}
	for _, q := range c.Quotes {
		heading(q.Who)
		for paragraph := range strings.SplitSeq(q.Text, "\n") {
			const begin = "  " + quoteMark
			for _, l := range wrap(paragraph, width-len(begin), width-len(begin)) {
				fmt.Fprintln(&b, strings.TrimRight(begin+l, " "))
			}
		}
	}
	return b.String()
}

// wrap breaks s into lines of at most this many columns, after a space if there is
// one in the last third of a line. The lines together equal s: nothing is added,
// dropped or cut off. It returns at least one line.
func wrap(s string, firstWidth, width int) []string {
	var lines []string
	limit := firstWidth
	start, columns := 0, 0 // of the current line
	space := -1            // where the line could be broken: after its last space
	for i, r := range s {
		w := columnsOf(r)
		if columns+w > limit {
			end := i
			if space-start > limit*2/3 {
				end = space
			}
			lines = append(lines, s[start:end])
			start, limit, space = end, width, -1
			columns = 0
			for _, r := range s[start:i] {
				columns += columnsOf(r)
			}
		}
		columns += w
		if r == ' ' {
			space = i + 1
		}
	}
	return append(lines, s[start:])
}

// columns returns how many columns a text takes at most in a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// columnsOf returns how many columns a character takes at most in a terminal.
// Combining marks and selectors take none, so that wrap never separates them from
// their character.
func columnsOf(r rune) int {
	const hangulJamo = 0x1100 // where wide characters begin
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= hangulJamo:
		return 2
	default:
		return 1
	}
}
