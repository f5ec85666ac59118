package lint

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A hidden describes a text's invisible characters of one kind.
type hidden struct {
	code   string
	kind   string // in words, after "1 character" or "2 characters"
	offset int    // of the first
	first  string // the first
	count  int
	spelt  string // the text that tag characters spell
}

// hiddenIn returns what a text hides, at most one for each code. Characters of
// ordinary text do not count: spaces of any width, joiners and direction marks among
// letters that need them, emoji selectors, icons.
func hiddenIn(s string) []hidden {
	var plain, order hidden
	var spelt strings.Builder
	for at, is := range safetext.Escaped(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		if isTag(r) && r >= 0xe0020 && r < 0xe007f {
			spelt.WriteRune(r - 0xe0000)
		}
		if innocent(s, at, r, size, is) {
			continue
		}
		h := &plain
		if is.Bidi > 0 {
			h = &order
		}
		if h.count == 0 {
			h.offset, h.first = at, s[at:at+size]
		}
		h.count++
	}
	var found []hidden
	if order.count > 0 {
		order.code, order.kind = CodeTextBidi, "changing the order of others"
		found = append(found, order)
	}
	if plain.count > 0 {
		plain.code, plain.kind, plain.spelt = CodeTextHidden, "seen by nobody, or acting instead of showing", strings.TrimSpace(spelt.String())
		found = append(found, plain)
	}
	return found
}

func isTag(r rune) bool { return 0xe0000 <= r && r <= 0xe007f }

// innocent reports whether the character at an offset occurs like that in ordinary
// text, although package safetext escapes it.
func innocent(s string, at int, r rune, size int, is safetext.Report) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+size:])
	shows := func(r rune) bool { return r >= utf8.RuneSelf && r != utf8.RuneError && unicode.IsGraphic(r) }
	switch {
	case is.Invalid > 0:
		return true // reported separately; see notUTF8
	case is.Blank > 0:
		return unicode.Is(unicode.Zs, r)
	case r == '\u200e' || r == '\u200f' || r == '\u061c', r == '\u200c' || r == '\u200d':
		return shows(before) || shows(after)
	case r == '\ufe0e' || r == '\ufe0f':
		return shows(before) || strings.ContainsRune("0123456789#*\u200d", before)
	case isTag(r):
		return inFlag(s[:at])
	}
	const icons, lastIcon = 0xe000, 0xf8ff
	const emoji, lastEmoji = 0x1f000, 0x1faff // some are newer than Go's tables
	return icons <= r && r <= lastIcon || emoji <= r && r <= lastEmoji
}

// inFlag reports whether a text ends with the beginning of a flag such as Scotland's:
// a black flag and at most six tag letters.
func inFlag(s string) bool {
	for range 7 {
		r, size := utf8.DecodeLastRuneInString(s)
		if r == '\U0001f3f4' {
			return true
		}
		if !isTag(r) {
			return false
		}
		s = s[:len(s)-size]
	}
	return false
}

// visible returns a text as a model reads it, to search it for words: tag characters
// become the letters that they encode, and other invisible characters are removed.
// origin maps an offset in plain to one in s.
func visible(s string) (plain string, origin func(int) int) {
	type cut struct{ plain, origin int } // from here on, offsets differ by origin-plain
	var cuts []cut
	var b strings.Builder
	done := 0
	for at := range safetext.Escaped(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		b.WriteString(s[done:at])
		switch {
		case r >= 0xe0020 && r < 0xe007f:
			b.WriteByte(byte(r - 0xe0000))
		case unicode.Is(unicode.Zs, r) || r == '\r' || r == '\u2028' || r == '\u2029':
			b.WriteByte(' ')
		}
		done = at + size
		cuts = append(cuts, cut{b.Len(), done})
	}
	if done == 0 {
		return s, func(i int) int { return i }
	}
	b.WriteString(s[done:])
	return b.String(), func(i int) int {
		at := i
		for _, c := range cuts {
			if c.plain > i {
				break
			}
			at = c.origin + i - c.plain
		}
		return at
	}
}

// notUTF8 returns the offset of the first byte that is not text, or -1.
func notUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for at, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[at:]); size == 1 {
				return at
			}
		}
	}
	return -1
}
