package prompt

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// marker begins our own lines in a form. No text in a card contains it, so wherever a
// client breaks a line, text from others never looks like the next fact.
const marker = "▸"

// unmarked returns an escaped text with every [marker] escaped.
func unmarked(s string) string { return strings.ReplaceAll(s, marker, `\u25b8`) }

// line returns s for one line of a card that is not in quotes: escaped, without
// marker, and with long runs of spaces replaced by their length.
func line(s string) string { return counted(unmarked(safetext.Line(s))) }

// maxBlank is how many spaces in a row a value may have. More could push the rest out
// of sight.
const maxBlank = 8

// counted returns s with each run of more than maxBlank spaces replaced by its
// length.
func counted(s string) string {
	var b strings.Builder
	for {
		begin, n := longBlank(s)
		if n == 0 {
			break
		}
		fmt.Fprintf(&b, "%s(%d spaces)", s[:begin], n)
		s = s[begin+n:]
	}
	return b.String() + s
}

// quoted returns a value in quotes, in ASCII. It shows a long run of spaces as its
// length, outside of the quotes: nothing is left out, and nothing is pushed out of
// sight.
func quoted(s string) string {
	var parts []string
	for s != "" {
		begin, n := longBlank(s)
		if n == 0 {
			break
		}
		if begin > 0 {
			parts = append(parts, safetext.Quote(s[:begin]))
		}
		parts = append(parts, fmt.Sprintf("(%d spaces)", n))
		s = s[begin+n:]
	}
	if s != "" || len(parts) == 0 {
		parts = append(parts, safetext.Quote(s))
	}
	return strings.Join(parts, " + ")
}

// longBlank finds the first run of more than maxBlank spaces.
func longBlank(s string) (begin, n int) {
	for i := 0; i < len(s); i++ {
		n = 0
		for i+n < len(s) && s[i+n] == ' ' {
			n++
		}
		if n > maxBlank {
			return i, n
		}
		i += n
	}
	return 0, 0
}

// words returns a pack's text, in lines. It contains nothing with which a form marks
// its own lines, and no run of blanks or empty lines that pushes its end out of
// sight.
func words(s string) string {
	s = unmarked(strings.ReplaceAll(safetext.Text(s), "\t", "    "))
	var lines []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
		paragraph = strings.TrimRight(counted(paragraph), " ")
		if paragraph == "" && len(lines) > 0 && lines[len(lines)-1] == "" {
			continue // one empty line is a paragraph
		}
		lines = append(lines, paragraph)
	}
	return strings.Join(lines, "\n")
}

// input returns what a program reads. Tools get a JSON object, which is readable as
// it is if all of it is visible ASCII. A text that begins with a brace cannot be
// confused with the quoted form of another text. The last newline is not shown.
func input(b []byte) string {
	text := strings.TrimSuffix(string(b), "\n")
	invisible := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.HasPrefix(text, "{") && !strings.ContainsFunc(text, invisible) {
		if _, n := longBlank(text); n == 0 {
			return text
		}
	}
	return quoted(string(b))
}

// Name returns a name unchanged if nothing in it could deceive, and quoted in ASCII
// otherwise.
func Name(s string) string {
	if isPlain(s) {
		return s
	}
	return quoted(s)
}

// isPlain reports whether s needs no quoting: it has only ASCII letters, digits, and
// the punctuation that is usual in names and paths.
func isPlain(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_./@=:+,", r):
			return false
		}
		return true
	})
}

// shellWord returns s as one word of a shell: unchanged if no shell gives it another
// meaning, in single quotes if it has only visible ASCII, and otherwise in $'…' with
// everything else escaped. Different words never give the same text. A long run of
// spaces is shown as its length outside of the quotes, which no shell would accept:
// 'a'(41 spaces)'b'.
func shellWord(s string) string {
	if s == "" {
		return "''"
	}
	var b strings.Builder
	for s != "" {
		begin, n := longBlank(s)
		if n == 0 {
			begin = len(s)
		}
		if begin > 0 {
			b.WriteString(shellQuoted(s[:begin]))
		}
		if n > 0 {
			fmt.Fprintf(&b, "(%d spaces)", n)
		}
		s = s[begin+n:]
	}
	return b.String()
}

// shellQuoted is shellWord for a text without long runs of spaces.
func shellQuoted(s string) string {
	switch {
	case isPlain(s):
		return s
	case !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '\'' }):
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case size == 1 && (r < ' ' || r > '~'): // a control character, or a byte that is not UTF-8
			fmt.Fprintf(&b, `\%03o`, s[0]) // three digits: the next character never becomes part of the number
		case r <= '~':
			b.WriteByte(s[0])
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		s = s[size:]
	}
	b.WriteByte('\'')
	return b.String()
}
