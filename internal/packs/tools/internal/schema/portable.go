package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// combinators are the keywords that no client should meet at the top of a
// tool's schema: one of them, and Claude Code drops the tool.
var combinators = [...]string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}

// Portable returns the schema as real clients can take it: "type": "object" at the
// top, no combinator and no $ref there, no boolean for a schema (but
// additionalProperties, which every client knows), no reference out of the document,
// no keyword of ours. It may accept more than the declared schema. Properties that
// stand only inside a dropped combinator are kept, as optional ones.
func (in *Input) Portable() json.RawMessage {
	if in.Root.Kind != strictjson.Object {
		return json.RawMessage(Empty)
	}
	var w portable
	w.Open('{')
	w.Member("type", []byte(`"object"`))
	for _, m := range in.Root.Members {
		switch m.Key {
		case "type", "$ref", "$dynamicRef", "$recursiveRef", "properties", "required":
			continue // written here, below, or not at all
		}
		if !slices.Contains(combinators[:], m.Key) {
			w.keyword(m.Key, m.Value, false)
		}
	}
	if len(in.Params) > 0 || in.Root.Get("properties") != nil {
		w.Key("properties")
		w.Open('{')
		for _, p := range in.Params {
			w.Key(p.Name)
			w.property(&p)
		}
		w.Close('}')
	}
	if len(in.required) > 0 {
		w.Member("required", strictjson.Canonical(in.required))
	}
	w.Close('}')
	return w.Bytes()
}

// property writes the schema of a property: for one that only branches of
// combinators have, what any of them says.
func (w *portable) property(p *Param) {
	all := []*strictjson.Node{p.Schema}
	if p.test {
		all = nil
	}
	if p.Compiled == nil {
		all = append(all, p.others...)
	}
	seen := make(map[string]bool)
	all = slices.DeleteFunc(all, func(s *strictjson.Node) bool {
		text := string(strictjson.Canonical(s.Value()))
		again := seen[text]
		seen[text] = true
		return again
	})
	switch len(all) {
	case 0:
		w.Value([]byte("{}"))
	case 1:
		w.schema(all[0], false)
	default:
		w.Open('{')
		w.Key("anyOf")
		w.Open('[')
		for _, s := range all {
			w.Item()
			w.schema(s, false)
		}
		w.Close(']')
		w.Close('}')
	}
}

// portable writes schemas in source order.
type portable struct{ strictjson.Writer }

// schema writes s. Under a nested $id, references mean something else than
// without it, so there they are dropped with it.
func (w *portable) schema(s *strictjson.Node, underID bool) {
	switch s.Kind {
	case strictjson.Boolean:
		if s.Truth {
			w.Value([]byte("{}"))
		} else {
			w.Value([]byte(`{"not":{}}`))
		}
	case strictjson.Object:
		underID = underID || s.Get("$id") != nil
		w.Open('{')
		for _, m := range s.Members {
			w.keyword(m.Key, m.Value, underID)
		}
		w.Close('}')
	default: // not a schema; it did not compile
		w.Value([]byte("{}"))
	}
}

// keyword writes one member of a schema, unless no client should see it.
func (w *portable) keyword(key string, v *strictjson.Node, underID bool) {
	switch key {
	case "$schema", "$id", "$vocabulary", "$comment", keyAllowDash:
		return
	case "$ref", "$dynamicRef", "$recursiveRef":
		if underID || !strings.HasPrefix(v.Text, "#") {
			return
		}
	case "additionalProperties":
		if v.Kind == strictjson.Object {
			w.Key(key)
			w.schema(v, underID)
			return
		}
	case "dependencies", "additionalItems":
		return // not in 2020-12
	case "exclusiveMinimum", "exclusiveMaximum":
		if v.Kind == strictjson.Boolean {
			return // not in 2020-12
		}
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		if v.Kind == strictjson.Object {
			w.Key(key)
			w.Open('{')
			for _, m := range v.Members {
				w.Key(m.Key)
				w.schema(m.Value, underID)
			}
			w.Close('}')
			return
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		if v.Kind == strictjson.List {
			w.schemas(key, v, underID)
			return
		}
	case "items":
		if v.Kind == strictjson.List { // before 2020-12
			w.schemas("prefixItems", v, underID)
			return
		}
		w.Key(key)
		w.schema(v, underID)
		return
	case "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema":
		w.Key(key)
		w.schema(v, underID)
		return
	case "title", "description": // prose, escaped where it is shown
	case "enum", "const", "pattern", "required", "dependentRequired": // a call is held against these as they are
	default:
		if hides(key) || hidesIn(v) {
			return // nothing that a call needs, and more than anybody sees
		}
	}
	w.Member(key, strictjson.Canonical(v.Value()))
}

// hides reports whether a text has characters that cannot be seen, or that
// deceive.
func hides(text string) bool { return safetext.Text(text) != text }

// hidesIn reports whether a text or a key in n does.
func hidesIn(n *strictjson.Node) bool {
	return hides(n.Text) || slices.ContainsFunc(n.Items, hidesIn) ||
		slices.ContainsFunc(n.Members, func(m strictjson.Member) bool { return hides(m.Key) || hidesIn(m.Value) })
}

func (w *portable) schemas(key string, v *strictjson.Node, underID bool) {
	w.Key(key)
	w.Open('[')
	for _, s := range v.Items {
		w.Item()
		w.schema(s, underID)
	}
	w.Close(']')
}
