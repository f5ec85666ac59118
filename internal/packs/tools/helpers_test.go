package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// compile makes a tool out of an input schema and a command, both JSON.
func compile(t testing.TB, schema, command string) *Tool {
	t.Helper()
	return compileTool(t, fmt.Sprintf(`{"name": "t", "description": "d", "inputSchema": %s, "command": %s}`, schema, command))
}

func compileTool(t testing.TB, tool string) *Tool {
	t.Helper()
	set, found := parseToolsJSON("tools.json", []byte(`{"tools": [`+tool+`]}`), Limits{})
	if set == nil || len(set.Tools) != 1 {
		t.Fatalf("ParseToolsJSON(%s) = %v", tool, found)
	}
	return set.Tools[0]
}

func mustCheck(t testing.TB, tool *Tool, args string) Values {
	t.Helper()
	v, err := tool.Check(json.RawMessage(args))
	if err != nil {
		t.Fatalf("Check(%s) = %v, want no error", args, err)
	}
	return v
}

func codes(found []diag.Diagnostic) string {
	var out []string
	for _, d := range found {
		out = append(out, d.Code)
	}
	return strings.Join(out, " ")
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// parseToolsJSON reads a tools.json with a loader of its own.
func parseToolsJSON(file string, src []byte, limits Limits) (*Set, []diag.Diagnostic) {
	return (&Loader{Limits: limits}).ParseToolsJSON(file, src)
}

// contextNamesOf returns what a tool takes from the user's context and has no
// default for ("cwd", "file", "url", "selection", "clipboard"), sorted.
func contextNamesOf(t *Tool) []string {
	if t.Command == nil {
		return nil
	}
	var names []string
	for _, a := range t.Command.templates() {
		for _, p := range a.pieces {
			if name, ok := strings.CutPrefix(p.name, contextPrefix); ok && (p.form == plain || p.form == spread) {
				names = append(names, name)
			}
		}
	}
	in := t.schema()
	for param, s := range t.Sources {
		p := in.param(param)
		if name, ok := s.context(); ok && s.Required && (p == nil || p.preset == nil) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
