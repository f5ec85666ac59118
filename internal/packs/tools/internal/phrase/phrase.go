// Package phrase puts texts of packs into messages. It does not escape them.
package phrase

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clip shortens a name for a message.
func Clip(s string) string { return Cut(s, 100) }

// Cut shortens s to at most limit characters, the last of them "…" when
// something was left out.
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

// Quoted returns names in quotes, with commas between them.
func Quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}
