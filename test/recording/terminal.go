// Package recording plays scenes with the program on a terminal and draws them as
// pictures for the docs. The screen shows exactly what the program wrote.
//
// It knows only the control sequences that the program uses, and fails at any other. A
// picture has no times of its own: how long a frame is shown is up to the scene, so two
// recordings of the same program are the same.
package recording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A cell is one character on the screen, and its style: what CSI … m set, or "".
type cell struct {
	char  rune
	style string
}

// A terminal holds what a program wrote, on a screen that never scrolls.
type terminal struct {
	cols     int
	lines    [][]cell
	row, col int
	savedRow int
	savedCol int
	style    string
	pending  string // the beginning of a sequence or a character
}

// write does what a terminal does with text.
func (t *terminal) write(text string) error {
	text, t.pending = t.pending+text, ""
	for text != "" {
		if text[0] == '\x1b' {
			n, err := t.escape(text)
			if err != nil {
				return err
			}
			if n == 0 {
				t.pending = text
				return nil
			}
			text = text[n:]
			continue
		}
		if !utf8.FullRuneInString(text) {
			t.pending = text
			return nil
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		switch {
		case r == '\r':
			t.col = 0
		case r == '\n':
			t.row++
		case r == '\b':
			t.col = max(0, t.col-1)
		case r == '\a':
		case r < ' ' || r == utf8.RuneError:
			return fmt.Errorf("the program wrote %q, which a recording does not know", r)
		default:
			t.put(r)
		}
	}
	return nil
}

// put writes one character where the cursor is.
func (t *terminal) put(r rune) {
	if t.col == t.cols {
		t.row, t.col = t.row+1, 0
	}
	line := t.line()
	for len(*line) <= t.col {
		*line = append(*line, cell{char: ' '})
	}
	(*line)[t.col] = cell{r, t.style}
	t.col++
}

// line returns the line of the cursor.
func (t *terminal) line() *[]cell {
	for len(t.lines) <= t.row {
		t.lines = append(t.lines, nil)
	}
	return &t.lines[t.row]
}

// escape carries out the control sequence at the beginning of text, and returns its
// length, or 0 if it is incomplete.
func (t *terminal) escape(text string) (int, error) {
	if len(text) < 2 {
		return 0, nil
	}
	switch text[1] {
	case '7':
		t.savedRow, t.savedCol = t.row, t.col
		return 2, nil
	case '8':
		t.row, t.col = t.savedRow, t.savedCol
		return 2, nil
	case '[':
	default:
		return 0, fmt.Errorf("the program wrote %q, which a recording does not know", text[:2])
	}
	end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		return 0, nil
	}
	args, final, all := text[2:2+end], text[2+end], text[:3+end]
	switch n, err := strconv.Atoi(args); {
	case final == 'm':
		t.style = restyled(t.style, args)
	case final == 'K' && (args == "" || args == "0"):
		line := t.line()
		*line = (*line)[:min(len(*line), t.col)]
	case final == 'A' && err == nil:
		t.row = max(0, t.row-n)
	case strings.HasPrefix(args, "?"): // the cursor's look and other modes
	default:
		return 0, fmt.Errorf("the program wrote %q, which a recording does not know", all)
	}
	return len(all), nil
}

// restyled returns a style after CSI args m: the numbers that hold, in words of CSS
// classes, such as "s1 s32".
func restyled(style, args string) string {
	on := strings.Fields(style)
	for arg := range strings.SplitSeq(args, ";") {
		switch arg {
		case "", "0":
			on = nil
		case "39":
			on = without(on, func(n int) bool { return n >= 30 })
		case "22":
			on = without(on, func(n int) bool { return n < 3 })
		default:
			if n, err := strconv.Atoi(arg); err == nil && n >= 30 {
				on = without(on, func(n int) bool { return n >= 30 })
			}
			on = append(on, "s"+arg)
		}
	}
	return strings.Join(on, " ")
}

func without(on []string, drop func(int) bool) (left []string) {
	for _, s := range on {
		if n, err := strconv.Atoi(s[1:]); err != nil || !drop(n) {
			left = append(left, s)
		}
	}
	return left
}

// last returns a copy of the last lines of the screen.
func (t *terminal) last(rows int) (lines [][]cell) {
	from := max(0, max(len(t.lines), t.row+1)-rows)
	for i := from; i < len(t.lines); i++ {
		lines = append(lines, append([]cell(nil), t.lines[i]...))
	}
	return lines
}
