package cachename

import (
	"strings"
	"testing"
)

func TestValid(t *testing.T) {
	for _, name := range []string{"go-build", "a", "7", "ccache_4.10", "npm..x", "com", "COM10", "console", "lpt", "nullify.x", strings.Repeat("a", 64)} {
		if !Valid(name) {
			t.Errorf("Valid(%q) = false, want true", name)
		}
	}
	for _, name := range []string{
		"", ".", "..", ".hidden", "-rf", "_x", "a.", "a/b", `a\b`, "../x", "a b", "a\x00", "a\n", "ä", "a:b", "~", "$HOME", "CON", "nul.txt", "Com1", "LPT9.x", "aux",
		strings.Repeat("a", 65),
	} {
		if Valid(name) {
			t.Errorf("Valid(%q) = true, want false", name)
		}
	}
}
