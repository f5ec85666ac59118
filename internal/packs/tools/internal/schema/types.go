package schema

import (
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// IsType reports whether JSON Schema has a type called name.
func IsType(name string) bool {
	switch name {
	case "string", "integer", "number", "boolean", "array", "object", "null":
		return true
	}
	return false
}

// maxTypeText is how long a type in a signature may be; a longer one becomes "any".
const maxTypeText = 200

// Types describes the types of values under one schema.
type Types struct {
	root *strictjson.Node
	memo map[typeAt]string
}

// NewTypes returns Types for the schemas in root.
func NewTypes(root *strictjson.Node) Types { return Types{root: root, memo: make(map[typeAt]string)} }

type typeAt struct {
	schema *strictjson.Node
	depth  int
}

// Text returns the type of a property: one of JSON Schema's names, "string[]" for a list,
// "a|b" for a union, "any" if it is not declared.
func (t Types) Text(s *strictjson.Node) string { return t.text(s, 0) }

func (t Types) text(s *strictjson.Node, depth int) string {
	if s == nil || s.Kind != strictjson.Object || depth > 5 {
		return "any"
	}
	at := typeAt{s, depth}
	text, ok := t.memo[at]
	if !ok {
		if text = t.write(s, depth); len(text) > maxTypeText {
			text = "any"
		}
		t.memo[at] = text
	}
	return text
}

func (t Types) write(s *strictjson.Node, depth int) string {
	names := s.StringsAt("type")
	if one := s.StringAt("type"); one != "" {
		names = []string{one}
	}
	if len(names) == 0 {
		if target := localRef(t.root, s); target != nil {
			return t.text(target, depth+1)
		}
		if values := s.Get("enum"); values != nil && len(values.Items) > 0 && values.Items[0].Kind == strictjson.Text {
			return "string"
		}
		for _, key := range []string{"anyOf", "oneOf"} {
			if branches := s.Get(key); branches != nil {
				for _, b := range branches.Items {
					names = append(names, strings.Split(t.text(b, depth+1), "|")...)
				}
				slices.Sort(names)
				names = slices.Compact(names)
				if slices.Contains(names, "any") || len(names) == 0 {
					return "any"
				}
				return strings.Join(names, "|")
			}
		}
		return "any"
	}
	for i, name := range names {
		if !IsType(name) {
			return "any"
		}
		if name == "array" {
			item := t.text(s.Get("items"), depth+1)
			if strings.Contains(item, "|") {
				item = "(" + item + ")"
			}
			if item != "any" {
				names[i] = item + "[]"
			}
		}
	}
	return strings.Join(names, "|")
}
