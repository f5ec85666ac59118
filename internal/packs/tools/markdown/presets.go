package markdown

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// presets sets the parameters' defaults from their rows, either the column or the
// description, unless the command has a different default: "Directory (default: current)"
// with {{path:.}} means ".".
func (m *document) presets(params []*parameter, args []template.Arg) {
	fallbacks := make(map[string]string)
	for _, a := range args {
		for _, piece := range a.Pieces {
			if _, ok := fallbacks[piece.Name]; piece.Form == template.Fallback && !ok {
				fallbacks[piece.Name] = piece.Extra
			}
		}
	}
	for _, p := range params {
		said, ok := saidDefault(p.description)
		where := p.about
		if p.column != nil && plainCell(p.column.Text) != "" {
			if ok && said != p.column.Text {
				m.Report(diag.Warning, tools.CodeDefaultConflict, p.about, fmt.Sprintf("the default of %q is %+q here and %+q in its column, which counts", p.name, phrase.Clip(said), phrase.Clip(p.column.Text)), "write the same value in both places")
			}
			said, where, ok = p.column.Text, p.column, true
		}
		if text, quoted := unquoteDefault(said); !ok || !quoted && saysNothing(text) {
			continue
		}
		value, ok := readDefault(p.kind, said)
		inCommand, has := fallbacks[p.name]
		switch {
		case !ok:
			m.Report(diag.Info, tools.CodeDefaultNotRead, where, fmt.Sprintf("%+q is not a default that %s %s can have, so it counts as text", phrase.Clip(said), article(p.kind), p.kind),
				"write the value itself if it is meant to be the default")
		case has && renderJSON(value) != inCommand:
			severity := diag.Warning
			if p.kind == "string" {
				severity = diag.Info // the words may not be meant as a value
			}
			m.Report(severity, tools.CodeDefaultConflict, where, fmt.Sprintf("the default of %q is %+q here and %+q in the command, which counts", p.name, phrase.Clip(said), phrase.Clip(inCommand)), "write the same value in both places")
		default:
			p.preset = value
		}
	}
}

func article(kind string) string {
	if strings.HasPrefix(kind, "i") || strings.HasPrefix(kind, "a") {
		return "an"
	}
	return "a"
}

// renderJSON returns a value in the form it has as an argument.
func renderJSON(raw json.RawMessage) string {
	n, e := strictjson.Parse(raw)
	if e != nil {
		return ""
	}
	return template.Render(n.Value())
}

// saidDefault finds "(default: X)" in a description.
func saidDefault(description string) (text string, ok bool) {
	const mark = "(default:"
	i := strings.Index(strings.ToLower(description), mark)
	if i < 0 || len(strings.ToLower(description)) != len(description) {
		return "", false
	}
	text = description[i+len(mark):]
	depth := 1
	for j := range len(text) {
		switch text[j] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return strings.TrimSpace(text[:j]), true
		}
	}
	return "", false
}

// readDefault parses a default as a value of a type.
func readDefault(kind, said string) (json.RawMessage, bool) {
	text, quoted := unquoteDefault(said)
	switch kind {
	case "string":
		return strictjson.Canonical(text), quoted || text != ""
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "yes", "on":
			return json.RawMessage("true"), true
		case "false", "no", "off":
			return json.RawMessage("false"), true
		}
		return nil, false
	}
	n, e := strictjson.Parse([]byte(text))
	if e != nil {
		return nil, false
	}
	switch kind {
	case "integer":
		if n.Kind != strictjson.Number || strings.Trim(n.Text, "-0123456789") != "" {
			return nil, false
		}
	case "number":
		if n.Kind != strictjson.Number {
			return nil, false
		}
	case "array":
		if n.Kind != strictjson.List {
			return nil, false
		}
		for _, item := range n.Items {
			if item.Kind != strictjson.Text {
				return nil, false
			}
		}
	}
	return strictjson.Canonical(n.Value()), true
}

// unquoteDefault removes quotes or backticks around the whole text.
func unquoteDefault(s string) (text string, quoted bool) {
	if n := len(s); n >= 2 && s[0] == s[n-1] && strings.IndexByte("\"'`", s[0]) >= 0 {
		return s[1 : n-1], true
	}
	return s, false
}

// saysNothing reports whether a word stands for no value.
func saysNothing(word string) bool {
	switch strings.ToLower(word) {
	case "none", "null", "nil", "n/a", "unset", "-", "–", "—":
		return true
	}
	return false
}
