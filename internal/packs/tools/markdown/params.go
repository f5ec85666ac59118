package markdown

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/toolname"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// maxParameters is the maximum number of parameters of a tool.
const maxParameters = 200

// A parameter is one row of a table.
type parameter struct {
	name        string
	kind        string // of JSON Schema
	required    bool
	description string
	preset      json.RawMessage  // nil: no default
	at          *strictjson.Node // its name
	about       *strictjson.Node // its description
	column      *strictjson.Node // its cell in the column Default; nil if there is none
}

// parameters reads the Parameters of a section.
func (m *document) parameters(s *section) []*parameter {
	parts := s.all(partParameters)
	if len(parts) == 0 {
		m.Report(diag.Warning, tools.CodeParametersMissing, m.node(s.at, ""), fmt.Sprintf("tool %q does not say which parameters it has, so it has none", s.name()),
			`write "#### Parameters" with a table, or with None.`)
		return nil
	}
	if len(parts) > 1 {
		m.Report(diag.Error, tools.CodeParametersTable, m.node(parts[1].at, ""), fmt.Sprintf("tool %q has Parameters twice", s.name()), "keep one")
		return nil
	}
	tables := parts[0].tables()
	switch {
	case len(tables) > 1:
		m.Report(diag.Error, tools.CodeParametersTable, m.node(m.tableAt(tables[1]), ""), fmt.Sprintf("tool %q has two tables of parameters", s.name()), "make them one")
		return nil
	case len(tables) == 0:
		if !m.saysNone(parts[0].blocks) {
			m.Report(diag.Warning, tools.CodeParametersNotRead, m.node(parts[0].at, ""), fmt.Sprintf("the Parameters of tool %q are neither a table nor None, so it has none", s.name()),
				"write a table with the columns Name, Type, Required and Description, or None.")
		}
		return nil
	}
	return m.fromTable(tables[0])
}

// saysNone reports whether the text in place of a table is empty or says "none".
func (m *document) saysNone(blocks []ast.Node) bool {
	for _, b := range blocks {
		if b.Kind() != ast.KindParagraph && b.Kind() != ast.KindThematicBreak {
			return false
		}
	}
	switch strings.ToLower(strings.Trim(m.text(blocks), "()*_. ")) {
	case "", "none", "no parameters", "n/a", "-":
		return true
	}
	return false
}

func (m *document) tableAt(t *table) int { return max(t.Pos(), 0) }

// columns are the recognised columns.
var columns = [...]string{"name", "type", "required", "description", "default"}

// fromTable reads the rows of a table.
func (m *document) fromTable(t *table) []*parameter {
	index := map[string]int{} // :: column → its number
	for i, c := range t.header.cells {
		n := m.cell(c, m.tableAt(t))
		title := strings.ToLower(plainCell(n.Text))
		switch _, twice := index[title]; {
		case !slices.Contains(columns[:], title):
			if title != "" {
				m.Report(diag.Warning, tools.CodeParametersNotRead, n, fmt.Sprintf("column %+q is not read", phrase.Clip(n.Text)), "the columns are Name, Type, Required, Description and Default")
			}
		case twice:
			m.Report(diag.Error, tools.CodeParametersTable, n, fmt.Sprintf("column %+q occurs twice", phrase.Clip(n.Text)), "keep one")
			return nil
		default:
			index[title] = i
		}
	}
	for _, title := range []string{"name", "type"} {
		if _, ok := index[title]; !ok {
			m.Report(diag.Error, tools.CodeParametersTable, m.node(m.tableAt(t), ""), fmt.Sprintf("the table of parameters has no column %q", title),
				"write a table with the columns Name, Type, Required and Description")
			return nil
		}
	}
	if _, ok := index["required"]; !ok {
		m.Report(diag.Warning, tools.CodeParametersNotRead, m.node(m.tableAt(t), ""), `the table of parameters has no column "required", so none is required`, "add the column Required, with yes or no")
	}
	var out []*parameter
	for _, row := range t.rows {
		if len(out) == maxParameters {
			m.Report(diag.Error, tools.CodeParametersTable, m.node(row.at, ""), fmt.Sprintf("more than %d parameters", maxParameters), "make several tools of it")
			return nil
		}
		get := func(title string) *strictjson.Node {
			i, ok := index[title]
			if !ok {
				return m.node(row.at, "")
			}
			return m.cell(row.cells[i], row.at)
		}
		if p := m.row(get, out); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// cell returns the text of a cell with its position. A missing cell has the position of its
// row, which is row.
func (m *document) cell(c cell, row int) *strictjson.Node {
	if c.at < 0 {
		return m.node(row, "")
	}
	return m.node(c.at, strings.ReplaceAll(strings.TrimSpace(string(m.src[c.at:c.end])), `\|`, "|"))
}

// plainCell removes Markdown's marks around a single word.
func plainCell(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.Trim(s, "`* "), `\_`, "_"))
}

