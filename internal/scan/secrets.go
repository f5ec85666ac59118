package scan

import (
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/scan/secrets"
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
			if secrets.IsKeyLine(line) {
				s.report(f, findings.Hit{Rule: ruleSecret, Line: i + 1, Quote: "-----BEGIN PRIVATE KEY----- [redacted]", Matched: f.bytesOf(i+1, i+1)})
			}
			inKey = false
			continue
		}
		if hidden, ok := secrets.InLine(line); ok {
			s.report(f, findings.Hit{Rule: ruleSecret, Line: i + 1, Quote: hidden, Matched: f.bytesOf(i+1, i+1)})
		}
	}
}
