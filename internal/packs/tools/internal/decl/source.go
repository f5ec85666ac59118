package decl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// validSource reports whether from is a known source.
func validSource(from string) bool {
	name, ok := strings.CutPrefix(from, template.ContextPrefix)
	return from == tools.SourceLiteral || from == tools.SourceTranscript || ok && template.IsContext(name)
}

// sources parses "sources" of a tools.json. The input schema must have been parsed.
func (p *Parser) sources(t *tools.Tool, src []byte, n *strictjson.Node) {
	if n == nil || n.Kind != strictjson.Object {
		return
	}
	for _, m := range n.Members {
		from := m.Value.StringAt("from")
		value := m.Value.Get("value")
		isContext := tools.Source{From: from}.IsContext()
		declared := t.Input != nil && t.Input.Param(m.Key) != nil
		switch {
		case from == tools.SourceLiteral && value == nil:
			p.Report(diag.Error, tools.CodeSourceInvalid, m.Value, fmt.Sprintf("%+q needs a fixed value, and has none", phrase.Clip(m.Key)), `write "value"`)
		case from == tools.SourceLiteral && declared:
			p.Report(diag.Error, tools.CodeSourceInvalid, m.Value, fmt.Sprintf("%+q has a fixed value, and is a property of the input schema", phrase.Clip(m.Key)), "remove the property: the model must not give a value")
		case from != tools.SourceLiteral && !declared:
			p.Report(diag.Error, tools.CodeSourceInvalid, m.Value, fmt.Sprintf("%+q is not a property of the input schema", phrase.Clip(m.Key)), "declare the property")
		case from != tools.SourceLiteral && value != nil:
			p.Report(diag.Error, tools.CodeSourceInvalid, value, fmt.Sprintf("%+q has a fixed value, and is not from %q", phrase.Clip(m.Key), tools.SourceLiteral), `write the value as "default" of the property`)
		default:
			s := tools.Source{From: from, Required: isContext && m.Value.IsTrue("required")}
			if value != nil {
				s.Value = slices.Clone(src[value.Start:value.End])
			}
			addSource(t, m.Key, s)
		}
	}
}

// addSource records the source of a parameter's value.
func addSource(t *tools.Tool, name string, s tools.Source) {
	if t.Sources == nil {
		t.Sources = make(map[string]tools.Source)
	}
	t.Sources[name] = s
}
