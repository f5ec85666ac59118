// Package node reads the values of a YAML file and says what is wrong with one, and in
// which line and column. It knows no key: what a value means is up to the caller.
package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/config/problem"
)

// The tags of scalars in the file.
const (
	TagString = "!!str"
	TagInt    = "!!int"
	TagBool   = "!!bool"
)

// A Reader reads the nodes of one file.
type Reader struct {
	Name   string                           // of the file, for messages
	Report func(where, key, message string) // takes what is wrong
}

// Parse returns the value of a file, which is one document. It returns nil if there is
// none, or if it is wrong.
func (r *Reader) Parse(data []byte) *yaml.Node {
	if at, ok := invalidUTF8(data); !ok {
		r.Problem(at, "", "is not UTF-8 text; save the file as UTF-8")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.syntax(err)
		return nil
	default:
		r.Problem(At(&second), "", "a second document begins here; one file is one document")
		return nil
	}
	if root := doc.Content[0]; !IsNull(root) {
		return root
	}
	return nil
}

// A Position is a line and a column, both from 1; column 0 means unknown.
type Position struct{ line, column int }

// At returns where a node begins.
func At(n *yaml.Node) Position { return Position{n.Line, n.Column} }

// Where returns a position in the file, for people: FILE:LINE:COLUMN.
func (r *Reader) Where(p Position) string {
	switch {
	case p.line == 0:
		return r.Name
	case p.column == 0:
		return fmt.Sprintf("%s:%d", r.Name, p.line)
	}
	return fmt.Sprintf("%s:%d:%d", r.Name, p.line, p.column)
}

// Problem reports what is wrong with a key at a position.
func (r *Reader) Problem(p Position, key, message string) {
	r.Report(r.Where(p), key, message)
}

// syntax reports an error of the YAML parser, such as "yaml: line 3: did not
// find …".
func (r *Reader) syntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	var p Position
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if digits, rest, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				p.line, message = n, rest
			}
		}
	}
	if strings.Contains(message, "expected alphabetic or numeric character") {
		message += "; a word that begins with * or & needs quotes, such as \"*\""
	}
	r.Problem(p, "", "is not YAML: "+message)
}

func invalidUTF8(data []byte) (Position, bool) {
	p := Position{1, 1}
	for len(data) > 0 {
		char, n := utf8.DecodeRune(data)
		switch {
		case char == utf8.RuneError && n == 1:
			return p, false
		case char == '\n':
			p = Position{p.line + 1, 1}
		default:
			p.column++
		}
		data = data[n:]
	}
	return Position{}, true
}

// Value returns the node that n refers to if it is an alias, or else n.
func Value(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// IsNull reports whether a node, or the one that it refers to, has no value.
func IsNull(n *yaml.Node) bool {
	v := Value(n)
	return v.Kind == yaml.ScalarNode && v.ShortTag() == "!!null"
}

// What names the kind of a value in words.
func What(n *yaml.Node) string {
	switch v := Value(n); v.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		if IsNull(v) {
			return "empty"
		}
		return problem.Show(v.Value)
	}
}

// Mapping calls each for the entries of n, whose whole path is prefix. It
// reports a key that occurs twice or is not text as a problem, and skips it.
func (r *Reader) Mapping(n *yaml.Node, prefix string, each func(k, v *yaml.Node, path string)) {
	m := Value(n)
	if m.Kind != yaml.MappingNode {
		r.Problem(At(n), prefix, "is "+What(n)+"; want a mapping of keys to values")
		return
	}
	lines := map[string]int{} // :: key → its line
	for i := 0; i+1 < len(m.Content); i += 2 {
		k, v := m.Content[i], m.Content[i+1]
		if Value(k).Kind != yaml.ScalarNode {
			r.Problem(At(k), prefix, "a key is "+What(k)+"; want a word")
			continue
		}
		name := Value(k).Value
		path := problem.ShowKey(name)
		if prefix != "" {
			path = prefix + "." + path
		}
		if k.Tag == "!!merge" {
			r.Problem(At(k), path, "merging is not supported; write the keys out")
			continue
		}
		if line, twice := lines[name]; twice {
			r.Problem(At(k), path, fmt.Sprintf("occurs twice; the first is in line %d", line))
			continue
		}
		lines[name] = k.Line
		each(k, v, path)
	}
}

// KindOf is [What], but also names the kind of a scalar.
func KindOf(n *yaml.Node) string {
	v := Value(n)
	if v.Kind == yaml.ScalarNode {
		switch v.ShortTag() {
		case TagInt, "!!float":
			return "the number " + problem.Show(v.Value)
		case TagBool:
			return "the truth value " + problem.Show(v.Value)
		case TagString:
			return "the text " + problem.Show(v.Value)
		}
	}
	return What(n)
}

// Items returns the elements of a list. If v is not a list, it returns nil and
// reports a problem.
func (r *Reader) Items(v *yaml.Node, path string) []*yaml.Node {
	n := Value(v)
	if n.Kind != yaml.SequenceNode {
		r.Problem(At(v), path, "is "+What(v)+"; want a list")
		return nil
	}
	if n.Content == nil {
		return []*yaml.Node{}
	}
	return n.Content
}

// Text returns the text of v, or reports a problem if v is no text.
func (r *Reader) Text(v *yaml.Node, path string) (string, bool) {
	n := Value(v)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != TagString {
		r.Problem(At(v), path, "is "+KindOf(v)+"; want text")
		return "", false
	}
	return n.Value, true
}

// Bool returns the truth value of v, or reports a problem if v is none.
func (r *Reader) Bool(v *yaml.Node, path string) bool {
	n := Value(v)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != TagBool {
		r.Problem(At(v), path, "is "+KindOf(v)+"; want true or false")
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

// Words adds the elements of a list, each as check returns it. check says what
// is wrong with an element, without naming it.
func (r *Reader) Words(v *yaml.Node, path string, to *[]string, check func(string) (string, string)) {
	for i, item := range r.Items(v, path) {
		path := fmt.Sprintf("%s[%d]", path, i)
		s, ok := r.Text(item, path)
		if !ok {
			continue
		}
		word, wrong := check(s)
		if wrong == "" && slices.Contains(*to, word) {
			wrong = "name it once"
		}
		if wrong != "" {
			r.Problem(At(item), path, "is "+problem.Show(s)+"; "+wrong)
			continue
		}
		*to = append(*to, word)
	}
}
