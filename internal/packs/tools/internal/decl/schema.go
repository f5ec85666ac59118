package decl

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// input parses the input schema. After an error, t.Input stays nil.
func (p *Parser) input(t *tools.Tool, src []byte, n *strictjson.Node, runs bool) {
	s := InputOf(n)
	for _, key := range inputKeys {
		if other := n.Get(key); other != nil && other != s {
			p.Report(diag.Error, tools.CodeSchemaTwice, other, fmt.Sprintf("both %q and %q are there", s.Key, key), "keep "+s.Key)
		}
	}
	severity, code := diag.Error, tools.CodeSchemaInvalid
	if !runs {
		severity, code = diag.Warning, tools.CodeSchemaNotRead
	}
	raw, at := json.RawMessage(schema.Empty), schemaAt(n)
	switch {
	case p.dialect.Flat && (s == nil || s.Key == flatKey && s.Kind == strictjson.Object && len(s.Members) == 0):
		raw = p.flat(t, &strictjson.Node{Kind: strictjson.Object}, severity)
	case s == nil:
	case isFlat(s), p.dialect.Flat && s.Key == flatKey && s.Kind == strictjson.Object && !isSchema(s):
		raw, at = p.flat(t, s, severity), flatAt(s, 1)
	case !isObjectSchema(s):
		p.Report(severity, code, s, `the schema of arguments must be an object schema`, `write {"type": "object", "properties": {...}}`)
		if runs {
			return
		}
	default:
		if p.dialect.Flat && s.Key == flatKey && isSchema(s) {
			p.Report(diag.Warning, tools.CodeNotFlat, s, "parameters are a JSON Schema, and in a tool pack they are a flat map",
				`write {"x": {"type": "string", "required": true}}, or call it inputSchema`)
		}
		raw, at = slices.Clone(src[s.Start:s.End]), schemaAt(s)
	}
	in, err := schema.Parse(raw)
	if err != nil {
		p.schemaProblem(severity, code, at, err)
		if runs {
			return
		}
		t.Sources = nil
		raw = json.RawMessage(schema.Empty)
		if in, err = schema.Parse(raw); err != nil {
			panic(err) // it is a constant
		}
	}
	t.InputSchema, t.Input = raw, in
	m := &schema.Meter{}
	for i := range in.Params {
		if runs && !p.preset(at, &in.Params[i], m) {
			return
		}
	}
}

// isSchema reports whether s is a JSON Schema of arguments in a place where a flat map is
// expected.
func isSchema(s *strictjson.Node) bool {
	return isObjectSchema(s) && !isFlat(s) && (s.Get("type") != nil || s.Get("properties") != nil)
}

func isObjectSchema(s *strictjson.Node) bool {
	if s.Kind != strictjson.Object {
		return false
	}
	typ := s.Get("type")
	return typ == nil || typ.Text == "object" || slices.Contains(s.StringsAt("type"), "object")
}

// outputSchema keeps the schema of the program's output, if there is one.
func (p *Parser) outputSchema(t *tools.Tool, src []byte, s *strictjson.Node, runs bool) {
	if s == nil {
		return
	}
	if _, err := schema.Compile(s); err == nil {
		t.OutputSchema = slices.Clone(src[s.Start:s.End])
	} else if runs {
		p.Schema(diag.Error, tools.CodeSchemaInvalid, s, err)
	} else {
		p.Schema(diag.Warning, tools.CodeSchemaNotRead, s, err)
	}
}

// Schema reports why s does not compile.
func (p *Parser) Schema(severity diag.Severity, code string, s *strictjson.Node, err error) {
	p.schemaProblem(severity, code, schemaAt(s), err)
}

// schemaProblem reports why the schema at a place does not compile.
func (p *Parser) schemaProblem(severity diag.Severity, code string, at place, err error) {
	e, ok := errors.AsType[*schema.Error](err)
	if !ok {
		e = &schema.Error{Problem: err.Error()}
	}
	p.Report(severity, code, at(e.Path), e.Problem, e.Hint)
}

// preset refuses an invalid default, which would otherwise reach the program unchecked. It
// returns false if defaults take too long to check.
func (p *Parser) preset(at place, param *schema.Param, m *schema.Meter) bool {
	if param.Preset == nil {
		return true
	}
	// Every call gets a copy of every default.
	m.Spent += (param.Preset.End - param.Preset.Start) / 16
	if param.Preset.Depth() > schema.MaxDepth || !m.Allows(param.Compiled, param.Preset) {
		p.Report(diag.Error, tools.CodeSchemaInvalid, at([]string{"properties", param.Name, "default"}),
			"defaults of the schema take too long to check", "make them shorter and less nested, or the schema simpler")
		return false
	}
	if err := param.Compiled.Validate(param.Preset.Value()); err != nil {
		where := at([]string{"properties", param.Name, "default"})
		p.Report(diag.Error, tools.CodeDefaultInvalid, where, fmt.Sprintf("the default of %+q is not valid under its own schema", phrase.Clip(param.Name)), "change the default or the schema")
	}
	return true
}

// A place returns the node of the file for a path in a schema.
type place func(path []string) *strictjson.Node

// schemaAt is the place for a schema that is in the file unchanged.
func schemaAt(s *strictjson.Node) place {
	return func(path []string) *strictjson.Node { return s.At(path) }
}

// flatAt is the place for a schema that was built from n. n is skip tokens deep in that
// schema.
func flatAt(n *strictjson.Node, skip int) place {
	return func(path []string) *strictjson.Node { return n.At(path[min(skip, len(path)):]) }
}
