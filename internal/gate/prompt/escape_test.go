package prompt

import (
	"strings"
	"testing"
)

// A run of spaces that would push the rest out of sight is shown as its length,
// outside of any quotes: no shell accepts that, and no argument looks like it.
func TestShellWordSpaces(t *testing.T) {
	const many = 41
	blanks := strings.Repeat(" ", many)
	for in, want := range map[string]string{
		"a" + blanks + "b":        "a(41 spaces)b",
		"a b" + blanks + "c&":     "'a b'(41 spaces)'c&'",
		blanks:                    "(41 spaces)",
		"a(41 spaces)b":           "'a(41 spaces)b'",
		"a'(41 spaces)'b":         `$'a\'(41 spaces)\'b'`,
		strings.Repeat(" ", 8):    "'        '",
		"x" + blanks + "y" + "\n": `x(41 spaces)$'y\n'`,
	} {
		if got := shellWord(in); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", in, got, want)
		}
	}
}

// Different arguments are never the same word.
func TestShellWordsDiffer(t *testing.T) {
	seen := make(map[string]string)
	for _, s := range []string{
		"", " ", "''", "a", "'a'", `\a`, "$'a'", "a b", `a\ b`, "\n", `\n`, `$'\n'`, "\xff", `\377`, "\ufffd", "p\u0430y", `p\u0430y`, "pay",
		strings.Repeat(" ", 9), "(9 spaces)", "a" + strings.Repeat(" ", 9), "a(9 spaces)",
	} {
		word := shellWord(s)
		if other, ok := seen[word]; ok {
			t.Errorf("%q and %q are both %s", s, other, word)
		}
		seen[word] = s
	}
}

// A pack's text keeps its paragraphs, and neither blanks nor empty lines push
// anything out of sight.
func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"one":                                 "one",
		"\n\n one\n\n\n\ntwo \n":              "one\n\ntwo",
		"a\tb":                                "a    b",
		"a" + strings.Repeat("\t", 500) + "b": "a(2000 spaces)b",
		"▸ network: none":                     `\u25b8 network: none`,
		"one\n" + strings.Repeat(" \n", 900) + "end": "one\n\nend",
		"": "",
	} {
		if got := words(in); got != want {
			t.Errorf("words(%q) = %q, want %q", in, got, want)
		}
	}
}
