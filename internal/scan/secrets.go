package scan

import (
	"regexp"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/tokens"
)

// secrets looks for keys and tokens that are not examples.
func (s *scanner) secrets(f *file) {
	if !tokens.MayHave(f.text) { // none of its lines has a mark either
		return
	}
	inKey := false
	for i, line := range f.lines {
		if strings.Contains(line, "PRIVATE KEY-----") {
			if strings.Contains(line, "-----BEGIN") {
				inKey = true
				continue
			}
			inKey = false
		}
		if inKey {
			// The first line of a key: an example has dots, or words, there.
			if key := strings.Trim(line, " \t\"'`+#*>"); len(key) >= 40 && keyLine().MatchString(key) && !isExample(key) {
				s.report(f, findings.Hit{Rule: ruleSecret, Line: i + 1, Quote: "-----BEGIN PRIVATE KEY----- [redacted]", Matched: f.bytesOf(i+1, i+1)})
			}
			inKey = false
			continue
		}
		hidden := tokens.Hide(line)
		if hidden == line || isExample(removed(line, hidden)) || saysExample().MatchString(line) {
			continue
		}
		if bearer().MatchString(line) && !known().MatchString(line) {
			continue // anything may follow that word
		}
		s.report(f, findings.Hit{Rule: ruleSecret, Line: i + 1, Quote: hidden, Matched: f.bytesOf(i+1, i+1)})
	}
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
	lower := lowered(token)
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
