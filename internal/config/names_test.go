package config

import (
	"regexp"
	"strings"
	"testing"
)

func TestEnvNames(t *testing.T) {
	env := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	for _, s := range []string{
		"", "a", "Z", "_", "9", "a9", "9a", "A_B", "a-b", "a.b", "packs[0].path", "[", "]", "a b", "a\n", "\na", "é", "aé", "a\x00", "a\xff", "a{", "a@", "a`", "a/", "a:",
		strings.Repeat("a", 80), strings.Repeat("a", 81), strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("é", 40), strings.Repeat("0", 80),
	} {
		if got, want := isEnvName(s), env.MatchString(s); got != want {
			t.Errorf("isEnvName(%q) = %v, want %v", s, got, want)
		}
	}
}
