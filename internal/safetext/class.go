package safetext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is how this package treats a character. Characters of every class but
// the first three are always escaped.
type class int

const (
	plain     class = iota // shown as it is
	layout                 // newline or tab: shown in multi-line text
	crlf                   // the carriage return of a CR LF pair: dropped in multi-line text
	control                // controls a terminal, or breaks a line
	bidi                   // changes the order in which the others are shown
	tag                    // an invisible copy of ASCII
	invisible              // format characters, private use, unassigned
	blank                  // takes up space but shows nothing
	mark                   // combining mark; as a result of next, one too many
	invalid                // a byte that is not UTF-8
)

const (
	lastC1     = 0x9f // the last control character
	textStyle  = 0xfe0e
	emojiStyle = 0xfe0f

	// maxMarks is how many combining marks one character keeps. Vietnamese
	// needs two, Thai, Tibetan and pointed Hebrew three; dozens of them draw
	// over the lines above and below.
	maxMarks = 3
)

// base is what precedes a mark or a variation selector.
type base int

const (
	noBase     base = iota // start of the text, newline, tab or an escape, which a mark would deface
	textBase               // takes marks
	keycapBase             // a digit, # or *: takes marks, and a selector if a keycap follows
	emojiBase              // takes marks or a selector
)

// A walker classifies the characters of one text in order. The zero value is
// at the start of a text.
type walker struct {
	prev  base
	marks int // combining marks since their base character
}

// next returns the first character of s with its length in bytes and its class.
// s must not be empty, and must continue the text that next was given before.
// next looks at one more character, so 8 bytes of s are enough.
func (w *walker) next(s string) (rune, int, class) {
	if b := s[0]; ' ' <= b && b <= '~' {
		w.prev, w.marks = asciiBase(b), 0
		return rune(b), 1, plain
	}
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		w.prev = noBase
		return r, size, invalid
	}
	c := classOf(r)
	switch {
	case c == plain:
		w.prev, w.marks = textBase, 0
		if takesStyle(r) {
			w.prev = emojiBase
		}
	case c == mark && w.prev != noBase && w.marks < maxMarks:
		w.prev, w.marks = textBase, w.marks+1
		c = plain
	case (r == textStyle || r == emojiStyle) && (w.prev == emojiBase || w.prev == keycapBase && strings.HasPrefix(s[size:], "\u20e3")):
		w.prev = textBase
		c = plain
	default:
		// This affects the following characters too: marks after one too many
		// are also too many.
		w.prev = noBase
		if r == '\r' && strings.HasPrefix(s[size:], "\n") {
			c = crlf
		}
	}
	return r, size, c
}

// classOf returns the class of r by itself.
func classOf(r rune) class {
	switch {
	case r == '\n' || r == '\t':
		return layout
	case r < ' ' || '\x7f' <= r && r <= lastC1 || r == '\u2028' || r == '\u2029':
		return control
	case isBlank(r):
		return blank
	case unicode.IsLetter(r): // early, since most characters are
		return plain
	case unicode.Is(unicode.Bidi_Control, r):
		return bidi
	case 0xe0000 <= r && r <= 0xe007f:
		return tag
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return invisible
	case unicode.In(r, unicode.Mn, unicode.Me):
		return mark
	case !unicode.IsGraphic(r): // the rest of category C
		return invisible
	}
	return plain
}

// isBlank reports whether r is a space other than U+0020, or a letter or symbol
// that shows nothing.
func isBlank(r rune) bool {
	switch r {
	case ' ':
		return false
	case 0x115f, 0x1160, 0x3164, 0xffa0, // Hangul fillers
		0x2800,  // Braille pattern with no dots
		0xfffc,  // object replacement character
		0x16fe4, // Khitan filler
		0x1d159: // null note head
		return true
	}
	return unicode.Is(unicode.Zs, r)
}

func asciiBase(b byte) base {
	if '0' <= b && b <= '9' || b == '#' || b == '*' {
		return keycapBase
	}
	return textBase
}

// takesStyle reports whether r has an emoji form and a text form, so that a
// selector after it has a meaning. The blocks are wider than the list in
// emoji-variation-sequences.txt: all their characters are visible, and a
// selector after one without a second form does nothing.
func takesStyle(r rune) bool {
	switch {
	case 0x2190 <= r && r <= 0x21ff, // arrows
		0x2300 <= r && r <= 0x23ff, // technical
		0x25a0 <= r && r <= 0x27bf, // shapes, symbols, dingbats
		0x2900 <= r && r <= 0x297f, // more arrows
		0x2b00 <= r && r <= 0x2bff, // arrows and symbols
		0x1f000 <= r && r <= 0x1faff:
		return true
	}
	switch r {
	case '©', '®', '‼', '⁉', '™', 'ℹ', 'Ⓜ', '〰', '〽', '㊗', '㊙':
		return true
	}
	return false
}
