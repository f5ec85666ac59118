// Package toolname knows which names are valid for tools, and which of them a person, a
// client or a model could confuse.
//
// It does not know which names are taken, and renames nothing.
package toolname

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Valid reports whether every client accepts name.
func Valid(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// Printable reports whether name can be shown unchanged, even if some client could not call
// a tool with it.
func Printable(name string) bool {
	return Valid(strings.NewReplacer(".", "_", ":", "_", "/", "_").Replace(name))
}

// Fold maps names that a person, a client or a model could confuse to the same text. It
// ignores letter case, Unicode composition and width, the difference between "-", "_" and
// ".", and invisible characters.
func Fold(name string) string {
	name = norm.NFKC.String(name)
	name = strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == '.':
			return '_'
		case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Variation_Selector), r == '\u034f', r == '\u3164', r == '\u2800', r == '\u115f', r == '\u1160':
			return -1
		}
		// The smallest of all letters that differ only in case.
		least := r
		for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
			least = min(least, c)
		}
		return least
	}, name)
	return norm.NFKC.String(name)
}

// skeleton returns a name folded as by [Fold], without separators, and with look-alike ASCII
// characters unified.
func skeleton(name string) string {
	return strings.NewReplacer("_", "", "0", "o", "1", "l", "i", "l").Replace(strings.ToLower(Fold(name)))
}

// Reserved returns why a tool cannot be called name, or "". People decide by names, and
// rules and the log use them.
func Reserved(name string) string {
	switch own := skeleton(name); {
	case strings.HasPrefix(own, skeleton("capability_packs")):
		return "it is one of this server's own names"
	case strings.HasPrefix(Fold(name), Fold("mcp__")):
		return "it looks like another server's tool"
	}
	// A name that is only listed may have several parts.
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == ':' }) {
		if skeleton(part) == skeleton("exec_best_effort") {
			return "it is what this server calls commands that no pack declares"
		}
	}
	return ""
}
