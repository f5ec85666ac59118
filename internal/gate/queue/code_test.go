package queue

import (
	"strings"
	"testing"
)

func TestCodes(t *testing.T) {
	seen := make(map[string]bool)
	used := make(map[rune]bool)
	for range 5000 {
		code := newCode()
		if len(code) != 9 || code[4] != '-' || seen[code] {
			t.Fatalf("newCode() = %q, want eight characters with a dash in the middle, and another each time", code)
		}
		seen[code] = true
		for _, r := range strings.ReplaceAll(code, "-", "") {
			used[r] = true
			if !strings.ContainsRune(codeAlphabet, r) {
				t.Fatalf("newCode() = %q, which has %q", code, r)
			}
		}
		if got := canonicalCode(code); got != code {
			t.Fatalf("canonicalCode(%q) = %q", code, got)
		}
	}
	if len(used) != len(codeAlphabet) {
		t.Errorf("%d different characters in 40,000, want all %d", len(used), len(codeAlphabet))
	}
	for _, r := range "01OIlLU" {
		if strings.ContainsRune(codeAlphabet, r) {
			t.Errorf("the alphabet has %q, which is read as another", r)
		}
	}
}
