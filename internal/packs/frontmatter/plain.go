package frontmatter

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxPlain is how many lines a block has, at most, that is read as a plain one.
const maxPlain = 100

// plainBlock is [parseBlock] for the blocks that most documents have: each line is
// a key and a text, on that line. It takes a tenth of the time that a parser of
// YAML takes, and gives the same to the byte. It returns nil for everything of
// which that is not plain to see.
func plainBlock(lines []line) *yaml.Node {
	if n := len(lines); n > 0 && lines[n-1].text == "" {
		lines = lines[:n-1]
	}
	if len(lines) == 0 || len(lines) > maxPlain {
		return nil
	}
	// All nodes at once: the top, and two for each line.
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
		// A copy: who keeps the text does not keep the whole block with it.
		*v = yaml.Node{Kind: yaml.ScalarNode, Style: style, Tag: "!!str", Value: strings.Clone(text), Line: l.no, Column: len(key) + 3}
		content = append(content, k, v)
	}
	nodes[0].Content = content
	return &nodes[0]
}

// isPlainKey reports whether a key is a text to YAML, however it is parsed.
func isPlainKey(key string) bool {
	const most = 100 // a key of more than 1,024 bytes is none
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

// plainText returns what a value on one line says, when it is a text to YAML: one
// that begins with a letter, or one in quotes without a quote or an escape in it.
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

// isOneLine reports whether YAML takes each character of a text as it is.
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

// isWord reports whether some YAML reads a text as something else: the longest of
// those that begin with a letter is false.
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
