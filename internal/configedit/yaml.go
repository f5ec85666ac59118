package configedit

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// YAML returns the format for YAML. Only lists can be changed, by Append and Drop, and
// only if they are empty or have one item a line; anything else is [ErrShape].
func YAML() *Format {
	never := func([]byte, []string) ([]byte, error) { return nil, ErrShape }
	return &Format{
		decode: decodeYAML,
		set:    setYAML,
		remove: never,
		add:    addYAML,
		drop:   dropYAML,
		write:  writeYAML,
	}
}

func decodeYAML(text []byte) (map[string]any, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, yamlError(err)
	}
	if len(tree) == 0 {
		return nil, nil
	}
	return tree, nil
}

var yamlWhere = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`line (\d+): `) })

func yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlWhere().FindStringSubmatchIndex(text); m != nil {
		line := 0
		for _, digit := range text[m[2]:m[3]] {
			line = line*10 + int(digit-'0')
		}
		return &SyntaxError{line, 1, text[m[1]:]}
	}
	return err
}

// setYAML appends a key to a text that does not have it.
func setYAML(text []byte, path []string, value any) ([]byte, error) {
	if len(path) != 1 {
		return nil, ErrShape
	}
	nl := newline(text)
	out := slices.Clone(text)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, nl...)
	}
	return append(out, strings.ReplaceAll(writeYAML(path, value), "\n", nl)...), nil
}

func writeYAML(path []string, value any) string {
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(yamlNode(nested(path, value))), enc.Close()); err != nil {
		return ""
	}
	return b.String()
}

// yamlNode keeps the order of an object.
func yamlNode(value any) *yaml.Node {
	var n yaml.Node
	switch v := value.(type) {
	case Object:
		n.Kind = yaml.MappingNode
		for _, m := range v {
			var key yaml.Node
			key.SetString(m.Key)
			n.Content = append(n.Content, &key, yamlNode(m.Value))
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for _, item := range v {
			n.Content = append(n.Content, yamlNode(item))
		}
	default:
		_ = n.Encode(value) // words, numbers and truth values
	}
	return &n
}

// listAt returns the node of the list at path, a key of the whole, and the line of that
// key.
func listAt(text []byte, path []string) (list *yaml.Node, line int, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, 0, yamlError(err)
	}
	if len(path) != 1 || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode || doc.Content[0].Style == yaml.FlowStyle {
		return nil, 0, ErrShape
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == path[0] {
			return root.Content[i+1], root.Content[i].Line, nil
		}
	}
	return nil, 0, ErrShape
}

// lastLine is the line on which the last value within n begins.
func lastLine(n *yaml.Node) int {
	line := n.Line
	for _, c := range n.Content {
		line = max(line, lastLine(c))
	}
	return line
}

// addYAML appends an item to the list.
func addYAML(text []byte, path []string, item any) ([]byte, error) {
	list, at, err := listAt(text, path)
	if err != nil {
		return nil, err
	}
	nl := newline(text)
	lines := bytes.SplitAfter(text, []byte("\n"))
	indent := "  "
	if n := len(list.Content); n > 0 {
		if list.Style == yaml.FlowStyle {
			return nil, ErrShape
		}
		indent = strings.Repeat(" ", max(0, list.Column-1))
		at = lastLine(list.Content[n-1])
	} else {
		head := lines[at-1]
		lines[at-1] = emptyList().ReplaceAll(head, []byte("$1$2"))
	}
	if last := lines[at-1]; !bytes.HasSuffix(last, []byte("\n")) {
		lines[at-1] = append(slices.Clone(last), nl...)
	}
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(writeYAML(nil, []any{item}), "\n"), "\n") {
		b.WriteString(indent + line + nl)
	}
	return bytes.Join(slices.Insert(lines, at, []byte(b.String())), nil), nil
}

// emptyList is the line of a key whose list is empty.
var emptyList = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([^#\[]*:)\s*\[\s*\](\s*(?:#.*)?\r?\n?)$`) })

// dropYAML removes an item of a list with its lines.
func dropYAML(text []byte, path []string, index int) ([]byte, error) {
	list, at, err := listAt(text, path)
	if err != nil {
		return nil, err
	}
	if list.Style == yaml.FlowStyle {
		return nil, ErrShape
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	item := list.Content[index]
	lines = slices.Delete(lines, item.Line-1, lastLine(item))
	if len(list.Content) == 1 {
		head := lines[at-1]
		colon := bytes.IndexByte(head, ':')
		if colon < 0 {
			return nil, ErrShape
		}
		lines[at-1] = slices.Concat(head[:colon+1], []byte(" []"), head[colon+1:])
	}
	return bytes.Join(lines, nil), nil
}
