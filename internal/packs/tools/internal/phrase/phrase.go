// Package phrase formats texts from packs for messages. It does not escape them.
package phrase

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clip shortens a name for a message.
func Clip(s string) string { return Cut(s, 100) }

// Cut truncates s to at most limit characters, of which the last is "…" if it did.
func Cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := 0
	for i := range s {
		if runes == limit-1 {
			return s[:i] + "…"
		}
		runes++
	}
	return s
}

// Quoted returns names in quotes, separated by commas.
func Quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}
