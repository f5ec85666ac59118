package tools

import (
	"encoding/json"
	"fmt"
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
	set, found := ParseToolsJSON("tools.json", []byte(`{"tools": [`+tool+`]}`), Limits{})
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
