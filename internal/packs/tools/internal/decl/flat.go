package decl

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// isFlat reports whether s is a flat map of parameters, such as {"url": {"type": "string",
// "required": true}}, and not a JSON Schema. An empty object could be both, and counts as a
// schema.
func isFlat(s *strictjson.Node) bool {
	if s.Kind != strictjson.Object || len(s.Members) == 0 {
		return false
	}
	for _, m := range s.Members {
		if !isParameter(m.Value) {
			return false
		}
	}
	// {"type": "string"} could be a parameter called type, but counts as a schema.
	typ := s.Get("type")
	return typ == nil || typ.Kind != strictjson.Text || typ.Text != "object" && len(s.Members) > 1
}

// isParameter reports whether n describes one parameter: it is an object with a key that
// only parameters have, or the name of a type.
func isParameter(n *strictjson.Node) bool {
	if n.Kind == strictjson.Text {
		return schema.IsType(n.Text)
	}
	for key, kinds := range map[string][]strictjson.Kind{
		"type":        {strictjson.Text, strictjson.List},
		"description": {strictjson.Text},
		"required":    {strictjson.Boolean},
		"enum":        {strictjson.List},
		"source":      {strictjson.Text},
	} {
		if v := n.Get(key); v != nil && slices.Contains(kinds, v.Kind) {
			return true
		}
	}
	return false
}

// flat turns a flat map into a JSON Schema, and records the sources of its parameters.
// Parameters with a fixed value are not in the schema.
func (p *Parser) flat(t *tools.Tool, params *strictjson.Node, severity diag.Severity) json.RawMessage {
	var w strictjson.Writer
	w.Open('{')
	w.Member("type", []byte(`"object"`))
	w.Key("properties")
	w.Open('{')
	var required []string
	for _, m := range params.Members {
		n := m.Value
		from := n.StringAt("source")
		s := tools.Source{From: from}
		must := n.IsTrue("required")
		switch {
		case from == tools.SourceLiteral:
			p.literal(t, m, severity)
			continue
		case n.Get("source") != nil && !validSource(from):
			p.Report(severity, tools.CodeSourceInvalid, n.Get("source"), fmt.Sprintf("there is no source %+q", phrase.Clip(from)),
				"write context.url, context.file, context.selection, context.clipboard, context.cwd, transcript or literal")
		case s.IsContext():
			s.Required = must
			addSource(t, m.Key, s)
		case must:
			required = append(required, m.Key)
			fallthrough
		default:
			if from != "" {
				addSource(t, m.Key, s)
			}
		}
		w.Key(m.Key)
		writeParameter(&w, n)
	}
	w.Close('}')
	if len(required) > 0 {
		w.Member("required", strictjson.Canonical(required))
	}
	w.Member("additionalProperties", []byte("false"))
	w.Close('}')
	return w.Bytes()
}

// literal records a fixed value, which must be valid under its own schema.
func (p *Parser) literal(t *tools.Tool, m strictjson.Member, severity diag.Severity) {
	value := m.Value.Get("default")
	if value == nil || value.Kind == strictjson.Null {
		p.Report(severity, tools.CodeSourceInvalid, m.Value, fmt.Sprintf("%+q needs a fixed value, and has none", phrase.Clip(m.Key)), `write it as "default"`)
		value = &strictjson.Node{Kind: strictjson.Null}
	}
	// Also after an error, so that placeholders for it do not cause another one.
	addSource(t, m.Key, tools.Source{From: tools.SourceLiteral, Value: strictjson.Canonical(value.Value())})
	if value.Kind == strictjson.Null {
		return
	}
	var w strictjson.Writer
	w.Open('{')
	w.Key("properties")
	w.Open('{')
	w.Key("x")
	writeParameter(&w, m.Value)
	w.Close('}')
	w.Close('}')
	in, err := schema.Parse(w.Bytes())
	if err != nil {
		p.schemaProblem(severity, tools.CodeSchemaInvalid, flatAt(m.Value, 2), err)
		return
	}
	if x := in.Param("x"); x != nil && x.Compiled != nil && x.Compiled.Validate(value.Value()) != nil {
		p.Report(severity, tools.CodeDefaultInvalid, value, fmt.Sprintf("the default of %+q is not valid under its own schema", phrase.Clip(m.Key)), "change the default or the schema")
	}
}

// writeParameter writes the schema of one parameter of a flat map.
func writeParameter(w *strictjson.Writer, n *strictjson.Node) {
	w.Open('{')
	if n.Kind == strictjson.Text {
		w.Member("type", strictjson.Canonical(n.Text))
	}
	for _, m := range n.Members {
		switch {
		case m.Key == "source", m.Key == "required" && m.Value.Kind == strictjson.Boolean, m.Key == "default" && m.Value.Kind == strictjson.Null:
			continue // written elsewhere, or not part of a schema
		}
		w.Member(m.Key, strictjson.Canonical(m.Value.Value()))
	}
	w.Close('}')
}
