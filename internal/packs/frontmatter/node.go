package frontmatter

import (
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// Bounds on what one block may expand to. A block beyond them is treated as invalid
// YAML; no frontmatter seen in the wild comes close.
const (
	maxDepth = 64
	maxNodes = 10_000
)

var (
	errTooDeep  = fmt.Errorf("values are nested deeper than %d levels", maxDepth)
	errTooMany  = fmt.Errorf("more than %d values", maxNodes)
	errRecurses = errors.New("an anchor contains itself")
	errKey      = errors.New("a key is a list or mapping")
)

// A line is one line of a block, with its number in the file.
type line struct {
	text string
	no   int
}

// splitLines splits a block into lines. The first has number 2: line 1 of the file is
// the opening line.
func splitLines(block string) []line {
	texts := strings.Split(block, "\n")
	lines := make([]line, len(texts))
	for i, t := range texts {
		lines[i] = line{strings.TrimSuffix(t, "\r"), i + 2}
	}
	return lines
}

// parse parses lines as one YAML document and returns its top node, or nil for an
// empty document. Aliases are expanded, line numbers are those of the file, and every
// key of every mapping is a scalar. The error is errSpent if there are not enough
// steps left.
func (p *parser) parse(lines []line) (node *yaml.Node, err error) {
	if node := plainBlock(lines); node != nil {
		return node, nil
	}
	if !p.spend(stepsToParse(lines)) {
		return nil, errSpent
	}
	return parseYAML(lines)
}

// parseYAML is parse for any block, without a limit on steps.
func parseYAML(lines []line) (node *yaml.Node, err error) {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(b.String()), &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 {
		return nil, nil
	}
	top := doc.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	x := &expander{lines: lines, open: map[*yaml.Node]bool{}}
	return x.expand(top, 0)
}

// expander copies a tree of nodes. It expands aliases, drops comments and anchors, and
// translates line numbers.
type expander struct {
	lines []line
	open  map[*yaml.Node]bool // :: node being copied → true
	count int
}

func (x *expander) expand(n *yaml.Node, depth int) (*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if x.count++; x.count > maxNodes {
		return nil, errTooMany
	}
	if depth > maxDepth {
		return nil, errTooDeep
	}
	if x.open[n] {
		return nil, errRecurses
	}
	c := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Line: n.Line, Column: n.Column}
	if i := n.Line - 1; i >= 0 && i < len(x.lines) {
		c.Line = x.lines[i].no
	}
	if len(n.Content) == 0 {
		return c, nil
	}
	x.open[n] = true
	defer delete(x.open, n)
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if k := n.Content[i]; k.Kind != yaml.ScalarNode && (k.Kind != yaml.AliasNode || k.Alias.Kind != yaml.ScalarNode) {
				return nil, errKey
			}
		}
	}
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		var err error
		if c.Content[i], err = x.expand(child, depth+1); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// dropDuplicates keeps the last pair of each key in every mapping. It reports the key
// of each dropped pair together with the key that stays.
func dropDuplicates(n *yaml.Node, report func(earlier, later *yaml.Node)) {
	if n.Kind == yaml.MappingNode {
		last := make(map[string]*yaml.Node, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			last[n.Content[i].Value] = n.Content[i]
		}
		kept := n.Content[:0]
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if last[k.Value] != k {
				report(k, last[k.Value])
				continue
			}
			kept = append(kept, k, n.Content[i+1])
		}
		n.Content = kept
	}
	for _, c := range n.Content {
		dropDuplicates(c, report)
	}
}
