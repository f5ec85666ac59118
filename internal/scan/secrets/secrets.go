// Package secrets says whether a line has a key, token or password that is not an example.
//
// Package tokens knows what tokens look like. Nothing is asked whether one is valid.
package secrets

import (
	"regexp"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
	"github.com/packs-mcp/packs-mcp/internal/tokens"
)

// IsKeyLine reports whether a line may be the first of a private key. An example has dots,
// or words, there.
func IsKeyLine(line string) bool {
	key := strings.Trim(line, " \t\"'`+#*>")
	return len(key) >= 40 && keyLine().MatchString(key) && !isExample(key)
}

// InLine reports whether a line has a token that is not an example, and returns the line
// without its tokens.
func InLine(line string) (hidden string, ok bool) {
	hidden = tokens.Hide(line)
	if hidden == line || isExample(removed(line, hidden)) || saysExample().MatchString(line) {
		return hidden, false
	}
	return hidden, !bearer().MatchString(line) || known().MatchString(line) // anything may follow the word bearer
}

var (
	keyLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9+/=]+(\\n.*)?$`) })
	bearer  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\b(bearer|authorization)\b`) })
	// saysExample matches a line that says its token is only an example.
	saysExample = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(example|sample|placeholder|dummy|fake|revoked|invalid)\b`)
	})
	known = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(gh[opsur]_|github_pat_|gl[a-z]+-|sk-|AKIA|ASIA|xox[a-z]-|xapp-|npm_|pypi-|AIza|hf_|SG\.|dop_v1_|[srp]k_live_|eyJ)`)
	})
)

// removed returns the part of a line that Hide removed, with a little context.
func removed(line, hidden string) string {
	before, _, _ := strings.Cut(hidden, tokens.Mark)
	_, after, _ := strings.Cut(hidden, tokens.Mark)
	if len(before)+len(after) > len(line) {
		return line
	}
	if i := strings.LastIndex(hidden, tokens.Mark); i >= 0 {
		after = hidden[i+len(tokens.Mark):]
	}
	return line[len(before) : len(line)-len(after)]
}

// isExample reports whether a token is a typical example: it contains a word that says
// so, is in alphabetical order, or has few different letters.
func isExample(token string) bool {
	lower := letters.Lower(token)
	for _, word := range []string{"example", "xxxx", "your", "placeholder", "abcdef", "123456", "sample", "dummy", "test", "fake", "redacted", "changeme", "secret", "000000", "...", "demo", "here", "<", "{", "$"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	letters := map[rune]bool{}
	for _, r := range token {
		letters[r] = true
	}
	return len(letters) < 10
}
