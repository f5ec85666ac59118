package search

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// words yields the words of a text in the form in which they are compared: in lower
// case, without accents. Characters other than letters and digits separate words. So
// does an upper-case letter after a lower-case one; then the whole is yielded as a
// word too. In scripts that are written without spaces, each character is a word. C#
// and C++ are words.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !isASCII(text) {
			text = fold(text)
		}
		for at := 0; at < len(text); {
			kind, n := kindAt(text, at)
			if kind == separator {
				at += n
				continue
			}
			end, hump := at+n, at
			isLower := n == 1 && kind != upper // so far; a character outside of ASCII may change in lower case
			for end < len(text) && kind != unspaced {
				if kind == lower && 'a' <= text[end] && text[end] <= 'z' { // almost always
					end++
					continue
				}
				next, n := kindAt(text, end)
				if next == separator || next == unspaced {
					break
				}
				if kind == lower && next == upper {
					if !give(yield, text[hump:end], isLower) {
						return
					}
					hump = end
				}
				isLower = isLower && n == 1 && next != upper
				kind = next
				end += n
			}
			if end == at+1 && text[at] < utf8.RuneSelf {
				end += len(languageSign(text[end:]))
			}
			if hump > at && !give(yield, text[hump:end], isLower) || !give(yield, text[at:end], isLower) {
				return
			}
			at = end
		}
	}
}

// languageSign returns what follows a single letter to make the name of a programming
// language: the sign of C# or C++. It is empty for anything else.
func languageSign(rest string) string {
	for _, sign := range []string{"#", "++"} {
		if strings.HasPrefix(rest, sign) {
			return sign
		}
	}
	return ""
}

// give yields a word in lower case. isLower says that it is in lower case already.
func give(yield func(string) bool, word string, isLower bool) bool {
	word = cut(word, maxWord)
	if !isLower {
		word = strings.ToLower(word)
	}
	return yield(word)
}

// A kind of character says what it does to a word.
type kind uint8

const (
	separator kind = iota
	other          // a digit, or a letter that is in neither case
	lower
	upper
	unspaced // in a script without spaces: a word by itself
)

// kindAt returns the kind of the character at text[at], and its length in bytes.
func kindAt(text string, at int) (kind, int) {
	switch c := text[at]; {
	case 'a' <= c && c <= 'z':
		return lower, 1
	case c >= utf8.RuneSelf:
		return foreignAt(text, at)
	case 'A' <= c && c <= 'Z':
		return upper, 1
	case '0' <= c && c <= '9':
		return other, 1
	}
	return separator, 1
}

// foreignAt is kindAt for a character outside of ASCII.
func foreignAt(text string, at int) (kind, int) {
	r, n := utf8.DecodeRuneInString(text[at:])
	switch {
	case !unicode.IsLetter(r) && !unicode.IsDigit(r):
		return separator, n
	case r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return unspaced, n
	case unicode.IsLower(r):
		return lower, n
	case unicode.IsUpper(r):
		return upper, n
	}
	return other, n
}

// fold removes accents from letters.
func fold(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for len(text) > 0 {
		// Normalizing is slow, and what it makes of a character does not depend on
		// those beyond the next one in ASCII.
		n := 0
		for n < len(text) && text[n] < utf8.RuneSelf {
			n++
		}
		b.WriteString(text[:n])
		text = text[n:]
		for n = 0; n < len(text) && text[n] >= utf8.RuneSelf; {
			n++
		}
		b.WriteString(strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFKD.String(strings.ToValidUTF8(text[:n], "\ufffd"))))
		text = text[n:]
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cut returns the beginning of s, in whole characters and at most max bytes.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// near reports whether b is a with one letter added, removed or replaced, or with two
// adjacent letters swapped. It compares bytes: in letters outside of ASCII, one of
// two or three bytes may be wrong.
func near(a, b string) bool {
	if d := len(a) - len(b); d < -1 || d > 1 {
		return false
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	x, y := a[i:], b[i:]
	switch {
	case len(x) < len(y):
		return x == y[1:]
	case len(x) > len(y):
		return x[1:] == y
	case len(x) == 0:
		return false // they are equal
	}
	return x[1:] == y[1:] || len(x) > 1 && x[0] == y[1] && x[1] == y[0] && x[2:] == y[2:]
}
