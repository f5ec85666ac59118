// Package letters says what characters do to a text: which are invisible, look like
// others or encode something, and how a text reads without them.
//
// It knows no attacks. Which character is a finding, package scan says.
package letters

import (
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
)

// Decode returns a text as UTF-8. UTF-16 without a byte order mark is recognized if
// every other byte at its beginning is NUL.
func Decode(src []byte) []byte {
	if set := charset.Of(src); set != charset.UTF8 {
		return set.Decode(src)
	}
	const look = 64
	if len(src) < 8 {
		return src
	}
	var nul [2]int
	head := src[:min(look, len(src))&^1]
	for i, c := range head {
		if c == 0 {
			nul[i%2]++
		}
	}
	switch half := len(head) / 2; {
	case nul[1] > half*3/4 && nul[0] == 0:
		return charset.UTF16LE.Decode(src)
	case nul[0] > half*3/4 && nul[1] == 0:
		return charset.UTF16BE.Decode(src)
	}
	return src
}

// Normal returns a line as a model or a shell reads it: without invisible characters,
// with tag characters as the letters that they encode, and with one form of each
// letter and quotation mark.
func Normal(line string) string {
	plain := true
	for i := range len(line) {
		if c := line[i]; c >= utf8.RuneSelf || c < ' ' || c == 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return line
	}
	var b strings.Builder
	b.Grow(len(line))
	for i, r := range line {
		switch {
		case r == utf8.RuneError && line[i] != 0xef: // not UTF-8
		case r == '\t' || unicode.Is(unicode.Zs, r) || r == 0x2028 || r == 0x2029 || r == '\r' || r == '\v' || r == '\f':
			b.WriteByte(' ')
		case 0xe0020 <= r && r < 0xe007f:
			b.WriteByte(byte(r - 0xe0000))
		case isInvisible(r):
		case r == '“' || r == '”' || r == '„' || r == '«' || r == '»':
			b.WriteByte('"')
		case r == '‘' || r == '’' || r == '‚':
			b.WriteByte('\'')
		case r == '‐' || r == '‑' || r == '−':
			b.WriteByte('-')
		default:
			b.WriteRune(r)
		}
	}
	return norm.NFKC.String(b.String())
}

// Lower returns s with ASCII letters in lower case; offsets stay the same.
func Lower(s string) string {
	for i := range len(s) {
		if c := s[i]; 'A' <= c && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// Unsplit removes from a shell line characters that split a word without changing it:
// c\url and cu""rl are curl. Escapes that printf reads stay.
func Unsplit(s string) string {
	if !strings.ContainsAny(s, `\'"`) {
		return s
	}
	b := make([]byte, 0, len(s))
	isLetter := func(i int) bool { return 0 <= i && i < len(s) && IsASCIILetter(rune(s[i])) }
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && isLetter(i-1) && isLetter(i+1) && strings.IndexByte("xntr", s[i+1]) < 0:
			continue
		case (s[i] == '"' || s[i] == '\'') && i+1 < len(s) && s[i+1] == s[i] && isLetter(i-1) && isLetter(i+2):
			i++
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// isInvisible reports whether a character is not shown, or controls the display.
func isInvisible(r rune) bool {
	switch {
	case r < ' ' || 0x7f <= r && r < 0xa0:
		return true
	case r < 0xad:
		return false
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return true
	}
	return r == 0x2800 || r == 0x3164 || r == 0xffa0 || r == 0x115f || r == 0x1160
}

// IsTag reports whether a character is a tag, which encodes an ASCII character.
func IsTag(r rune) bool { return 0xe0000 <= r && r <= 0xe007f }

// IsSelector reports whether a character is a variation selector that no emoji needs.
func IsSelector(r rune) bool { return 0xfe00 <= r && r <= 0xfe0d || 0xe0100 <= r && r <= 0xe01ef }

// IsBidi reports whether a character changes the direction of the text.
func IsBidi(r rune) bool { return 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 }

// IsZeroWidth reports whether a character has no width.
func IsZeroWidth(r rune) bool {
	return 0x200b <= r && r <= 0x200d || 0x2060 <= r && r <= 0x2064 || r == 0xfeff || r == 0x180e
}

// IsASCIILetter reports whether a character is an ASCII letter.
func IsASCIILetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// twins are letters of Cyrillic and Greek that look like Latin ones.
const twins = "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅοαρυνΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"

// Lookalike returns the first word that mixes Latin letters with letters that look
// Latin, or "". A word that also has other letters of that alphabet belongs to its
// language.
func Lookalike(line string) string {
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && r != utf8.RuneError }) {
		latin, twin, other := 0, 0, 0
		for _, r := range word {
			switch {
			case IsASCIILetter(r):
				latin++
			case strings.ContainsRune(twins, r):
				twin++
			default:
				other++
			}
		}
		if twin > 0 && other == 0 && latin >= 2 && latin > twin && !strings.ContainsAny(word, "αρνΑΝ") {
			return word
		}
	}
	return ""
}

// IsCodeByte reports whether a byte can occur in base64, in either alphabet, or in
// hexadecimal.
func IsCodeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// FromBase64 decodes s from base64 if the result is text: ASCII, or UTF-16 as in
// PowerShell.
func FromBase64(s string) (string, bool) {
	if strings.ContainsAny(s, "-_") {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "-", "+"), "_", "/")
	}
	s = s[:len(s)-btoi(len(s)%4 == 1)]
	raw, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil || len(raw) < 8 {
		return "", false
	}
	if raw[1] == 0 {
		var b strings.Builder
		for i := 0; i+1 < len(raw); i += 2 {
			if raw[i+1] != 0 {
				return "", false
			}
			b.WriteByte(raw[i])
		}
		raw = []byte(b.String())
	}
	return string(raw), IsASCII(raw)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// IsASCII reports whether a text is printable ASCII, with blanks and line ends.
func IsASCII(raw []byte) bool {
	for _, c := range raw {
		if c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// Plain reports whether a text has only printable ASCII, blanks and line feeds, and how
// many blanks and line feeds at most are in a row.
func Plain(text string) (ok bool, gap int) {
	run := 0
	for i := range len(text) {
		switch c := text[i]; {
		case ' ' < c && c < 0x7f:
			run = 0
		case c == ' ' || c == '\n':
			run++
			gap = max(gap, run)
		default:
			return false, 0
		}
	}
	return true, gap
}

// IsQuoted reports whether a quotation begins in before and ends in behind.
func IsQuoted(before, behind string) bool {
	for _, q := range []string{`"`, "`"} {
		if strings.Count(before, q)%2 == 1 && strings.Contains(behind, q) {
			return true
		}
	}
	i := strings.LastIndexByte(before, '\'')
	return i >= 0 && (i == 0 || before[i-1] == ' ' || before[i-1] == '(' || before[i-1] == '[') && strings.Contains(behind, "'")
}
