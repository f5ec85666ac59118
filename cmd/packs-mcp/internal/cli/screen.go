package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// A Screen writes to one of the program's streams, in lines that fit: on a terminal
// it breaks longer lines between words, and elsewhere it breaks none. It writes a
// line once the line is complete.
//
// It is for one goroutine.
type Screen struct {
	out      io.Writer
	terminal *os.File // nil if the stream is not a terminal
	begun    []byte   // a line that is not complete yet
	styled   bool
	moves    bool
	plain    bool
}

// Screen returns a Screen for a stream. It alone decides about colours: by --color
// first, then NO_COLOR, and then whether the stream is a terminal with colours.
func (env *Env) Screen(w io.Writer) *Screen {
	s := &Screen{out: w, plain: env.Flags.Plain}
	if IsTerminal(w) {
		s.terminal, _ = w.(*os.File)
	}
	name := Getenv(env.Environ, "TERM")
	able := s.terminal != nil && hasStyles(s.terminal, name)
	s.moves = able && !s.plain
	switch {
	case s.plain || env.Flags.Color == colorNever:
	case env.Flags.Color == colorAlways:
		s.styled = true
	default:
		s.styled = able && Getenv(env.Environ, "NO_COLOR") == ""
	}
	return s
}

// Colors reports whether text may have styles.
func (s *Screen) Colors() bool { return s.styled }

// Moves reports whether written text can be overwritten.
func (s *Screen) Moves() bool { return s.moves }

// Plain reports whether the person wants sentences, one on each line, and no drawing.
func (s *Screen) Plain() bool { return s.plain }

// Width returns how many columns a line has; 0 means that lines are not broken. It
// asks the terminal each time, since a person may resize the window.
func (s *Screen) Width() int {
	if s.terminal == nil || s.plain {
		return 0
	}
	if columns, _, err := term.GetSize(int(s.terminal.Fd())); err == nil && columns > 0 {
		return columns
	}
	return usualWidth
}

const (
	// usualWidth is the width of a terminal that does not report it.
	usualWidth = 80
	// narrowest is the least number of columns to which text is fitted.
	narrowest = 20
)

// A Style is a way to show a text.
type Style string

// The styles. The meaning of a text is always in its words too.
const (
	Bold   Style = "1"
	Faint  Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Style returns text in a style, if the screen has any.
func (s *Screen) Style(style Style, text string) string {
	if !s.styled || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Write writes text in lines that fit.
func (s *Screen) Write(p []byte) (int, error) {
	if s.Width() == 0 {
		return s.out.Write(p)
	}
	s.begun = append(s.begun, p...)
	end := bytes.LastIndexByte(s.begun, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	text := fit(string(s.begun[:end]), s.Width())
	s.begun = append([]byte(nil), s.begun[end:]...)
	if _, err := io.WriteString(s.out, text); err != nil {
		return 0, fmt.Errorf("printing: %w", err)
	}
	return len(p), nil
}

// Unbroken returns a writer for text that must stay as it is, such as text to copy.
func (s *Screen) Unbroken() io.Writer { return s.out }

// Problem prints a problem and what to do about it, indented.
func (s *Screen) Problem(indent string, d diag.Diagnostic) {
	style := map[diag.Severity]Style{diag.Error: Red, diag.Warning: Yellow}[d.Severity]
	kind := string(d.Severity)
	if style != "" {
		kind = s.Style(style, kind)
	}
	fmt.Fprintf(s, "%s%s: %s\n", indent, kind, safetext.Line(d.String()))
	if d.Hint != "" {
		fmt.Fprintf(s, "    %s: %s\n", s.Style(Cyan, "hint"), safetext.Line(d.Hint))
	}
}

// fit breaks lines of text with more than this many columns, between words. A
// continuation begins below the last column of a table, or a little deeper than the
// line, so that it cannot look like a line of its own. A single word that is too long
// is broken too. 0 columns means no limit.
func fit(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	columns = max(columns, narrowest)
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		fitLine(&b, line, columns)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func fitLine(b *strings.Builder, line string, columns int) {
	begin := len(line) - len(strings.TrimLeft(line, " "))
	end := breakAt(line, begin, columns)
	if end == len(line) {
		b.WriteString(line)
		return
	}
	deep := hang(line, columns)
	indent := strings.Repeat(" ", deep)
	for end < len(line) {
		b.WriteString(strings.TrimRight(line[:end], " "))
		b.WriteString("\n" + indent)
		line = strings.TrimLeft(line[end:], " ")
		end = breakAt(line, 0, columns-deep)
	}
	b.WriteString(line)
}

// breakAt returns where to break a line to fit: at a space after its beginning, or
// where no more of it fits. If all of it fits, it returns the line's length.
func breakAt(line string, begin, columns int) int {
	used, space := begin, 0
	for i := begin; i < len(line); {
		n, w := next(line[i:])
		if used+w > columns {
			if space > 0 && line[i] != ' ' {
				return space
			}
			return max(i, 1)
		}
		used += w
		i += n
		if line[i-1] == ' ' {
			space = i
		}
	}
	return len(line)
}

// hang returns the column in which the continuation of a broken line begins: the last
// column of a table, if that leaves at least a third of the width.
func hang(line string, columns int) int {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	deepest := columns * 2 / 3
	best := min(indent+2, deepest)
	for i, at := indent, indent; i < len(line) && at <= deepest; {
		if at > indent && line[i] != ' ' && line[i-1] == ' ' && line[i-2] == ' ' {
			best = at
		}
		n, w := next(line[i:])
		i, at = i+n, at+w
	}
	return best
}

// Columns returns how many columns text takes in a terminal, not counting escape
// sequences for styles.
func Columns(text string) int {
	sum := 0
	for len(text) > 0 {
		n, w := next(text)
		sum += w
		text = text[n:]
	}
	return sum
}

// next returns the length of the first character or escape sequence in text, and its
// width.
func next(text string) (bytes, columns int) {
	if strings.HasPrefix(text, "\x1b[") {
		if end := strings.IndexByte(text, 'm'); end > 0 {
			return end + 1, 0
		}
	}
	for i, r := range text {
		if i > 0 {
			return i, columns
		}
		columns = columnsOf(r)
	}
	return len(text), columns
}

func columnsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// A Table is rows of texts in columns. The width of the last column is not limited.
type Table struct{ rows [][]string }

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Print prints the table, with two spaces between its columns.
func (t *Table) Print(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Columns(cell))
		}
	}
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-Columns(cell)+2))
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}
