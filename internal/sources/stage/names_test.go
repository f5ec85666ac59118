package stage

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// The short way through ASCII names leads to the same result, and other names do not
// take it.
func TestVisible(t *testing.T) {
	for c := range 0x80 {
		name := "A" + string(rune(c)) + "z"
		if got, want := visible(name), fold(name); got != want {
			t.Errorf("visible(%q) = %q, want %q", name, got, want)
		}
		if unseen(rune(c)) {
			t.Errorf("%q is unseen", rune(c))
		}
	}
	for name, want := range map[string]string{"Straße": "strasse", norm.NFD.String("Ä"): "ä", "K": "k", ".g\u200cit": ".git", "a\u00adb": "ab"} {
		if got := visible(name); got != want {
			t.Errorf("visible(%q) = %q, want %q", name, got, want)
		}
		if got := visible(strings.Repeat("A", 3) + name); got != "aaa"+want {
			t.Errorf("visible(%q) = %q", "AAA"+name, got)
		}
	}
}
