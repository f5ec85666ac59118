package frontmatter

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// A repair is one change to a block that makes it readable.
type repair struct {
	line    int
	message string
	hint    string
}

// repairs change the text and parse it again. They are tried in this order, each on the
// result of the one before.
var repairs = []func([]line) ([]line, []repair){dropFences, quotePlain, splitIndicator, expandTabs, joinSurrogates}

// recover parses a block that is not valid YAML, reports how it was repaired, and returns
// the mapping. It returns nil after reporting an error, or if there are not enough steps
// left.
func (p *parser) recover(lines []line, cause error) *yaml.Node {
	if node, done := p.mend(lines); node != nil {
		p.recovered(done)
		return node
	}
	if !p.spend(stepsToMend(lines)) {
		return nil
	}

	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 2, Column: 1}
	before, parts := cutKeys(lines)
	if len(parts) == 0 {
		no, column := firstText(lines)
		p.report(diag.Error, CodeInvalid, no, column, "the frontmatter is not YAML ("+causeText(cause)+"), and no line of it begins with a key",
			"write each key as key: value on a line of its own")
		return nil
	}
	if no, _ := firstText(before); no > 0 {
		p.report(diag.Warning, CodeRecovered, no, 1, "text before the first key is left out", "remove it, or make it a comment with #")
	}
	for _, part := range parts {
		if pairs, err := p.parse(part); err == nil && isMapping(pairs) {
			p.take(node, pairs)
			continue
		}
		if pairs, done := p.mend(part); pairs != nil {
			p.recovered(done)
			p.take(node, pairs)
			continue
		}
		if p.spent {
			return nil
		}
		key, value := textOf(part)
		p.recovered([]repair{{part[0].no, fmt.Sprintf("the value of %q is not YAML and is read as its text", clip(key)), "quote the value, or write it as a block: key: | with the text indented below"}})
		p.take(node, &yaml.Node{Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: part[0].no, Column: 1},
			{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value, Line: part[0].no, Column: len(key) + 2},
		}})
	}
	return node
}

// take adds keys and values to a block that is parsed key by key. In such a block, a
// line that looks like a key may belong to a text that was not indented, so of equal keys
// the first counts.
func (p *parser) take(node, pairs *yaml.Node) {
	for i := 0; i+1 < len(pairs.Content); i += 2 {
		key := pairs.Content[i]
		if first := keyOf(node, key.Value); first != nil {
			p.recovered([]repair{{key.Line, fmt.Sprintf("the second %q is taken for a line of the text before it, and the one on line %d counts", clip(key.Value), first.Line), "indent the text, or remove one of the two"}})
			continue
		}
		node.Content = append(node.Content, key, pairs.Content[i+1])
	}
}

// keyOf returns the key called name of a mapping, or nil.
func keyOf(node *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i]
		}
	}
	return nil
}

// dropFences removes a code fence around the keys.
func dropFences(lines []line) ([]line, []repair) {
	first, last := 0, len(lines)-1
	for first < last && strings.TrimSpace(lines[first].text) == "" {
		first++
	}
	for last > first && strings.TrimSpace(lines[last].text) == "" {
		last--
	}
	if first >= last || !isFence([]byte(lines[first].text)) {
		return lines, nil
	}
	end := last + 1
	if isFence([]byte(lines[last].text)) {
		end = last
	}
	return lines[first+1 : end], []repair{{lines[first].no, fmt.Sprintf("the frontmatter is inside a code fence, and the line %q is left out", clip(lines[first].text)), "remove the lines of the fence"}}
}

func (p *parser) recovered(done []repair) {
	for _, r := range done {
		p.report(diag.Warning, CodeRecovered, r.line, 1, r.message, r.hint)
	}
}

// mend tries the repairs until the lines parse as a mapping. It returns nil if they
// never do, or if there are not enough steps left.
func (p *parser) mend(lines []line) (*yaml.Node, []repair) {
	var all []repair
	for _, fix := range repairs {
		if !p.spend(stepsToMend(lines)) {
			return nil, nil
		}
		fixed, done := fix(lines)
		if len(done) == 0 {
			continue
		}
		lines, all = fixed, append(all, done...)
		if node, err := p.parse(lines); err == nil && isMapping(node) {
			return node, all
		}
	}
	return nil, nil
}

func isMapping(n *yaml.Node) bool { return n != nil && n.Kind == yaml.MappingNode }

// An entry is a line "key: value" that is not part of another value.
type entry struct {
	at     int    // index of its line
	end    int    // index after the last line of its value
	indent int    // column of the key
	key    string // as written
	start  int    // offset of the value in the line
	value  string // the rest of the line, not empty
}

