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
			r, n := utf8.DecodeRuneInString(text[at:])
			if !isWord(r) {
				at += n
				continue
			}
			end, hump, alone := at+n, at, unspaced(r)
			lower := unicode.IsLower(r)
			for end < len(text) && !alone {
				r, n := utf8.DecodeRuneInString(text[end:])
				if !isWord(r) || unspaced(r) {
					break
				}
				if lower && unicode.IsUpper(r) {
					if !give(yield, text[hump:end]) {
						return
					}
					hump = end
				}
				lower = unicode.IsLower(r)
				end += n
			}
			if end == at+1 && isASCII(text[at:end]) {
				end += len(languageSign(text[end:]))
			}
			if hump > at && !give(yield, text[hump:end]) || !give(yield, text[at:end]) {
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

func give(yield func(string) bool, word string) bool {
	return yield(strings.ToLower(cut(word, maxWord)))
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func unspaced(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// fold removes accents from letters.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(text))
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
