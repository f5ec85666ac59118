package scan

import (
	"regexp"
	"testing"
)

// isListItem agrees with CommonMark's pattern, without its cost.
func TestIsListItem(t *testing.T) {
	want := regexp.MustCompile(`^([-*+]|\d{1,9}[.)])\s`)
	for _, line := range []string{
		"- x", "* x", "+ x", "-x", "-", "- ", "-\tx", "--", "1. x", "1) x", "1.x", "1.", "12345678. x", "123456789. x", "1234567890. x", "1", "1 x",
		"", "x", "é", "-\u00a0x", "-\vx", "–", "a. x", "1: x", ". x", ") x", "1.. x", "1.\fx",
	} {
		if got := isListItem(line); got != want.MatchString(line) {
			t.Errorf("isListItem(%q) = %v", line, got)
		}
	}
}
