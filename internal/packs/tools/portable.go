package tools

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// combinators are the keywords that no client should meet at the top of a
// tool's schema: one of them, and Claude Code drops the tool.
var combinators = [...]string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}

// PortableSchema returns the input schema for tools/list, as real clients can
// take it: "type": "object" at the top, no combinator and no $ref there, no
// boolean for a schema (but additionalProperties, which every client knows),
// no reference out of the document, no keyword of ours. It may accept more than
// the declared schema, against which calls are checked by [Tool.Check].
// Properties that stand only inside a dropped combinator are kept, as optional
// ones.
func (t *Tool) PortableSchema() json.RawMessage {
	in := t.schema()
	if in.root.kind != kindObject {
		return json.RawMessage(emptyInput)
	}
	var w portable
	w.open('{')
	w.member("type", []byte(`"object"`))
	for _, m := range in.root.members {
		switch m.key {
		case "type", "$ref", "$dynamicRef", "$recursiveRef", "properties", "required":
			continue // written here, below, or not at all
		}
		if !slices.Contains(combinators[:], m.key) {
			w.keyword(m.key, m.value, false)
		}
	}
	if len(in.params) > 0 || in.root.get("properties") != nil {
		w.key("properties")
		w.open('{')
		for _, p := range in.params {
			w.key(p.name)
			w.property(&p)
		}
		w.close('}')
	}
	if len(in.required) > 0 {
		w.member("required", canonical(anys(in.required)))
	}
	w.close('}')
	return w.b.Bytes()
}

// property writes the schema of a property: for one that only branches of
// combinators have, what any of them says.
func (w *portable) property(p *param) {
	all := []*node{p.schema}
	if p.test {
		all = nil
	}
	if p.compiled == nil {
		all = append(all, p.others...)
	}
	seen := make(map[string]bool)
	all = slices.DeleteFunc(all, func(s *node) bool {
		text := string(canonical(s.value()))
		again := seen[text]
		seen[text] = true
		return again
	})
	switch len(all) {
	case 0:
		w.b.WriteString("{}")
		w.first = false
	case 1:
		w.schema(all[0], false)
	default:
		w.open('{')
		w.key("anyOf")
		w.open('[')
		for _, s := range all {
			w.separate()
			w.schema(s, false)
		}
		w.close(']')
		w.close('}')
	}
}

// portable writes schemas in source order.
type portable struct {
	b     bytes.Buffer
	first bool
}

func (w *portable) open(c byte) { w.b.WriteByte(c); w.first = true }

func (w *portable) close(c byte) { w.b.WriteByte(c); w.first = false }

func (w *portable) separate() {
	if !w.first {
		w.b.WriteByte(',')
	}
	w.first = false
}

func (w *portable) key(name string) {
	w.separate()
	w.b.Write(canonical(name))
	w.b.WriteByte(':')
}

func (w *portable) member(name string, value []byte) {
	w.key(name)
	w.b.Write(value)
}

// schema writes s. Under a nested $id, references mean something else than
// without it, so there they are dropped with it.
func (w *portable) schema(s *node, underID bool) {
	switch s.kind {
	case kindBoolean:
		if s.truth {
			w.b.WriteString("{}")
		} else {
			w.b.WriteString(`{"not":{}}`)
		}
		w.first = false
	case kindObject:
		underID = underID || s.get("$id") != nil
		w.open('{')
		for _, m := range s.members {
			w.keyword(m.key, m.value, underID)
		}
		w.close('}')
	default: // not a schema; it did not compile
		w.b.WriteString("{}")
		w.first = false
	}
}

// keyword writes one member of a schema, unless no client should see it.
func (w *portable) keyword(key string, v *node, underID bool) {
	switch key {
	case "$schema", "$id", "$vocabulary", "$comment", keyAllowDash:
		return
	case "$ref", "$dynamicRef", "$recursiveRef":
		if underID || !strings.HasPrefix(v.text, "#") {
			return
		}
	case "additionalProperties":
		if v.kind == kindObject {
			w.key(key)
			w.schema(v, underID)
			return
		}
	case "dependencies", "additionalItems":
		return // not in 2020-12
	case "exclusiveMinimum", "exclusiveMaximum":
		if v.kind == kindBoolean {
			return // not in 2020-12
		}
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		if v.kind == kindObject {
			w.key(key)
			w.open('{')
			for _, m := range v.members {
				w.key(m.key)
				w.schema(m.value, underID)
			}
			w.close('}')
			return
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		if v.kind == kindList {
			w.schemas(key, v, underID)
			return
		}
	case "items":
		if v.kind == kindList { // before 2020-12
			w.schemas("prefixItems", v, underID)
			return
		}
		w.key(key)
		w.schema(v, underID)
		return
	case "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema":
		w.key(key)
		w.schema(v, underID)
		return
	case "title", "description": // prose, which whoever shows it escapes
	case "enum", "const", "pattern", "required", "dependentRequired": // a call is held against these as they are
	default:
		if hides(key) || v.hides() {
			return // nothing that a call needs, and more than anybody sees
		}
	}
	w.key(key)
	w.b.Write(canonical(v.value()))
	w.first = false
}

// hides reports whether a text has characters that cannot be seen, or that
// deceive.
func hides(text string) bool { return safetext.Text(text) != text }

// hides reports whether a text or a key in n does.
func (n *node) hides() bool {
	return hides(n.text) || slices.ContainsFunc(n.items, (*node).hides) ||
		slices.ContainsFunc(n.members, func(m member) bool { return hides(m.key) || m.value.hides() })
}

func (w *portable) schemas(key string, v *node, underID bool) {
	w.key(key)
	w.open('[')
	for _, s := range v.items {
		w.separate()
		w.schema(s, underID)
	}
	w.close(']')
}
