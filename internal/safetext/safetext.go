// Package safetext makes text from others (a pack, the arguments of a call, the
// output of a run) safe to show to a person, on a terminal and in the metadata
// that a model reads. Characters that would act instead of being seen, or would
// not be seen at all, are written as visible escapes.
//
// It does not judge or shorten the text, and it is not an encoding: [Text] and
// [Line] cannot be reversed, and only [Quote] is unambiguous. Nor does it escape
// for HTML, Markdown, JSON or a shell.
//
// # What is escaped
//
//   - control characters (C0, DEL, C1), U+2028 and U+2029: \x1b, \x9b, \u2028
//   - bidirectional controls: \u202e
//   - tag characters, U+E0000 to U+E007F: \U000e0041
//   - format characters (all of category Cf: soft hyphen, zero-width space,
//     joiners, byte order mark), other default-ignorable code points, private
//     use, unassigned code points and noncharacters
//   - variation selectors, except U+FE0E and U+FE0F directly after an emoji
//     that can have them, or between a digit, # or * and its keycap
//   - letters and symbols that are blank, and every space but U+0020
//   - combining marks beyond the third on one character, and marks with no
//     character to sit on
//   - bytes that are not UTF-8: \xff
//
// Everything else stays as it is, in any script. Two parts of ordinary text are
// escaped too. Joiners always are, so the members of a joined emoji appear one
// by one (👩\u200d🚀), and Persian or Indic text shows its joiners. No-break and
// ideographic spaces are escaped as well. To decide where a joiner is innocent
// would take tables of scripts and emoji sequences that change every year; a
// needless escape only looks bad. "Unassigned" means not in the Unicode version
// of Go's package unicode, for the same reason.
package safetext

import (
	"strconv"
	"unicode/utf8"
)

// Text returns s made safe for multi-line text, such as the output of a run or a
// quotation in a prompt. Newlines and tabs stay; a carriage return before a
// newline is dropped, any other is escaped as \r.
//
// A backslash in s stays a single backslash, so that paths and source code are
// readable. Text can therefore imitate an escape; a person who must know the
// exact characters needs [Quote].
//
// The result is valid UTF-8, at most four times as long as s, and does not
// change when given to Text again. If nothing must be escaped, it is s itself,
// and nothing is allocated.
func Text(s string) string { return escape(s, false) }

// Line is [Text] for a single line, such as a name, a description or an error
// text: newlines, tabs and every carriage return are escaped too, as \n, \t and
// \r.
func Line(s string) string { return escape(s, true) }

// Quote returns s as a Go string literal in double quotes and ASCII, for one
// element of an argv or a file name. Different strings always give different
// results, so letters that look alike (p\u0430y) and spaces at the ends are
// visible.
func Quote(s string) string { return strconv.QuoteToASCII(s) }

// Shorten truncates text to at most most characters, and ends truncated text with "…". It
// escapes nothing.
func Shorten(text string, most int) string {
	n := 0
	for i := range text {
		if n == most-1 {
			// There may be exactly one more.
			if rest := []rune(text[i:]); len(rest) > 1 {
				return text[:i] + "…"
			}
			return text
		}
		n++
	}
	return text
}

func escape(s string, oneLine bool) string {
	var (
		w    walker
		out  []byte
		done int // s[:done] is in out
	)
	for i := 0; i < len(s); {
		r, size, c := w.next(s[i:])
		end := i + size
		if c == plain || c == layout && !oneLine {
			i = end
			continue
		}
		out = append(out, s[done:i]...)
		if c != crlf || oneLine {
			out = appendEscape(out, r, s[i:end])
		}
		i, done = end, end
	}
	if done == 0 {
		return s
	}
	return string(append(out, s[done:]...))
}

// appendEscape appends the escape of r or, if raw is a byte that is not UTF-8,
// of that byte. The forms are Go's, except that controls always have two digits:
// people know them as \x1b and \x9b.
func appendEscape(dst []byte, r rune, raw string) []byte {
	const hex = "0123456789abcdef"
	if r == utf8.RuneError && len(raw) == 1 {
		r = rune(raw[0])
	}
	digits := 8
	switch {
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r == '\r':
		return append(dst, `\r`...)
	case len(raw) == 1 || r <= lastC1:
		dst, digits = append(dst, `\x`...), 2
	case r <= 0xffff:
		dst, digits = append(dst, `\u`...), 4
	default:
		dst = append(dst, `\U`...)
	}
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, hex[r>>shift&0xf])
	}
	return dst
}