// entries finds the lines "key: value" whose value begins on that line, at any depth.
// It skips lines that belong to another value.
func entries(lines []line) []entry {
	var found []entry
	for i := 0; i < len(lines); {
		text := lines[i].text
		at := indentOf(text)
		for strings.HasPrefix(text[at:], "- ") {
			at += 2 + indentOf(text[at+2:])
		}
		colon := keyEnd(text[at:])
		if colon < 0 {
			i++
			continue
		}
		start := at + colon + 1
		start += indentOf(text[start:])
		value := strings.TrimRight(text[start:], " \t")
		if value == "" || value[0] == '#' {
			i++ // a nested block, which begins on the next line
			continue
		}
		end := i + 1
		for j := end; j < len(lines); j++ {
			if strings.TrimSpace(lines[j].text) == "" {
				continue
			}
			if indentOf(lines[j].text) <= at {
				break
			}
			end = j + 1
		}
		found = append(found, entry{i, end, at, text[at : at+colon], start, value})
		i = end
	}
	return found
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// keyEnd returns the offset of the colon after a plain or quoted key at the head of s,
// or -1.
func keyEnd(s string) int {
	end := 0
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		i := strings.IndexByte(s[1:], s[0])
		if i < 1 {
			return -1
		}
		end = i + 2
	} else {
		for i, r := range s {
			word := r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
			if !word && (i == 0 || !strings.ContainsRune(".-/$", r)) {
				end = i
				break
			}
			end = i + utf8.RuneLen(r)
		}
	}
	if end == 0 || end >= len(s) || s[end] != ':' {
		return -1
	}
	if end+1 < len(s) && s[end+1] != ' ' && s[end+1] != '\t' {
		return -1
	}
	return end
}

// quotePlain quotes plain values that contain ": ".
func quotePlain(lines []line) ([]line, []repair) {
	fixed := append([]line(nil), lines...)
	var done []repair
	for _, e := range entries(lines) {
		if strings.ContainsRune("\"'[{|>&*!%@`,#]}", rune(e.value[0])) || strings.HasPrefix(e.value, "- ") || strings.HasPrefix(e.value, "? ") {
			continue
		}
		holds := holdsColon(e.value)
		for _, l := range lines[e.at+1 : e.end] {
			holds = holds || holdsColon(strings.TrimSpace(l.text))
		}
		if !holds {
			continue
		}
		quote := func(s string) string { return strings.ReplaceAll(s, "'", "''") }
		fixed[e.at].text = lines[e.at].text[:e.start] + "'" + quote(e.value)
		for i := e.at + 1; i < e.end; i++ {
			fixed[i].text = quote(lines[i].text)
		}
		fixed[e.end-1].text = strings.TrimRight(fixed[e.end-1].text, " \t") + "'"
		done = append(done, repair{lines[e.at].no, fmt.Sprintf("the value of %q holds a colon and a space, and is read as if it were quoted", clip(e.key)), "put the value in quotes"})
	}
	return fixed, done
}

func holdsColon(s string) bool {
	return strings.Contains(s, ": ") || strings.Contains(s, ":\t") || strings.HasSuffix(s, ":")
}

