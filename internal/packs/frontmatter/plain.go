package frontmatter

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxPlain is how many lines a plain block may have.
const maxPlain = 100

// plainBlock parses the kind of block that most documents have: each line is a key and
// a text. It takes a tenth of the time of a YAML parser, and the result is identical.
// It returns nil for every block that may be anything else.
func plainBlock(lines []line) *yaml.Node {
	if n := len(lines); n > 0 && lines[n-1].text == "" {
		lines = lines[:n-1]
	}
	if len(lines) == 0 || len(lines) > maxPlain {
		return nil
	}
	// One allocation for all nodes: the top, and two for each line.
	nodes := make([]yaml.Node, 1+2*len(lines))
	content := make([]*yaml.Node, 0, 2*len(lines))
	nodes[0] = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: lines[0].no, Column: 1}
	for i, l := range lines {
		key, rest, ok := strings.Cut(l.text, ": ")
		if !ok || !isPlainKey(key) {
			return nil
		}
		text, style, ok := plainText(rest)
		if !ok {
			return nil
		}
		k, v := &nodes[1+2*i], &nodes[2+2*i]
		*k = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: l.no, Column: 1}
		// Cloned, so that keeping the text does not keep the whole block in memory.
		*v = yaml.Node{Kind: yaml.ScalarNode, Style: style, Tag: "!!str", Value: strings.Clone(text), Line: l.no, Column: len(key) + 3}
		content = append(content, k, v)
	}
	nodes[0].Content = content
	return &nodes[0]
}

// isPlainKey reports whether every YAML parser reads a key as a text.
func isPlainKey(key string) bool {
	const most = 100 // YAML allows at most 1,024 bytes
	if key == "" || len(key) > most || isWord(key) {
		return false
	}
	for i := range len(key) {
		c := key[i]
		if !isLetter(c) && (i == 0 || c != '-' && c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// plainText returns the text of a value on one line. ok is false unless the value
// begins with a letter, or is in quotes and holds no quote or escape.
func plainText(s string) (text string, style yaml.Style, ok bool) {
	if s == "" {
		return "", 0, false
	}
	switch quote := s[0]; {
	case quote == '"' || quote == '\'':
		if len(s) < 2 || s[len(s)-1] != quote {
			return "", 0, false
		}
		text = s[1 : len(s)-1]
		style = yaml.DoubleQuotedStyle
		if quote == '\'' {
			style = yaml.SingleQuotedStyle
		}
		if strings.IndexByte(text, quote) >= 0 || quote == '"' && strings.IndexByte(text, '\\') >= 0 {
			return "", 0, false
		}
	case isLetter(quote):
		text = s
		if last := s[len(s)-1]; last == ' ' || last == ':' || isWord(s) || strings.Contains(s, ": ") || strings.Contains(s, " #") {
			return "", 0, false
		}
	default:
		return "", 0, false
	}
	return text, style, isOneLine(text)
}

// isOneLine reports whether YAML reads each character of a text verbatim.
func isOneLine(text string) bool {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r < 0xa0 || r > 0xd7ff || r == '\u2028' || r == '\u2029' {
			return false
		}
		i += size
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// isWord reports whether some version of YAML reads a text as another type. Of the
// words that begin with a letter, "false" is the longest.
func isWord(s string) bool {
	if len(s) > len("false") {
		return false
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return true
	}
	return false
}
