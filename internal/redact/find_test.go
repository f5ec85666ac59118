package redact

import (
	"slices"
	"strings"
	"testing"
)

// Overlapping secrets are removed completely.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		text  string
		words []string // longest first
		want  string
	}{
		{"abcdefgh", []string{"abcdef", "cdefgh"}, "[redacted]"},
		{"xabcdefghx", []string{"abcdefgh", "bcde", "efgh"}, "x[redacted]x"},
		{"xabcdefghx", []string{"abcdefgz", "abcde", "efgh"}, "x[redacted]x"},
		{"aaaaaaaa", []string{"aaaaa"}, "[redacted]"},
		{"abcabcab", []string{"abcab"}, "[redacted]"},
		{"abcdabcd", []string{"abcd"}, "[redacted][redacted]"},
		{"aabcdaabde", []string{"aabde", "abcd"}, "a[redacted][redacted]"},
		{"abcdefg", []string{"abcdefgh", "abcdx"}, "abcdefg"},
		{"\x00\xff\xfe\xff\xff\xff\x00", []string{"\xff\xfe\xff\xff"}, "\x00[redacted]\xff\x00"},
		{"none", []string{"some"}, "none"},
		{"abc", []string{"abcd"}, "abc"},
		{"", []string{"abcd"}, ""},
		{"text", nil, "text"},
	} {
		if got := cutSpans(c.text, newFinder(c.words).find(c.text)); got != c.want {
			t.Errorf("%q without %q = %q, want %q", c.text, c.words, got, c.want)
		}
	}
}

// FuzzFind: each byte that belongs to a word, and no other, is in a span.
func FuzzFind(f *testing.F) {
	f.Add("abcabcabcab", "abcab", "cabc", "bcabcab")
	f.Add("aaaaaaaaaab", "aaaa", "aaaaab", "aaab")
	f.Add("\xff\x00\xff\x00\xff\x00", "\x00\xff\x00\xff", "abcd", "")
	f.Fuzz(func(t *testing.T, text, a, b, c string) {
		var words []string
		want := make([]bool, len(text))
		for _, w := range []string{a, b, c} {
			if len(w) < minSecret {
				continue
			}
			words = append(words, w)
			for from := range len(text) { // even in the middle of a character
				for i := 0; strings.HasPrefix(text[from:], w) && i < len(w); i++ {
					want[from+i] = true
				}
			}
		}
		slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })
		got := make([]bool, len(text))
		last := 0
		for _, s := range newFinder(words).find(text) {
			if s.from < last {
				t.Errorf("find(%q) of %q: the spans are not sorted", text, words)
			}
			last = s.from
			for i := s.from; i < s.to; i++ {
				got[i] = true
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("find(%q) of %q covers %v, want %v", text, words, got, want)
		}
	})
}

// The work is bounded for any input: when the bound is reached, everything is hidden.
func TestHideIsBounded(t *testing.T) {
	const size = 1 << 20
	many := make([]string, 0, 1500)
	for i := range cap(many) {
		many = append(many, strings.Repeat("a", i%13)+"b"+strings.Repeat("c", i%17)+string(rune('a'+i%26)))
	}
	for name, c := range map[string]struct{ text, secret string }{
		"one letter": {strings.Repeat("a", size), strings.Repeat("a", 1000) + "b"},
		"nearly":     {strings.Repeat(strings.Repeat("a", 999)+"c", size/1000), strings.Repeat("a", 1000)},
		"all of it":  {strings.Repeat("ab", size/2), "abab"},
		"long":       {strings.Repeat("a", size), strings.Repeat("a", 20_000)},
	} {
		got := New(append([]string{c.secret}, many...)...).Hide(c.text)
		if strings.Contains(got, c.secret) {
			t.Errorf("%s: the secret is still there", name)
		}
	}
	made := New(strings.Repeat("a", size/2) + "b")
	if got := made.Hide(strings.Repeat("a", size)); got != Mark {
		t.Errorf("Hide of a text made to take long = %d bytes, want nothing but the mark", len(got))
	}
}