var indicatorText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([|>][0-9+-]{0,2})[ \t]+([^#\s].*)$`) })

// splitIndicator moves text that follows a block indicator to the first line
// of the block.
func splitIndicator(lines []line) ([]line, []repair) {
	var fixed []line
	var done []repair
	next := 0
	for _, e := range entries(lines) {
		m := indicatorText().FindStringSubmatch(e.value)
		if m == nil {
			continue
		}
		indent := strings.Repeat(" ", e.indent+2)
		for _, l := range lines[e.at+1 : e.end] {
			if strings.TrimSpace(l.text) != "" {
				indent = l.text[:indentOf(l.text)]
				break
			}
		}
		l := lines[e.at]
		fixed = append(fixed, lines[next:e.at]...)
		fixed = append(fixed, line{l.text[:e.start] + m[1], l.no}, line{indent + m[2], l.no})
		next = e.at + 1
		done = append(done, repair{l.no, fmt.Sprintf("text follows the block indicator of %q, and is read as the block's first line", clip(e.key)), "put the text on the next line, indented"})
	}
	return append(fixed, lines[next:]...), done
}

// expandTabs replaces each tab in the indentation with two spaces.
func expandTabs(lines []line) ([]line, []repair) {
	fixed := append([]line(nil), lines...)
	first, count := 0, 0
	for i, l := range lines {
		at := indentOf(l.text)
		if strings.TrimSpace(l.text) == "" || !strings.Contains(l.text[:at], "\t") {
			continue
		}
		fixed[i].text = strings.ReplaceAll(l.text[:at], "\t", "  ") + l.text[at:]
		if count++; count == 1 {
			first = l.no
		}
	}
	if count == 0 {
		return lines, nil
	}
	return fixed, []repair{{first, "tabs indent " + diag.Count(count, "line") + ", and each is read as two spaces", "indent with spaces"}}
}

var surrogates = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})`)
})

// joinSurrogates replaces a pair of surrogate escapes, as JSON writes them, in a
// double-quoted value with the character it stands for.
func joinSurrogates(lines []line) ([]line, []repair) {
	fixed := append([]line(nil), lines...)
	var done []repair
	for i, l := range lines {
		var b strings.Builder
		at := 0
		var q quotes
		for _, m := range surrogates().FindAllStringSubmatchIndex(l.text, -1) {
			if q.read(l.text[q.at:m[0]]); !q.in || q.escaped {
				continue
			}
			high, err1 := strconv.ParseUint(l.text[m[2]:m[3]], 16, 16)
			low, err2 := strconv.ParseUint(l.text[m[4]:m[5]], 16, 16)
			if err1 != nil || err2 != nil {
				continue
			}
			b.WriteString(l.text[at:m[0]])
			b.WriteRune(utf16.DecodeRune(rune(high), rune(low)))
			at = m[1]
		}
		if at == 0 {
			continue
		}
		b.WriteString(l.text[at:])
		fixed[i].text = b.String()
		done = append(done, repair{l.no, `a character is written as two \u escapes, and is read as that character`, "write the character itself"})
	}
	return fixed, done
}

// quotes tracks whether the text read so far of a line ends inside a double-quoted
// value, and after an open backslash. Each character is read only once, since a line
// may have ten thousand escapes.
type quotes struct {
	at          int
	in, escaped bool
}

// read continues with the next part of the line.
func (q *quotes) read(text string) {
	for i := range len(text) {
		switch {
		case q.escaped:
			q.escaped = false
		case q.in && text[i] == '\\':
			q.escaped = true
		case text[i] == '"':
			q.in = !q.in
		}
	}
	q.at += len(text)
}

// cutKeys splits lines before every line that has a key at the margin. before holds
// the lines ahead of the first key.
func cutKeys(lines []line) (before []line, parts [][]line) {
	start := -1
	for i, l := range lines {
		if keyEnd(l.text) < 0 {
			continue
		}
		if start >= 0 {
			parts = append(parts, lines[start:i])
		} else {
			before = lines[:i]
		}
		start = i
	}
	if start >= 0 {
		parts = append(parts, lines[start:])
	}
	return before, parts
}

// blockIndicator matches the indicator before a block of text. It is not part of the
// text.
var blockIndicator = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[|>][0-9+-]{0,2}([ \t]+|$)`) })

// textOf returns a part's key and the text of its value, without common indentation,
// trailing spaces and surrounding quotes.
func textOf(part []line) (key, value string) {
	colon := keyEnd(part[0].text)
	key = strings.Trim(part[0].text[:colon], `"'`)
	first := strings.TrimSpace(part[0].text[colon+1:])
	common := -1
	for _, l := range part[1:] {
		if strings.TrimSpace(l.text) == "" {
			continue
		}
		if n := indentOf(l.text); common < 0 || n < common {
			common = n
		}
	}
	texts := []string{first}
	for _, l := range part[1:] {
		text := strings.TrimRight(l.text, " \t")
		texts = append(texts, text[min(max(common, 0), len(text)):])
	}
	texts[0] = blockIndicator().ReplaceAllString(texts[0], "")
	value = strings.TrimSpace(strings.Join(texts, "\n"))
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return strings.ToValidUTF8(key, "\ufffd"), strings.ToValidUTF8(value, "\ufffd")
}

// firstText returns the line and column of the first text that is not a comment, or 0.
func firstText(lines []line) (no, column int) {
	for _, l := range lines {
		if t := strings.TrimSpace(l.text); t != "" && t[0] != '#' {
			return l.no, indentOf(l.text) + 1
		}
	}
	return 0, 0
}

var causePlace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: (line \d+: )?`) })

// causeText returns the parser's message without its line number (it counts
// differently) and with the pack's non-ASCII characters escaped.
func causeText(err error) string {
	text := causePlace().ReplaceAllString(err.Error(), "")
	quoted := strconv.QuoteToASCII(clip(text))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
