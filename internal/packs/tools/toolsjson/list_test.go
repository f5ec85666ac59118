package toolsjson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
)

// Each shape that other programs use for lists of tools is accepted, or refused with
// a reason.
func TestShapes(t *testing.T) {
	// Enough for an object to index its members.
	manyKeys := ""
	for i := range 20 {
		manyKeys += fmt.Sprintf(`, "x-%d": 1`, i)
	}
	const schema = `{"type": "object", "properties": {"x": {"type": "string"}}}`
	for _, tt := range []struct {
		name, src string
		want      string // names and "!" for those that run, or what is in the message of the error
	}{
		{"OpenAI", `[{"type": "function", "function": {"name": "a", "description": "d", "parameters": ` + schema + `, "strict": true}}]`, "a"},
		{"OpenAI, without the wrapper", `[{"type": "function", "name": "a", "description": "d", "strict": true, "parameters": ` + schema + `}]`, "a"},
		{"OpenAI, with a command", `[{"type": "function", "function": {"name": "a", "description": "d", "parameters": ` + schema + `}, "command": ["p", "{{x}}"]}]`, "a!"},
		{"OpenAI, with a command inside", `[{"type": "function", "function": {"name": "a", "description": "d", "parameters": ` + schema + `, "command": ["p", "{{x}}"]}}]`, "a!"},
		{"OpenAI, nameless", `[{"type": "function", "function": {"description": "d"}}]`, "entry 1 has no name"},
		{"functions", `{"functions": [{"name": "a", "description": "d", "parameters": ` + schema + `}]}`, "a"},
		{"a map", `{"tools": {"a": {"description": "d"}, "b": {"name": "c", "description": "d", "command": ["p"]}}}`, "a c!"},
		{"a map of a tool with many members", `{"tools": {"a": {"description": "d", "command": ["p"]` + manyKeys + `}}}`, "a!"},
		{"OpenAI, with many members", `[{"type": "function", "function": {"name": "a", "description": "d", "parameters": ` + schema + manyKeys + `}, "command": ["p", "{{x}}"]}]`, "a!"},
		{"a map of wrappers", `{"tools": {"a": {"type": "function", "function": {"description": "d", "parameters": ` + schema + `}}}}`, "a"},
		{"a map of groups", `{"tools": {"a": {"description": "d"}, "g": {"b": {"description": "d"}}}}`, `"g" is not a tool`},
		{"a map of paths", `{"tools": {"a": "./a.js"}}`, `"a" is a string`},
		{"an empty map", `{"tools": {}}`, "empty object"},
		{"one tool", `{"name": "a", "description": "d", "parameters": ` + schema + `, "command": ["p", "{{x}}"]}`, "a!"},
		{"one flat tool", `{"name": "a", "description": "d", "parameters": {"x": {"type": "string"}}, "command": ["p", "{{x}}"]}`, "a!"},
		{"a service", `{"name": "a", "command": ["npm", "start"]}`, `no "tools"`},
		{"nested", `{"skill": {"tools": [{"name": "a", "description": "d", "inputSchema": ` + schema + `}]}, "version": 1}`, "a"},
		{"nested, and anything", `{"site": {"tools": [{"name": "hammer", "description": "d"}]}}`, `no "tools"`},
		{"nested, twice", `{"a": {"tools": [{"name": "a", "command": ["p"]}]}, "b": {"tools": [{"name": "b", "command": ["p"]}]}}`, "several places"},
		{"nested too deep", `{"a": {"b": {"tools": [{"name": "a", "command": ["p"]}]}}}`, `no "tools"`},
		{"a saved reply", `{"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a", "inputSchema": ` + schema + `}]}}`, "saved reply"},
		{"a saved result", `{"result": {"tools": [{"name": "a", "inputSchema": ` + schema + `}]}}`, "saved reply"},
		{"schema", `{"tools": [{"name": "a", "description": "d", "schema": ` + schema + `, "command": ["p", "{{x}}"]}]}`, "a!"},
		{"another file says how", `{"tools": [{"name": "a", "description": "d", "execution": "execution.json"}]}`, "a"},
		{"handler", `{"tools": [{"name": "a", "description": "d", "handler": ["rm", "-rf"]}]}`, "a"},
		{"runner", `{"tools": [{"name": "a", "description": "d", "runner": {"program": "p"}}]}`, "a"},
		{"command of another kind", `{"tools": [{"name": "a", "description": "d", "command": {"cmd": "p"}}]}`, "a"},
		{"dotted name of what does not run", `{"tools": [{"name": "a.b", "description": "d"}]}`, "a.b"},
		{"dotted name of what runs", `{"tools": [{"name": "a.b", "description": "d", "command": ["p"]}]}`, "not made of"},
		{"name that cannot be shown", "{\"tools\": [{\"name\": \"a\u202eb\", \"description\": \"d\"}]}", "not made of"},
	} {
		set, found := toolsjson.Parse("tools.json", []byte(tt.src), tools.Limits{})
		var got []string
		if set == nil {
			if !strings.Contains(found[0].Message, tt.want) {
				t.Errorf("%s: ParseToolsJSON(%s) = %v, want %q in it", tt.name, tt.src, found, tt.want)
			}
			continue
		}
		for _, tool := range set.Tools {
			name := tool.Name
			if tool.Command != nil {
				name += "!"
			} else if tool.DeclaredOnly == "" {
				t.Errorf("%s: no reason why %s does not run", tt.name, tool.Name)
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: ParseToolsJSON(%s) = %q, want %q", tt.name, tt.src, got, tt.want)
		}
	}
}
