package toolsjson_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
	"github.com/packs-mcp/packs-mcp/schemas"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

// Every code has a case here that reports exactly it.
func TestParseDiagnostics(t *testing.T) {
	const args = `"inputSchema": {"properties": {"x": {"type": "string"}}}, "command": `
	many := `{"tools": [` + strings.Repeat(`{"name": "a"},`, 200) + `{"name": "a"}]}`
	seen := make(map[string]bool)
	for _, tt := range []struct {
		name, src string
		want      string // codes
		at        string // line:col of the first one, or ""
	}{
		{"empty", " \n", strictjson.CodeSyntax, "1:1"},
		{"cut short", "{\"tools\": [\n{\"name\": \"a\"", strictjson.CodeSyntax, "2:13"},
		{"cut in a string", "{\"tools", strictjson.CodeSyntax, "1:8"},
		{"cut after an item", "[1", strictjson.CodeSyntax, "1:3"},
		{"not JSON", "{tools: []}", strictjson.CodeSyntax, "1:2"},
		{"single quotes", "{'tools': []}", strictjson.CodeSyntax, "1:2"},
		{"no comma", "{\"a\": 1\n \"b\": 2}", strictjson.CodeSyntax, "1:8"}, // behind what is there
		{"NaN", `{"a": NaN}`, strictjson.CodeSyntax, "1:7"},
		{"newline in a string", "[\"a\nb\"]", strictjson.CodeSyntax, "1:2"},
		{"trailing data", "{\"tools\": []}\n{}", strictjson.CodeSyntax, "2:1"},
		{"trailing bracket", "{\"tools\": []}}", strictjson.CodeSyntax, "1:14"},
		{"bad UTF-8", "{\"tools\":\n\"\xff\"}", strictjson.CodeSyntax, "2:2"},
		{"lone surrogate", `{"tools": "\ud800"}`, strictjson.CodeSyntax, "1:11"},
		{"lone low surrogate", `{"\udc00": 1}`, strictjson.CodeSyntax, "1:2"},
		{"comma after a brace", "{\"tools\": [\n{ , \"a\": 1}]}", strictjson.CodeSyntax, "2:3"},
		{"comma after a bracket", "{\"tools\": [\n,{}]}", strictjson.CodeSyntax, "2:1"},
		{"comma after a brace, and no more", "{,", strictjson.CodeSyntax, "1:2"},
		{"line comment", "{\n// what\n\"tools\": []}", strictjson.CodeComment, "2:1"},
		{"block comment", "{\"tools\": [] /* x */}", strictjson.CodeComment, "1:14"},
		{"comment at the end", "{\"tools\": []}\n// x", strictjson.CodeComment, "2:1"},
		{"trailing comma in a list", "{\"tools\": [\n{\"name\": \"a\"},\n]}", strictjson.CodeTrailingComma, "2:14"},
		{"trailing comma in an object", "{\"tools\": [],\n}", strictjson.CodeTrailingComma, "1:13"},
		{"duplicate key", "{\"tools\": [],\n \"tools\": []}", strictjson.CodeDuplicateKey, "2:2"},
		{"duplicate key, escaped", `{"tools": [], "\u0074ools": []}`, strictjson.CodeDuplicateKey, "1:15"},
		{"deep", tooltest.Nested(10_000), strictjson.CodeDepth, "1:102"},
		{"number", `{"tools": 1e999999999}`, strictjson.CodeNumber, "1:11"},
		{"long number", `{"tools": ` + strings.Repeat("9", 1000) + `}`, strictjson.CodeNumber, "1:11"},
		{"large", strings.Repeat(" ", 1<<20+1), tools.CodeTooLarge, ""},
		{"201 tools", many, tools.CodeTooMany, "1:11"},

		{"a string", `"x"`, tools.CodeNotAToolList, "1:1"},
		{"no tools", `{"sites": []}`, tools.CodeNotAToolList, "1:1"},
		{"a map of groups", `{"tools": {"decide": {}}}`, tools.CodeNotAToolList, "1:11"},
		{"paths", `{"tools": ["./tools/x.js"]}`, tools.CodeNotAToolList, "1:12"},
		{"site data", `[{"name": "Canva AI", "category": "Design"}]`, tools.CodeNotAToolList, "1:1"},
		{"no names", `{"tools": [{"id": 1}]}`, tools.CodeNotAToolList, "1:12"},

		{"name", `{"tools": [{"name": "a b", "description": "d"}]}`, tools.CodeNameInvalid, "1:21"},
		{"empty name", `{"tools": [{"name": "", "description": "d"}]}`, tools.CodeNameInvalid, "1:21"},
		{"dotted name", `{"tools": [{"name": "a.b", "description": "d"}]}`, tools.CodeNameInvalid, "1:21"},
		{"long name", `{"tools": [{"name": "` + strings.Repeat("a", 65) + `", "description": "d"}]}`, tools.CodeNameInvalid, "1:21"},
		{"name of ours", `{"tools": [{"name": "Capability-Packs_list", "description": "d"}]}`, tools.CodeNameReserved, "1:21"},
		{"dotted name of ours", `{"tools": [{"name": "capability_packs.list", "description": "d"}]}`, tools.CodeNameInvalid + " " + tools.CodeNameReserved, "1:21"},
		{"name of another server", `{"tools": [{"name": "mcp__github__x", "description": "d"}]}`, tools.CodeNameReserved, "1:21"},

		{"no description", `{"tools": [{"name": "t"}]}`, tools.CodeDescriptionMissing, "1:12"},
		{"long description", `{"tools": [{"name": "t", "description": "` + strings.Repeat("ä", 1025) + `"}]}`, tools.CodeDescriptionLong, "1:41"},
		{"unknown keys", tooltest.One(`"a": 1, "policy": {"b": 1}, "output": {"c": 1}, "command": {"program": "p", "shell": true}`),
			strings.Repeat(tools.CodeUnknownKey+" ", 3) + tools.CodeUnknownKey, "1:51"},
		{"TP-04 annotations", tooltest.One(`"annotations": {"readOnlyHint": true}`), tools.CodeAnnotationsIgnored, "1:61"},

		{"shape", tooltest.One(`"title": 1`), tools.CodeShape, "1:55"},
		{"shape, far inside", tooltest.One(`"command": {"program": "p", "args": ["-n", 5]}`), tools.CodeShape, "1:89"},
		{"shape, argv", tooltest.One(`"command": ["p", 5]`), tools.CodeShape, "1:63"},
		{"shape, empty argv", tooltest.One(`"command": []`), tools.CodeShape, "1:57"},
		{"timeout", tooltest.One(`"policy": {"timeout_secs": 301}`), tools.CodeShape, "1:73"},
		{"timeout of nothing", tooltest.One(`"policy": {"timeout_secs": 0}`), tools.CodeShape, "1:73"},
		{"exit code", tooltest.One(`"policy": {"allowed_exit_codes": [256]}`), tools.CodeShape, "1:80"},
		{"network", tooltest.One(`"policy": {"network": "all"}`), tools.CodeShape, "1:68"},
		{"network that is a number", tooltest.One(`"policy": {"network": 1}`), tools.CodeShape, "1:68"},
		{"network of nothing", tooltest.One(`"policy": {"network": {}}`), tools.CodeShape, "1:68"},
		{"no hosts", tooltest.One(`"policy": {"network": {"hosts": []}}`), tools.CodeShape, "1:78"},
		{"hosts in one text", tooltest.One(`"policy": {"network": {"hosts": "example.com:443"}}`), tools.CodeShape, "1:78"},
		{"host that is a number", tooltest.One(`"policy": {"network": {"hosts": [443]}}`), tools.CodeShape, "1:79"},
		{"too many hosts", tooltest.One(`"policy": {"network": {"hosts": [` + strings.Repeat(`"example.com:1", `, 16) + `"example.com:2"]}}`), tools.CodeShape, "1:78"},
		{"host without a port", tooltest.One(`"policy": {"network": {"hosts": ["example.com"]}}`), tools.CodeHost, "1:79"},
		{"host that is an address", tooltest.One(`"policy": {"network": {"hosts": ["127.0.0.1:443"]}}`), tools.CodeHost, "1:79"},
		{"pattern of hosts", tooltest.One(`"policy": {"network": {"hosts": ["*.example.com:443"]}}`), tools.CodeHost, "1:79"},
		{"hosts and more", tooltest.One(`"policy": {"network": {"hosts": ["example.com:443"], "ports": [1]}}`), tools.CodeUnknownKey, "1:108"},
		{"hosts, and no network", tooltest.One(`"policy": {"network": {"hosts": ["example.com:443"]}, "requires_network": false}`), tools.CodePolicyConflict, "1:68"},
		{"stdin", tooltest.One(`"command": {"program": "p", "stdin": "text"}`), tools.CodeShape, "1:83"},
		{"cache", tooltest.One(`"policy": {"cache": "../x"}`), tools.CodeCacheName, "1:66"},
		{"no cache", tooltest.One(`"policy": {"cache": ""}`), tools.CodeCacheName, "1:66"},
		{"cache of a device", tooltest.One(`"policy": {"cache": "NUL"}`), tools.CodeCacheName, "1:66"},
		{"cache that is no text", tooltest.One(`"policy": {"cache": ["x"]}`), tools.CodeShape, "1:66"},
		{"policy conflict", tooltest.One(`"policy": {"network": "none", "requires_network": true}`), tools.CodePolicyConflict, "1:68"},

		{"string command", tooltest.One(`"command": "npx foo"`), tools.CodeCommandNotUnderstood, "1:57"},
		{"other command", tooltest.One(`"command": {"cmd": "foo"}`), tools.CodeCommandNotUnderstood, "1:57"},

		{"schema", tooltest.One(`"inputSchema": {"properties": {"x": {"type": "text"}}}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"schema of a list", tooltest.One(`"inputSchema": {"type": "array"}, "command": ["p"]`), tools.CodeSchemaInvalid, "1:61"},
		{"schema elsewhere", tooltest.One(`"inputSchema": {"$ref": "https://example.com/x.json"}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"schema in a file", tooltest.One(`"inputSchema": {"properties": {"x": {"$ref": "file:///etc/passwd"}}}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"schema next door", tooltest.One(`"inputSchema": {"properties": {"x": {"$ref": "other.json"}}}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"schema's dialect", tooltest.One(`"inputSchema": {"$schema": "https://example.com/dialect"}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"schema's pattern", tooltest.One(`"inputSchema": {"properties": {"x": {"pattern": "(?!a)"}}}, "command": ["p"]`), tools.CodeSchemaInvalid, "1:94"},
		{"schema that points nowhere", tooltest.One(`"inputSchema": {"properties": {"x": {"$ref": "#/$defs/x"}}}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"output schema", tooltest.One(`"outputSchema": {"type": "text"}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"schema, declared only", tooltest.One(`"parameters": {"x": {"type": "string"}, "type": "flat"}`), tools.CodeSchemaNotRead, "1:60"},
		{"two schemas", tooltest.One(`"inputSchema": {}, "parameters": {}, "command": ["p"]`), tools.CodeSchemaTwice, "1:79"},
		{"default", tooltest.One(`"inputSchema": {"properties": {"x": {"type": "string", "default": 1}}}, "command": ["p"]`), tools.CodeDefaultInvalid, "1:112"},

		{"default in a flat map", tooltest.One(`"parameters": {"x": {"type": "string", "default": 1}}, "command": ["p"]`), tools.CodeDefaultInvalid, "1:96"},
		{"source in a flat map", tooltest.One(`"parameters": {"x": {"type": "string", "source": "context.home"}}, "command": ["p"]`), tools.CodeSourceInvalid, "1:95"},
		{"source in a flat map, declared only", tooltest.One(`"parameters": {"x": {"type": "string", "source": "voice"}}`), tools.CodeSourceInvalid, "1:95"},
		{"fixed value in a flat map", tooltest.One(`"parameters": {"x": {"type": "string", "source": "literal"}}, "command": ["p"]`), tools.CodeSourceInvalid, "1:66"},
		{"source of nothing", tooltest.One(`"sources": {"x": {"from": "context.url"}}, "command": ["p"]`), tools.CodeSourceInvalid, "1:63"},
		{"fixed value that is not there", tooltest.One(`"sources": {"x": {"from": "literal"}}, "command": ["p"]`), tools.CodeSourceInvalid, "1:63"},
		{"fixed value of a property", tooltest.One(`"inputSchema": {"properties": {"x": {}}}, "sources": {"x": {"from": "literal", "value": 1}}, "command": ["p"]`), tools.CodeSourceInvalid, ""},
		{"value that is not fixed", tooltest.One(`"inputSchema": {"properties": {"x": {}}}, "sources": {"x": {"from": "transcript", "value": 1}}, "command": ["p"]`), tools.CodeSourceInvalid, ""},
		{"unknown source", tooltest.One(`"inputSchema": {"properties": {"x": {}}}, "sources": {"x": {"from": "voice"}}, "command": ["p"]`), tools.CodeShape, ""},
		{"flat map and a schema", tooltest.One(`"inputSchema": {}, "parameters": {"x": {"type": "string"}}, "command": ["p"]`), tools.CodeSchemaTwice, "1:79"},
		{"flat map's type", tooltest.One(`"parameters": {"x": {"type": "text", "description": "d"}}, "command": ["p"]`), tools.CodeSchemaInvalid, "1:75"},
		{"twice around a function", `{"tools": [{"type": "function", "name": "n", "function": {"name": "t", "description": "d"}}]}`, tools.CodeUnknownKey, "1:41"},
		{"schema's patterns", tooltest.One(`"inputSchema": {"properties": {"x": {"pattern": "` + strings.Repeat(".{1000}", 20) + `"}}}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"schema in itself", tooltest.One(`"inputSchema": {"properties": {"x": {"$ref": "#/properties/x"}}}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"schema in itself by branches", tooltest.One(`"inputSchema": {"properties": {"x": {"anyOf": [{"type": "string"}, {"not": {"$ref": "#/properties/x"}}]}}}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"schema with a dynamic anchor", tooltest.One(`"inputSchema": {"$dynamicAnchor": "a", "properties": {"x": {"$dynamicRef": "#a"}}}, "command": ["p"]`), tools.CodeSchemaInvalid, ""},
		{"1,001 words", tooltest.One(`"command": ["p"` + strings.Repeat(`, "a"`, 1000) + `]`), tools.CodeCommandLong, "1:57"},
		{"shell code in the last word", tooltest.One(args + `["a", "sh", "b", "-c", "{{x}}"]`), tools.CodePlaceholderInShell, ""},
		{"shell code after other code", tooltest.One(args + `["python3", "-c", "1", "sh", "-c", "{{x}}"]`), tools.CodePlaceholderInShell, ""},
		{"the first of two", tooltest.One(args + `["python3", "-c", "{{x}}", "sh", "-c", "{{x}}"]`), tools.CodePlaceholderInCode, ""},

		{"program in a folder", tooltest.One(`"command": ["bin/p"]`), tools.CodeProgramInvalid, "1:58"},
		{"program above", tooltest.One(`"command": ["./../p"]`), tools.CodeProgramInvalid, "1:58"},
		{"program above, later", tooltest.One(`"command": ["./a/../../p"]`), tools.CodeProgramInvalid, "1:58"},
		{"program with arguments", tooltest.One(`"command": ["git status"]`), tools.CodeProgramInvalid, "1:58"},
		{"program is a dash", tooltest.One(`"command": ["-p"]`), tools.CodeProgramInvalid, "1:58"},
		{"program is the pack", tooltest.One(`"command": ["./"]`), tools.CodeProgramInvalid, "1:58"},
		{"program is empty", tooltest.One(`"command": [""]`), tools.CodeProgramInvalid, "1:58"},
		{"program with NUL", tooltest.One(`"command": ["p\u0000"]`), tools.CodeProgramInvalid, "1:58"},
		{"placeholder in the program", tooltest.One(args + `["{{x}}"]`), tools.CodePlaceholderInProgram, ""},
		{"unknown placeholder", tooltest.One(args + `["p", "{{y}}"]`), tools.CodePlaceholderUnknown, ""},
		{"unknown context", tooltest.One(args + `["p", "{{context.home}}"]`), tools.CodePlaceholderUnknown, ""},
		{"unknown placeholder in env", tooltest.One(args + `{"program": "p", "env": {"A": "{{y}}"}}`), tools.CodePlaceholderUnknown, ""},
		{"unknown placeholder in cwd", tooltest.One(args + `{"program": "p", "cwd": "{{y}}"}`), tools.CodePlaceholderUnknown, ""},
		{"unknown placeholder in a template", tooltest.One(`"output": {"template": "{{x}}"}`), tools.CodePlaceholderUnknown, ""},
		{"open placeholder", tooltest.One(args + `["p", "{{x"]`), tools.CodePlaceholderInvalid, ""},
		{"NUL in an argument", tooltest.One(args + `["p", "\u0000"]`), tools.CodePlaceholderInvalid, ""},
		{"spread in env", tooltest.One(args + `{"program": "p", "env": {"A": "{{x...}}"}}`), tools.CodePlaceholderInvalid, ""},
		{"flag in cwd", tooltest.One(args + `{"program": "p", "cwd": "{{x:--f}}"}`), tools.CodePlaceholderInvalid, ""},
		{"open placeholder in a template", tooltest.One(`"output": {"template": "{{output"}`), tools.CodePlaceholderInvalid, ""},
		{"shell code", tooltest.One(args + `["sh", "-c", "echo {{x}}"]`), tools.CodePlaceholderInShell, ""},
		{"shell code behind env", tooltest.One(args + `["/usr/bin/env", "bash", "-ec", "{{x}}"]`), tools.CodePlaceholderInShell, ""},
		{"shell code for cmd", tooltest.One(args + `["cmd.exe", "/c", "echo", "{{x}}"]`), tools.CodePlaceholderInShell, ""},
		{"other code", tooltest.One(args + `["python3", "-c", "print({{x}})"]`), tools.CodePlaceholderInCode, ""},
		{"parameter that goes nowhere", tooltest.One(args + `["p"]`), tools.CodeParameterUnused, "1:61"},
		{"cwd", tooltest.One(`"command": {"program": "p", "cwd": "/tmp"}`), tools.CodeCwdInvalid, "1:81"},
		{"env name", tooltest.One(`"command": {"program": "p", "env": {"A B": "", "1": ""}}`), tools.CodeEnvName + " " + tools.CodeEnvName, ""},
		{"EN-02", tooltest.One(`"command": {"program": "p", "env": {"LD_PRELOAD": "x"}}`), tools.CodeEnvForbidden, "1:96"},
		{"many values", `{"tools": [1` + strings.Repeat(",1", 200_000) + `]}`, strictjson.CodeSize, ""},
		{"many problems", `{"tools": [` + strings.Repeat(`{"name": 1},`, 199) + `{"name": 1}]}`, strings.Repeat(tools.CodeShape+" ", 100) + tools.CodeMore, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set, found := toolsjson.Parse("p/tools.json", []byte(tt.src), tools.Limits{})
			if got := tooltest.Codes(found); got != tt.want {
				t.Fatalf("ParseToolsJSON(%.200s)\n  codes %s\n  want  %s\n%v", tt.src, got, tt.want, found)
			}
			if (set == nil) != diag.HasErrors(found) {
				t.Errorf("ParseToolsJSON(%.200s) = %v with %v", tt.src, set, found)
			}
			if got := fmt.Sprintf("%d:%d", found[0].Line, found[0].Column); tt.at != "" && got != tt.at {
				t.Errorf("ParseToolsJSON(%.200s) reports %s, want %s", tt.src, got, tt.at)
			}
			for _, d := range found {
				seen[d.Code] = true
				if d.Message == "" || d.File != "p/tools.json" {
					t.Errorf("diagnostic %+v is not complete", d)
				}
			}
		})
	}
	seen[tools.CodeNameDuplicate] = true // TestNamesToldApart
	tooltest.ReportsAll(t, seen, "../codes.go", "Codes of the diagnostics of every format")
	tooltest.ReportsAll(t, seen, "../../../strictjson/parse.go", "Codes of the errors of [Parse]")
}

// A problem inside a schema is reported at its place.
func TestParsePointers(t *testing.T) {
	src := "{\"tools\": [{\"name\": \"t\", \"description\": \"d\",\n\"inputSchema\": {\n\"properties\": {\n\"x\": {\"type\": \"text\"}\n}},\n\"command\": {\"program\": \"p\",\n\"args\": [\"a\",\n\"{{x\"]}}]}"
	_, found := toolsjson.Parse("f", []byte(src), tools.Limits{})
	if len(found) != 1 || found[0].Pointer != "/tools/0/inputSchema/properties/x/type" || found[0].Line != 4 {
		t.Errorf("ParseToolsJSON = %+v, want the type of x in line 4", found)
	}
	_, found = toolsjson.Parse("f", []byte(strings.Replace(src, "text", "string", 1)), tools.Limits{})
	if len(found) != 1 || found[0].Pointer != "/tools/0/command/args/1" || found[0].Line != 8 {
		t.Errorf("ParseToolsJSON = %+v, want the argument in line 8", found)
	}
	src = strings.NewReplacer("text", "string", "{{x", "{{x}}", "\"x\": {", "\"a/b~c\": {\"default\": 1, ").Replace(src)
	_, found = toolsjson.Parse("f", []byte(src), tools.Limits{})
	if len(found) == 0 || found[0].Pointer != "/tools/0/inputSchema/properties/a~1b~0c/default" {
		t.Errorf("ParseToolsJSON = %+v, want the default of a/b~c", found)
	}
}

func TestParseAccepts(t *testing.T) {
	for name, src := range map[string]string{
		"no tools":             `{"tools": []}`,
		"an empty list":        `[]`,
		"BOM":                  "\ufeff" + tooltest.One(`"command": ["p"]`),
		"CRLF":                 strings.ReplaceAll("{\n\"tools\":\n[]\n}\n", "\n", "\r\n"),
		"a bare list":          `[{"name": "t", "description": "d", "command": ["p"]}]`,
		"parameters":           tooltest.One(`"parameters": {"type": "object", "properties": {"x": {}}}, "command": ["p", "{{x}}"]`),
		"input_schema":         tooltest.One(`"input_schema": {"properties": {"x": {}}}, "command": ["p", "{{x}}"]`),
		"absolute program":     tooltest.One(`"command": ["/usr/bin/git"]`),
		"Windows program":      tooltest.One(`"command": ["C:\\Program Files\\x.exe"]`),
		"program of the pack":  tooltest.One(`"command": ["./a b/../c.sh"]`),
		"shell, arguments":     tooltest.One(`"inputSchema": {"properties": {"x": {}}}, "command": ["sh", "-c", "echo \"$1\"", "sh", "{{x}}"]`),
		"shell script":         tooltest.One(`"inputSchema": {"properties": {"x": {}}}, "command": ["bash", "./run.sh", "{{x}}"]`),
		"draft 7":              tooltest.One(`"inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "properties": {"x": {"$ref": "#/definitions/a"}}}, "command": ["p", "{{x}}"]`),
		"hosts":                tooltest.One(`"policy": {"network": {"hosts": ["API.example.com:443", "api.example.com:80"]}, "requires_network": true}, "command": ["p"]`),
		"network twice":        tooltest.One(`"policy": {"network": "full", "requires_network": true, "timeout_secs": 3e2}`),
		"pairs of surrogates":  tooltest.One(`"title": "\ud83e\udde0 \ufffd"`),
		"property of a ref":    tooltest.One(`"inputSchema": {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {}}}}}, "command": ["p", "{{x}}"]`),
		"property of a branch": tooltest.One(`"inputSchema": {"oneOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]}, "command": ["p", "{{x}}", "{{y}}"]`),
		"1,000 words":          tooltest.One(`"command": ["p"` + strings.Repeat(`, "a"`, 999) + `]`),
		"shell without code":   tooltest.One(`"inputSchema": {"properties": {"x": {}}}, "command": ["sh", "x", "{{x}}", "-c"]`),
		"env of its own":       tooltest.One(`"command": {"program": "p", "env": {"TICKET_FORMAT": "json", "PYTHONUNBUFFERED": "1"}}`),
		"patterns":             tooltest.One(`"inputSchema": {"properties": {"x": {"pattern": "^[\\p{L}\\p{N} ._-]{1,500}$"}}}, "command": ["p", "{{x}}"]`),
		"recursive schema":     tooltest.One(`"inputSchema": {"properties": {"x": {"$ref": "#"}}}, "command": ["p", "{{x}}"]`),
	} {
		if set, found := toolsjson.Parse("f", []byte(src), tools.Limits{}); set == nil || len(found) > 0 {
			t.Errorf("%s: ParseToolsJSON(%s) = %v, %v", name, src, set, found)
		}
	}
}

func TestParseDeclaredOnly(t *testing.T) {
	set, found := toolsjson.Parse("f", []byte(`{"tools": [
		{"name": "a", "description": "d"},
		{"name": "b", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}, "command": "npx b"},
		{"name": "c", "description": "d", "parameters": true}
	]}`), tools.Limits{})
	if got, want := tooltest.Codes(found), tools.CodeCommandNotUnderstood+" "+tools.CodeSchemaNotRead; got != want {
		t.Errorf("codes %s, want %s", got, want)
	}
	for i, want := range []string{"it declares no command", "its command is a string", "it declares no command"} {
		tool := set.Tools[i]
		if tool.Command != nil || tool.DeclaredOnly != want || tool.Line != i+2 {
			t.Errorf("tool %s in line %d: command %v, declared only because %q, want %q", tool.Name, tool.Line, tool.Command, tool.DeclaredOnly, want)
		}
	}
	if got, want := set.Tools[1].Signature(), "b(x?: string)"; got != want {
		t.Errorf("Signature() = %q, want %q", got, want)
	}
}

// SH-01: two names that could be confused are refused, and the message has both.
func TestNamesToldApart(t *testing.T) {
	for _, pair := range [][2]string{
		{"a", "a"}, {"open_ticket", "Open_Ticket"}, {"open_ticket", "open-ticket"}, {"open_ticket", "open.ticket"},
		{"caf\u00e9", "cafe\u0301"}, {"run", "r\u200bun"}, {"run", "r\u2060un"}, {"run", "\uff52un"}, {"k", "\u212a"},
		{"run", "r\U000e0041un"}, {"run", "r\ufe0fun"}, {"Σ", "ς"},
	} {
		src := fmt.Sprintf("{\"tools\": [{\"name\": %s, \"description\": \"d\"},\n{\"name\": %s, \"description\": \"d\"}]}", tooltest.Quote(pair[0]), tooltest.Quote(pair[1]))
		set, found := toolsjson.Parse("f", []byte(src), tools.Limits{})
		ok := false
		for _, d := range found {
			ok = ok || d.Code == tools.CodeNameDuplicate && d.Line == 2 &&
				strings.Contains(d.Message, fmt.Sprintf("%+q", pair[0])) && strings.Contains(d.Message, fmt.Sprintf("%+q", pair[1]))
		}
		if set != nil || !ok {
			t.Errorf("ParseToolsJSON of %+q and %+q = %v, %v", pair[0], pair[1], set, found)
		}
	}
	for _, pair := range [][2]string{{"a", "b"}, {"ab", "a_b"}, {"a_b", "a__b"}} {
		src := fmt.Sprintf(`{"tools": [{"name": %q}, {"name": %q}]}`, pair[0], pair[1])
		if set, found := toolsjson.Parse("f", []byte(src), tools.Limits{}); set == nil {
			t.Errorf("ParseToolsJSON of %q and %q = %v, want both", pair[0], pair[1], found)
		}
	}
}

func TestLookup(t *testing.T) {
	set, _ := toolsjson.Parse("f", []byte(`{"tools": [{"name": "open_ticket"}, {"name": "close"}]}`), tools.Limits{})
	for _, name := range []string{"open_ticket", "Open-Ticket", "open.ticket"} {
		if got := set.Lookup(name); got != set.Tools[0] {
			t.Errorf("Lookup(%q) = %v, want open_ticket", name, got)
		}
	}
	if got := set.Lookup("open"); got != nil {
		t.Errorf("Lookup(%q) = %v, want nil", "open", got)
	}
	if got := (*tools.Set)(nil).Lookup("open"); got != nil {
		t.Errorf("Lookup in no set = %v, want nil", got)
	}
}

// The published schema agrees with the loader, which uses only the schema's part
// about one tool.
func TestPublishedSchema(t *testing.T) {
	root, e := strictjson.Parse([]byte(schemas.ToolsV1()))
	if e != nil {
		t.Fatal(e)
	}
	if got := root.StringAt("$id"); got != schemas.ToolsV1ID {
		t.Errorf("$id %q, want %q", got, schemas.ToolsV1ID)
	}
	whole, err := schema.Compile(root)
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]bool{
		`{"tools": []}`:                     true,
		`[]`:                                true,
		`{}`:                                false,
		`{"tools": {}}`:                     false,
		tooltest.One(`"command": ["p"]`):    true,
		tooltest.One(`"command": ["p", 1]`): false,
		tooltest.One(`"command": {"program": "p"}`):           true,
		tooltest.One(`"command": {"program": "p", "x": 1}`):   true,
		tooltest.One(`"policy": {"timeout_secs": 0}`):         false,
		tooltest.One(`"output": {"format": "xml"}`):           false,
		tooltest.One(`"annotations": {"readOnlyHint": true}`): true,
	} {
		n, e := strictjson.Parse([]byte(src))
		if e != nil {
			t.Fatal(e)
		}
		if got := whole.Validate(n.Value()) == nil; got != want {
			t.Errorf("schema accepts %s = %v, want %v", src, got, want)
		}
		if set, found := toolsjson.Parse("f", []byte(src), tools.Limits{}); (set != nil) != want {
			t.Errorf("ParseToolsJSON(%s) = %v, %v, want accepted = %v", src, set, found, want)
		}
	}
}

// The example packs must be right, since people copy them.
func TestExamplePacks(t *testing.T) {
	src, err := os.ReadFile("../../../../examples/packs/git-helper/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	if set, found := toolsjson.Parse("tools.json", src, tools.Limits{}); set == nil || len(found) > 0 {
		t.Errorf("ParseToolsJSON = %v, %v, want tools and no diagnostics", set, found)
	}
}

func FuzzParseToolsJSON(f *testing.F) {
	for _, s := range []string{
		"", "{}", "[]", `{"tools": [{"name": "t", "command": ["p", "{{x}}"]}]}`,
		tooltest.One(`"inputSchema": {"properties": {"x": {"type": "string", "default": "y"}}, "$ref": "#/$defs/a", "$defs": {"a": true}}, "command": {"program": "./p", "args": ["{{x...}}", "{{x:--f}}", "{{{{"], "env": {"A": "{{x}}"}, "cwd": "{{context.cwd}}", "stdin": "json"}, "policy": {"requires_network": true, "timeout_secs": 60, "allowed_exit_codes": [1, 0]}, "output": {"format": "json", "template": "{{output}}", "max_chars": 5, "speak": true}, "examples": ["a"], "modes": ["Global"], "title": "T"`),
		`[{"name": "a", "parameters": {"allOf": [{"properties": {"x": false}}]}, "command": ["p"]}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		set, found := toolsjson.Parse("f", src, tools.Limits{})
		if (set == nil) != diag.HasErrors(found) {
			t.Fatalf("ParseToolsJSON(%q) = %v with %v", src, set, found)
		}
		if set == nil {
			return
		}
		for _, tool := range set.Tools {
			def := tool.Definition()
			again, found := toolsjson.Parse("f", []byte(`{"tools": [`+string(def)+`]}`), tools.Limits{})
			if again == nil {
				t.Fatalf("ParseToolsJSON of the definition %s = %v", def, found)
			}
			if got := again.Tools[0].Definition(); string(got) != string(def) {
				t.Errorf("definition is not stable:\n%s\n%s", def, got)
			}
			if _, e := strictjson.Parse(tool.PortableSchema()); e != nil {
				t.Errorf("PortableSchema() = %s, not JSON: %v", tool.PortableSchema(), e)
			}
			_ = tool.Signature()
			if v, err := tool.Check(nil); err == nil {
				_, _ = tool.Expand(v, nil)
			}
		}
	})
}

func BenchmarkParseToolsJSON(b *testing.B) {
	src := tooltest.One(`"inputSchema": {"type": "object", "properties": {"title": {"type": "string", "minLength": 1}, "severity": {"type": "integer", "default": 3}}, "required": ["title"]}, "command": {"program": "./p", "args": ["--title", "{{title}}"]}`)
	for b.Loop() {
		toolsjson.Parse("f", []byte(src), tools.Limits{})
	}
}
