package prompt

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// How a prompt is laid out. Lines are broken here and not by the client: one
// that cuts long lines would hide their ends, and one that wraps them could let
// a value pass for the next fact. Values never reach the column of the labels.
// The margin keeps clients that read Markdown from changing what they show:
// four spaces are text as it is.
const (
	promptWidth = 60
	margin      = "    "
	labelWidth  = 10
	valueWidth  = promptWidth - len(margin) - labelWidth - 1
	quoteMark   = "> "
	quoteWidth  = promptWidth - len(margin) - len(quoteMark)
	hanging     = "   " // before the second and later lines of one value
)

// A text builds a question line by line.
type text struct{ strings.Builder }

func (p *text) line(s string) {
	p.WriteString(s)
	p.WriteByte('\n')
}

// fact writes a label and its value, which is escaped already.
func (p *text) fact(label, value string) {
	lines := wrap(value, valueWidth, valueWidth-len(hanging))
	p.line(fmt.Sprintf("%s%-*s %s", margin, labelWidth, label, lines[0]))
	for _, l := range lines[1:] {
		p.line(fmt.Sprintf("%s%-*s %s%s", margin, labelWidth, "", hanging, l))
	}
}

// quote writes words that the pack chose, each line marked.
func (p *text) quote(who, text string) {
	text = strings.TrimSpace(strings.ReplaceAll(safetext.Text(text), "\t", margin))
	if text == "" {
		return
	}
	p.line("")
	p.line(margin + who + ":")
	blank := false
	for paragraph := range strings.SplitSeq(text, "\n") {
		// One empty line is a paragraph; many would push the rest out of sight.
		if empty := strings.TrimSpace(paragraph) == ""; empty && blank {
			continue
		} else {
			blank = empty
		}
		for _, l := range wrap(paragraph, quoteWidth, quoteWidth) {
			p.line(margin + strings.TrimRight(quoteMark+l, " "))
		}
	}
}

// first is the label of the first of several values, and none for the others.
func first(i int, label string) string {
	if i > 0 {
		return ""
	}
	return label
}

// Name shows a name as it is when nothing in it could deceive, and quoted in
// ASCII otherwise.
func Name(s string) string {
	if isPlain(s) {
		return s
	}
	return safetext.Quote(s)
}

// isPlain reports whether s needs no quoting: letters, digits and what names
// and paths have between them, all ASCII.
func isPlain(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_./@=:+,", r):
			return false
		}
		return true
	})
}

// wrap breaks s into lines of at most so many columns, after a space where
// there is one in the last third of a line. The lines together are s: nothing
// is added, dropped or cut off. There is at least one line.
func wrap(s string, firstWidth, width int) []string {
	var lines []string
	limit := firstWidth
	start, columns := 0, 0 // of the line that is being filled
	space := -1            // where it could be broken: after its last space
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

// columnsOf is how wide a character is at most in a terminal. Marks and
// selectors have no width, so that wrap never parts them from what they sit on.
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