// row reads one parameter, or returns nil after an error. What is read before
// tells of names that are taken.
func (m *document) row(get func(column string) *strictjson.Node, before []*parameter) *parameter {
	p := &parameter{at: get("name"), about: get("description")}
	p.name, p.description = plainCell(p.at.Text), p.about.Text
	switch {
	case !toolname.Valid(p.name):
		m.Report(diag.Error, tools.CodeParameterName, p.at, fmt.Sprintf("parameter %+q is not made of 1 to 64 letters, digits, _ and -", phrase.Clip(p.name)), "rename it, here and in the command")
		return nil
	case slices.ContainsFunc(before, func(other *parameter) bool { return other.name == p.name }):
		m.Report(diag.Error, tools.CodeParameterName, p.at, fmt.Sprintf("parameter %q occurs twice", p.name), "keep one of them")
		return nil
	}
	ok := false
	if p.kind, ok = m.kind(p.name, get("type")); !ok {
		return nil
	}
	p.required = m.required(p.name, get("required"))
	p.column = get("default")
	return p
}

// kind reads the type of a parameter.
func (m *document) kind(name string, n *strictjson.Node) (kind string, ok bool) {
	said := strings.ToLower(plainCell(n.Text))
	const hint = "the types are string, integer, number, boolean and array"
	switch said {
	case "string", "integer", "number", "boolean", "array":
		return said, true
	case "str", "text":
		kind = "string"
	case "int":
		kind = "integer"
	case "float", "double":
		kind = "number"
	case "bool":
		kind = "boolean"
	case "list", "string[]", "array of strings", "list of strings":
		kind = "array"
	default:
		m.Report(diag.Error, tools.CodeParameterType, n, fmt.Sprintf("parameter %q has the type %+q, which is none", name, phrase.Clip(said)), hint)
		return "", false
	}
	m.Report(diag.Warning, tools.CodeParameterType, n, fmt.Sprintf("type %q of parameter %q is read as %s", said, name, kind), hint)
	return kind, true
}

// required reads whether a parameter is required.
func (m *document) required(name string, n *strictjson.Node) bool {
	said := strings.TrimSuffix(strings.ToLower(plainCell(n.Text)), "\ufe0f")
	first, _, _ := strings.Cut(said, " ")
	switch strings.Trim(first, ".,;:()") {
	case "yes", "y", "true", "required", "x", "[x]", "✓", "✔", "✅", "☑":
		return true
	case "no", "n", "false", "optional", "", "-", "–", "—", "[", "✗", "✘", "✕", "❌", "☐":
		return false
	}
	m.Report(diag.Warning, tools.CodeParameterRequired, n, fmt.Sprintf("whether parameter %q is required is said with %+q, so it is not", name, phrase.Clip(n.Text)), "write yes or no")
	return false
}

// unused warns about parameters that go nowhere.
func (m *document) unused(params []*parameter, args []template.Arg) {
	used := make(map[string]bool)
	for _, a := range args {
		for _, name := range a.Names() {
			used[name] = true
		}
	}
	for _, p := range params {
		if !used[p.name] {
			m.Report(diag.Warning, tools.CodeParameterUnused, p.at, fmt.Sprintf("parameter %q is not in the command", p.name), fmt.Sprintf("write {{%s}} where its value belongs, or remove it", p.name))
		}
	}
}

// schemaOf returns the input schema for params, in their order.
func schemaOf(params []*parameter) json.RawMessage {
	var w strictjson.Writer
	w.Open('{')
	w.Member("type", []byte(`"object"`))
	w.Key("properties")
	w.Open('{')
	required := []string{}
	for _, p := range params {
		w.Key(p.name)
		w.Open('{')
		w.Member("type", strictjson.Canonical(p.kind))
		if p.kind == "array" {
			w.Member("items", []byte(`{"type":"string"}`))
		}
		if p.description != "" {
			w.Member("description", strictjson.Canonical(p.description))
		}
		if p.preset != nil {
			w.Member("default", p.preset)
		}
		w.Close('}')
		if p.required {
			required = append(required, p.name)
		}
	}
	w.Close('}')
	if len(required) > 0 {
		w.Member("required", strictjson.Canonical(required))
	}
	w.Member("additionalProperties", []byte("false"))
	w.Close('}')
	return w.Bytes()
}
