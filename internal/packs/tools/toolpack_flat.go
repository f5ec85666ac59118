package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// isFlat reports whether s is a flat map of parameters, {"url": {"type":
// "string", "required": true}}, and not a JSON Schema. An empty object is
// both, and taken for a schema.
func isFlat(s *node) bool {
	if s.kind != kindObject || len(s.members) == 0 {
		return false
	}
	for _, m := range s.members {
		if !isParameter(m.value) {
			return false
		}
	}
	// {"type": "string"} could be a parameter called type, and is no map.
	typ := s.get("type")
	return typ == nil || typ.kind != kindText || typ.text != "object" && len(s.members) > 1
}

// isParameter reports whether n describes one parameter: an object that says
// something only parameters do, or the name of a type.
func isParameter(n *node) bool {
	if n.kind == kindText {
		return slices.Contains(typeNames[:], n.text)
	}
	for key, kinds := range map[string][]jsonKind{
		"type":        {kindText, kindList},
		"description": {kindText},
		"required":    {kindBoolean},
		"enum":        {kindList},
		"source":      {kindText},
	} {
		if v := n.get(key); v != nil && slices.Contains(kinds, v.kind) {
			return true
		}
	}
	return false
}

// flat turns a flat map into a JSON Schema and takes what it says of sources
// out of it. Parameters with a fixed value are not in the schema.
func (p *parser) flat(t *Tool, params *node, severity diag.Severity) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	first := true
	for _, m := range params.members {
		n := m.value
		from := n.str("source")
		s := Source{From: from}
		_, isContext := s.context()
		must := n.isTrue("required")
		switch {
		case from == SourceLiteral:
			p.literal(t, m, severity)
			continue
		case n.get("source") != nil && !validSource(from):
			p.report(severity, CodeSourceInvalid, n.get("source"), fmt.Sprintf("there is no source %+q", clip(from)),
				"write context.url, context.file, context.selection, context.clipboard, context.cwd, transcript or literal")
		case isContext:
			s.Required = must
			t.source(m.key, s)
		case must:
			required = append(required, m.key)
			fallthrough
		default:
			if from != "" {
				t.source(m.key, s)
			}
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.Write(canonical(m.key))
		b.WriteByte(':')
		writeParameter(&b, n)
	}
	b.WriteByte('}')
	if len(required) > 0 {
		b.WriteString(`,"required":`)
		b.Write(canonical(anys(required)))
	}
	b.WriteString(`,"additionalProperties":false}`)
	return b.Bytes()
}

// literal takes over a fixed value, which must be valid under its own schema.
func (p *parser) literal(t *Tool, m member, severity diag.Severity) {
	value := m.value.get("default")
	if value == nil || value.kind == kindNull {
		p.report(severity, CodeSourceInvalid, m.value, fmt.Sprintf("%+q has a fixed value that is not there", clip(m.key)), `write it as "default"`)
		value = &node{kind: kindNull}
	}
	// Also after an error, so that placeholders of it are not another one.
	t.source(m.key, Source{From: SourceLiteral, Value: canonical(value.value())})
	if value.kind == kindNull {
		return
	}
	var b bytes.Buffer
	b.WriteString(`{"properties":{"x":`)
	writeParameter(&b, m.value)
	b.WriteString(`}}`)
	in, err := parseInputSchema(b.Bytes())
	if err != nil {
		p.schemaProblem(severity, CodeSchemaInvalid, flatAt(m.value, 2), err)
		return
	}
	if x := in.param("x"); x != nil && x.compiled != nil && x.compiled.Validate(value.value()) != nil {
		p.report(severity, CodeDefaultInvalid, value, fmt.Sprintf("the default of %+q is not valid under its own schema", clip(m.key)), "change the default or the schema")
	}
}

// writeParameter writes the schema of one parameter of a flat map.
func writeParameter(b *bytes.Buffer, n *node) {
	if n.kind == kindText {
		b.WriteString(`{"type":`)
		b.Write(canonical(n.text))
		b.WriteByte('}')
		return
	}
	b.WriteByte('{')
	first := true
	for _, m := range n.members {
		switch {
		case m.key == "source", m.key == "required" && m.value.kind == kindBoolean, m.key == "default" && m.value.kind == kindNull:
			continue // said elsewhere, or nothing
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.Write(canonical(m.key))
		b.WriteByte(':')
		b.Write(canonical(m.value.value()))
	}
	b.WriteByte('}')
}

// A place finds what a path in a schema is about in the file.
type place func(path []string) *node

// schemaAt is the place of a schema that stands in the file as it is.
func schemaAt(s *node) place { return func(path []string) *node { return s.at(path) } }

// flatAt is the place of a schema that was made of n, which stands skip tokens
// deep in it.
func flatAt(n *node, skip int) place {
	return func(path []string) *node { return n.at(path[min(skip, len(path)):]) }
}
