package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// combinators are keywords that clients do not support at the top of a tool's schema: if
// there is one, Claude Code drops the tool.
var combinators = [...]string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}

// Portable returns the schema in a form that real clients accept: "type": "object" and
// neither a combinator nor $ref at the top, no boolean schemas (except for
// additionalProperties, which every client supports), no references out of the document,
// and none of our own keywords. It may accept more than the declared schema. Properties
// that occur only inside a dropped combinator become optional properties.
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
			continue // written here, written below, or dropped
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

// property writes the schema of a property. A property that occurs only in branches of
// combinators may match any of their schemas.
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

// schema writes s. Under a nested $id, references would have another meaning once the $id
// is dropped, so they are dropped with it.
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
	default: // not a schema; such a document did not compile
		w.Value([]byte("{}"))
	}
}

// keyword writes one member of a schema, unless clients should not see it.
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
		if v.Kind == strictjson.List { // the form before 2020-12
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
	case "title", "description": // prose, which is escaped where it is shown
	case "enum", "const", "pattern", "required", "dependentRequired": // calls are validated against these, so keep them unchanged
	default:
		if hides(key) || hidesIn(v) {
			return // unneeded for calls, and text that nobody sees
		}
	}
	w.Member(key, strictjson.Canonical(v.Value()))
}

// hides reports whether a text has invisible or deceptive characters.
func hides(text string) bool { return safetext.Text(text) != text }

// hidesIn reports whether hides is true for a text or a key in n.
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
