package problem

import (
	"regexp"
	"strings"
	"testing"
)

func TestPlainKeys(t *testing.T) {
	key := regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)
	for _, s := range []string{
		"", "a", "Z", "_", "9", "a9", "9a", "A_B", "a-b", "a.b", "packs[0].path", "[", "]", "a b", "a\n", "\na", "é", "aé", "a\x00", "a\xff", "a{", "a@", "a`", "a/", "a:",
		strings.Repeat("a", 80), strings.Repeat("a", 81), strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("é", 40), strings.Repeat("0", 80),
	} {
		if got, want := isPlainKey(s), key.MatchString(s); got != want {
			t.Errorf("isPlainKey(%q) = %v, want %v", s, got, want)
		}
	}
}
