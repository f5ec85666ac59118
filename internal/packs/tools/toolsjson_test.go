package tools

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/schemas"
)

// one is a file with one tool that has these members besides name and
// description.
func one(members string) string {
	return `{"tools": [{"name": "t", "description": "d", ` + members + `}]}`
}

func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

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
		{"empty", " \n", CodeJSONSyntax, "1:1"},
		{"cut short", "{\"tools\": [\n{\"name\": \"a\"", CodeJSONSyntax, "2:13"},
		{"cut in a string", "{\"tools", CodeJSONSyntax, "1:8"},
		{"cut after an item", "[1", CodeJSONSyntax, "1:3"},
		{"not JSON", "{tools: []}", CodeJSONSyntax, "1:2"},
		{"single quotes", "{'tools': []}", CodeJSONSyntax, "1:2"},
		{"no comma", "{\"a\": 1\n \"b\": 2}", CodeJSONSyntax, "1:8"}, // behind what is there
		{"NaN", `{"a": NaN}`, CodeJSONSyntax, "1:7"},
		{"newline in a string", "[\"a\nb\"]", CodeJSONSyntax, "1:2"},
		{"trailing data", "{\"tools\": []}\n{}", CodeJSONSyntax, "2:1"},
		{"trailing bracket", "{\"tools\": []}}", CodeJSONSyntax, "1:14"},
		{"bad UTF-8", "{\"tools\":\n\"\xff\"}", CodeJSONSyntax, "2:2"},
		{"lone surrogate", `{"tools": "\ud800"}`, CodeJSONSyntax, "1:11"},
		{"lone low surrogate", `{"\udc00": 1}`, CodeJSONSyntax, "1:2"},
		{"comma after a brace", "{\"tools\": [\n{ , \"a\": 1}]}", CodeJSONSyntax, "2:3"},
		{"comma after a bracket", "{\"tools\": [\n,{}]}", CodeJSONSyntax, "2:1"},
		{"comma after a brace, and no more", "{,", CodeJSONSyntax, "1:2"},
		{"line comment", "{\n// what\n\"tools\": []}", CodeJSONComment, "2:1"},
		{"block comment", "{\"tools\": [] /* x */}", CodeJSONComment, "1:14"},
		{"comment at the end", "{\"tools\": []}\n// x", CodeJSONComment, "2:1"},
		{"trailing comma in a list", "{\"tools\": [\n{\"name\": \"a\"},\n]}", CodeJSONTrailingComma, "2:14"},
		{"trailing comma in an object", "{\"tools\": [],\n}", CodeJSONTrailingComma, "1:13"},
		{"duplicate key", "{\"tools\": [],\n \"tools\": []}", CodeJSONDuplicateKey, "2:2"},
		{"duplicate key, escaped", `{"tools": [], "\u0074ools": []}`, CodeJSONDuplicateKey, "1:15"},
		{"deep", nested(10_000), CodeJSONDepth, "1:102"},
		{"number", `{"tools": 1e999999999}`, CodeJSONNumber, "1:11"},
		{"long number", `{"tools": ` + strings.Repeat("9", 1000) + `}`, CodeJSONNumber, "1:11"},
		{"large", strings.Repeat(" ", 1<<20+1), CodeTooLarge, ""},
		{"201 tools", many, CodeTooMany, "1:11"},

		{"a string", `"x"`, CodeNotAToolList, "1:1"},
		{"no tools", `{"sites": []}`, CodeNotAToolList, "1:1"},
		{"a map of groups", `{"tools": {"decide": {}}}`, CodeNotAToolList, "1:11"},
		{"paths", `{"tools": ["./tools/x.js"]}`, CodeNotAToolList, "1:12"},
		{"site data", `[{"name": "Canva AI", "category": "Design"}]`, CodeNotAToolList, "1:1"},
		{"no names", `{"tools": [{"id": 1}]}`, CodeNotAToolList, "1:12"},

		{"name", `{"tools": [{"name": "a b", "description": "d"}]}`, CodeNameInvalid, "1:21"},
		{"empty name", `{"tools": [{"name": "", "description": "d"}]}`, CodeNameInvalid, "1:21"},
		{"dotted name", `{"tools": [{"name": "a.b", "description": "d"}]}`, CodeNameInvalid, "1:21"},
		{"long name", `{"tools": [{"name": "` + strings.Repeat("a", 65) + `", "description": "d"}]}`, CodeNameInvalid, "1:21"},
		{"name of ours", `{"tools": [{"name": "Capability-Packs_list", "description": "d"}]}`, CodeNameReserved, "1:21"},
		{"dotted name of ours", `{"tools": [{"name": "capability_packs.list", "description": "d"}]}`, CodeNameInvalid + " " + CodeNameReserved, "1:21"},
		{"name of another server", `{"tools": [{"name": "mcp__github__x", "description": "d"}]}`, CodeNameReserved, "1:21"},

		{"no description", `{"tools": [{"name": "t"}]}`, CodeDescriptionMissing, "1:12"},
		{"long description", `{"tools": [{"name": "t", "description": "` + strings.Repeat("ä", 1025) + `"}]}`, CodeDescriptionLong, "1:41"},
		{"unknown keys", one(`"a": 1, "policy": {"b": 1}, "output": {"c": 1}, "command": {"program": "p", "shell": true}`),
			strings.Repeat(CodeUnknownKey+" ", 3) + CodeUnknownKey, "1:51"},
		{"TP-04 annotations", one(`"annotations": {"readOnlyHint": true}`), CodeAnnotationsIgnored, "1:61"},

		{"shape", one(`"title": 1`), CodeShape, "1:55"},
		{"shape, far inside", one(`"command": {"program": "p", "args": ["-n", 5]}`), CodeShape, "1:89"},
		{"shape, argv", one(`"command": ["p", 5]`), CodeShape, "1:63"},
		{"shape, empty argv", one(`"command": []`), CodeShape, "1:57"},
		{"timeout", one(`"policy": {"timeout_secs": 301}`), CodeShape, "1:73"},
		{"timeout of nothing", one(`"policy": {"timeout_secs": 0}`), CodeShape, "1:73"},
		{"exit code", one(`"policy": {"allowed_exit_codes": [256]}`), CodeShape, "1:80"},
		{"network", one(`"policy": {"network": "all"}`), CodeShape, "1:68"},
		{"stdin", one(`"command": {"program": "p", "stdin": "text"}`), CodeShape, "1:83"},
		{"cache", one(`"policy": {"cache": "../x"}`), CodeCacheName, "1:66"},
		{"no cache", one(`"policy": {"cache": ""}`), CodeCacheName, "1:66"},
		{"cache of a device", one(`"policy": {"cache": "NUL"}`), CodeCacheName, "1:66"},
		{"cache that is no text", one(`"policy": {"cache": ["x"]}`), CodeShape, "1:66"},
		{"policy conflict", one(`"policy": {"network": "none", "requires_network": true}`), CodePolicyConflict, "1:68"},

		{"string command", one(`"command": "npx foo"`), CodeCommandNotUnderstood, "1:57"},
		{"other command", one(`"command": {"cmd": "foo"}`), CodeCommandNotUnderstood, "1:57"},

		{"schema", one(`"inputSchema": {"properties": {"x": {"type": "text"}}}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"schema of a list", one(`"inputSchema": {"type": "array"}, "command": ["p"]`), CodeSchemaInvalid, "1:61"},
		{"schema elsewhere", one(`"inputSchema": {"$ref": "https://example.com/x.json"}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"schema in a file", one(`"inputSchema": {"properties": {"x": {"$ref": "file:///etc/passwd"}}}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"schema next door", one(`"inputSchema": {"properties": {"x": {"$ref": "other.json"}}}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"schema's dialect", one(`"inputSchema": {"$schema": "https://example.com/dialect"}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"schema's pattern", one(`"inputSchema": {"properties": {"x": {"pattern": "(?!a)"}}}, "command": ["p"]`), CodeSchemaInvalid, "1:94"},
		{"schema that points nowhere", one(`"inputSchema": {"properties": {"x": {"$ref": "#/$defs/x"}}}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"output schema", one(`"outputSchema": {"type": "text"}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"schema, declared only", one(`"parameters": {"x": {"type": "string"}, "type": "flat"}`), CodeSchemaNotRead, "1:60"},
		{"two schemas", one(`"inputSchema": {}, "parameters": {}, "command": ["p"]`), CodeSchemaTwice, "1:79"},
		{"default", one(`"inputSchema": {"properties": {"x": {"type": "string", "default": 1}}}, "command": ["p"]`), CodeDefaultInvalid, "1:112"},

		{"default in a flat map", one(`"parameters": {"x": {"type": "string", "default": 1}}, "command": ["p"]`), CodeDefaultInvalid, "1:96"},
		{"source in a flat map", one(`"parameters": {"x": {"type": "string", "source": "context.home"}}, "command": ["p"]`), CodeSourceInvalid, "1:95"},
		{"source in a flat map, declared only", one(`"parameters": {"x": {"type": "string", "source": "voice"}}`), CodeSourceInvalid, "1:95"},
		{"fixed value in a flat map", one(`"parameters": {"x": {"type": "string", "source": "literal"}}, "command": ["p"]`), CodeSourceInvalid, "1:66"},
		{"source of nothing", one(`"sources": {"x": {"from": "context.url"}}, "command": ["p"]`), CodeSourceInvalid, "1:63"},
		{"fixed value that is not there", one(`"sources": {"x": {"from": "literal"}}, "command": ["p"]`), CodeSourceInvalid, "1:63"},
		{"fixed value of a property", one(`"inputSchema": {"properties": {"x": {}}}, "sources": {"x": {"from": "literal", "value": 1}}, "command": ["p"]`), CodeSourceInvalid, ""},
		{"value that is not fixed", one(`"inputSchema": {"properties": {"x": {}}}, "sources": {"x": {"from": "transcript", "value": 1}}, "command": ["p"]`), CodeSourceInvalid, ""},
		{"unknown source", one(`"inputSchema": {"properties": {"x": {}}}, "sources": {"x": {"from": "voice"}}, "command": ["p"]`), CodeShape, ""},
		{"flat map and a schema", one(`"inputSchema": {}, "parameters": {"x": {"type": "string"}}, "command": ["p"]`), CodeSchemaTwice, "1:79"},
		{"flat map's type", one(`"parameters": {"x": {"type": "text", "description": "d"}}, "command": ["p"]`), CodeSchemaInvalid, "1:75"},
		{"twice around a function", `{"tools": [{"type": "function", "name": "n", "function": {"name": "t", "description": "d"}}]}`, CodeUnknownKey, "1:41"},
		{"schema's patterns", one(`"inputSchema": {"properties": {"x": {"pattern": "` + strings.Repeat(".{1000}", 20) + `"}}}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"schema in itself", one(`"inputSchema": {"properties": {"x": {"$ref": "#/properties/x"}}}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"schema in itself by branches", one(`"inputSchema": {"properties": {"x": {"anyOf": [{"type": "string"}, {"not": {"$ref": "#/properties/x"}}]}}}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"schema with a dynamic anchor", one(`"inputSchema": {"$dynamicAnchor": "a", "properties": {"x": {"$dynamicRef": "#a"}}}, "command": ["p"]`), CodeSchemaInvalid, ""},
		{"1,001 words", one(`"command": ["p"` + strings.Repeat(`, "a"`, 1000) + `]`), CodeCommandLong, "1:57"},
		{"shell code in the last word", one(args + `["a", "sh", "b", "-c", "{{x}}"]`), CodePlaceholderInShell, ""},
		{"shell code after other code", one(args + `["python3", "-c", "1", "sh", "-c", "{{x}}"]`), CodePlaceholderInShell, ""},
		{"the first of two", one(args + `["python3", "-c", "{{x}}", "sh", "-c", "{{x}}"]`), CodePlaceholderInCode, ""},

		{"program in a folder", one(`"command": ["bin/p"]`), CodeProgramInvalid, "1:58"},
		{"program above", one(`"command": ["./../p"]`), CodeProgramInvalid, "1:58"},
		{"program above, later", one(`"command": ["./a/../../p"]`), CodeProgramInvalid, "1:58"},
		{"program with arguments", one(`"command": ["git status"]`), CodeProgramInvalid, "1:58"},
		{"program is a dash", one(`"command": ["-p"]`), CodeProgramInvalid, "1:58"},
		{"program is the pack", one(`"command": ["./"]`), CodeProgramInvalid, "1:58"},
		{"program is empty", one(`"command": [""]`), CodeProgramInvalid, "1:58"},
		{"program with NUL", one(`"command": ["p\u0000"]`), CodeProgramInvalid, "1:58"},
		{"placeholder in the program", one(args + `["{{x}}"]`), CodePlaceholderInProgram, ""},
		{"unknown placeholder", one(args + `["p", "{{y}}"]`), CodePlaceholderUnknown, ""},
		{"unknown context", one(args + `["p", "{{context.home}}"]`), CodePlaceholderUnknown, ""},
		{"unknown placeholder in env", one(args + `{"program": "p", "env": {"A": "{{y}}"}}`), CodePlaceholderUnknown, ""},
		{"unknown placeholder in cwd", one(args + `{"program": "p", "cwd": "{{y}}"}`), CodePlaceholderUnknown, ""},
		{"unknown placeholder in a template", one(`"output": {"template": "{{x}}"}`), CodePlaceholderUnknown, ""},
		{"open placeholder", one(args + `["p", "{{x"]`), CodePlaceholderInvalid, ""},
		{"NUL in an argument", one(args + `["p", "\u0000"]`), CodePlaceholderInvalid, ""},
		{"spread in env", one(args + `{"program": "p", "env": {"A": "{{x...}}"}}`), CodePlaceholderInvalid, ""},
		{"flag in cwd", one(args + `{"program": "p", "cwd": "{{x:--f}}"}`), CodePlaceholderInvalid, ""},
		{"open placeholder in a template", one(`"output": {"template": "{{output"}`), CodePlaceholderInvalid, ""},
		{"shell code", one(args + `["sh", "-c", "echo {{x}}"]`), CodePlaceholderInShell, ""},
		{"shell code behind env", one(args + `["/usr/bin/env", "bash", "-ec", "{{x}}"]`), CodePlaceholderInShell, ""},
		{"shell code for cmd", one(args + `["cmd.exe", "/c", "echo", "{{x}}"]`), CodePlaceholderInShell, ""},
		{"other code", one(args + `["python3", "-c", "print({{x}})"]`), CodePlaceholderInCode, ""},
		{"parameter that goes nowhere", one(args + `["p"]`), CodeParameterUnused, "1:61"},
		{"cwd", one(`"command": {"program": "p", "cwd": "/tmp"}`), CodeCwdInvalid, "1:81"},
		{"env name", one(`"command": {"program": "p", "env": {"A B": "", "1": ""}}`), CodeEnvName + " " + CodeEnvName, ""},
		{"EN-02", one(`"command": {"program": "p", "env": {"LD_PRELOAD": "x"}}`), CodeEnvForbidden, "1:96"},
		{"many problems", `{"tools": [` + strings.Repeat(`{"name": 1},`, 199) + `{"name": 1}]}`, strings.Repeat(CodeShape+" ", 100) + CodeMore, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set, found := parseToolsJSON("p/tools.json", []byte(tt.src), Limits{})
			if got := codes(found); got != tt.want {
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
	seen[CodeNameDuplicate] = true // TestNamesToldApart
	reportsAll(t, seen, "Codes of the diagnostics this package reports")
}

// reportsAll fails unless seen has every code of the block of codes.go that
// begins with this comment.
func reportsAll(t *testing.T, seen map[string]bool, comment string) {
	t.Helper()
	src, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(src), comment)
	block, _, closed := strings.Cut(block, "\n)\n")
	if !found || !closed {
		t.Fatalf("codes.go has no block %q", comment)
	}
	for line := range strings.SplitSeq(block, "\n") {
		if parts := strings.Split(line, `"`); len(parts) == 3 && !seen[parts[1]] {
			t.Errorf("no case reports %s", parts[1])
		}
	}
}

// A problem inside a schema is found where it is.
func TestParsePointers(t *testing.T) {
	src := "{\"tools\": [{\"name\": \"t\", \"description\": \"d\",\n\"inputSchema\": {\n\"properties\": {\n\"x\": {\"type\": \"text\"}\n}},\n\"command\": {\"program\": \"p\",\n\"args\": [\"a\",\n\"{{x\"]}}]}"
	_, found := parseToolsJSON("f", []byte(src), Limits{})
	if len(found) != 1 || found[0].Pointer != "/tools/0/inputSchema/properties/x/type" || found[0].Line != 4 {
		t.Errorf("ParseToolsJSON = %+v, want the type of x in line 4", found)
	}
	_, found = parseToolsJSON("f", []byte(strings.Replace(src, "text", "string", 1)), Limits{})
	if len(found) != 1 || found[0].Pointer != "/tools/0/command/args/1" || found[0].Line != 8 {
		t.Errorf("ParseToolsJSON = %+v, want the argument in line 8", found)
	}
	src = strings.NewReplacer("text", "string", "{{x", "{{x}}", "\"x\": {", "\"a/b~c\": {\"default\": 1, ").Replace(src)
	_, found = parseToolsJSON("f", []byte(src), Limits{})
	if len(found) == 0 || found[0].Pointer != "/tools/0/inputSchema/properties/a~1b~0c/default" {
		t.Errorf("ParseToolsJSON = %+v, want the default of a/b~c", found)
	}
}

func TestParseAccepts(t *testing.T) {
	for name, src := range map[string]string{
		"no tools":             `{"tools": []}`,
		"an empty list":        `[]`,
		"BOM":                  "\ufeff" + one(`"command": ["p"]`),
		"CRLF":                 strings.ReplaceAll("{\n\"tools\":\n[]\n}\n", "\n", "\r\n"),
		"a bare list":          `[{"name": "t", "description": "d", "command": ["p"]}]`,
		"parameters":           one(`"parameters": {"type": "object", "properties": {"x": {}}}, "command": ["p", "{{x}}"]`),
		"input_schema":         one(`"input_schema": {"properties": {"x": {}}}, "command": ["p", "{{x}}"]`),
		"absolute program":     one(`"command": ["/usr/bin/git"]`),
		"Windows program":      one(`"command": ["C:\\Program Files\\x.exe"]`),
		"program of the pack":  one(`"command": ["./a b/../c.sh"]`),
		"shell, arguments":     one(`"inputSchema": {"properties": {"x": {}}}, "command": ["sh", "-c", "echo \"$1\"", "sh", "{{x}}"]`),
		"shell script":         one(`"inputSchema": {"properties": {"x": {}}}, "command": ["bash", "./run.sh", "{{x}}"]`),
		"draft 7":              one(`"inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "properties": {"x": {"$ref": "#/definitions/a"}}}, "command": ["p", "{{x}}"]`),
		"network twice":        one(`"policy": {"network": "full", "requires_network": true, "timeout_secs": 3e2}`),
		"pairs of surrogates":  one(`"title": "\ud83e\udde0 \ufffd"`),
		"property of a ref":    one(`"inputSchema": {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {}}}}}, "command": ["p", "{{x}}"]`),
		"property of a branch": one(`"inputSchema": {"oneOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]}, "command": ["p", "{{x}}", "{{y}}"]`),
		"1,000 words":          one(`"command": ["p"` + strings.Repeat(`, "a"`, 999) + `]`),
		"shell without code":   one(`"inputSchema": {"properties": {"x": {}}}, "command": ["sh", "x", "{{x}}", "-c"]`),
		"env of its own":       one(`"command": {"program": "p", "env": {"TICKET_FORMAT": "json", "PYTHONUNBUFFERED": "1"}}`),
		"patterns":             one(`"inputSchema": {"properties": {"x": {"pattern": "^[\\p{L}\\p{N} ._-]{1,500}$"}}}, "command": ["p", "{{x}}"]`),
		"recursive schema":     one(`"inputSchema": {"properties": {"x": {"$ref": "#"}}}, "command": ["p", "{{x}}"]`),
	} {
		if set, found := parseToolsJSON("f", []byte(src), Limits{}); set == nil || len(found) > 0 {
			t.Errorf("%s: ParseToolsJSON(%s) = %v, %v", name, src, set, found)
		}
	}
}

func TestParseDeclaredOnly(t *testing.T) {
	set, found := parseToolsJSON("f", []byte(`{"tools": [
		{"name": "a", "description": "d"},
		{"name": "b", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}, "command": "npx b"},
		{"name": "c", "description": "d", "parameters": true}
	]}`), Limits{})
	if got, want := codes(found), CodeCommandNotUnderstood+" "+CodeSchemaNotRead; got != want {
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

// SH-01: two names that somebody could take for each other are refused, and
// both are named.
func TestNamesToldApart(t *testing.T) {
	for _, pair := range [][2]string{
		{"a", "a"}, {"open_ticket", "Open_Ticket"}, {"open_ticket", "open-ticket"}, {"open_ticket", "open.ticket"},
		{"caf\u00e9", "cafe\u0301"}, {"run", "r\u200bun"}, {"run", "r\u2060un"}, {"run", "\uff52un"}, {"k", "\u212a"},
		{"run", "r\U000e0041un"}, {"run", "r\ufe0fun"}, {"Σ", "ς"},
	} {
		src := fmt.Sprintf("{\"tools\": [{\"name\": %s, \"description\": \"d\"},\n{\"name\": %s, \"description\": \"d\"}]}", quote(pair[0]), quote(pair[1]))
		set, found := parseToolsJSON("f", []byte(src), Limits{})
		ok := false
		for _, d := range found {
			ok = ok || d.Code == CodeNameDuplicate && d.Line == 2 &&
				strings.Contains(d.Message, fmt.Sprintf("%+q", pair[0])) && strings.Contains(d.Message, fmt.Sprintf("%+q", pair[1]))
		}
		if set != nil || !ok {
			t.Errorf("ParseToolsJSON of %+q and %+q = %v, %v", pair[0], pair[1], set, found)
		}
	}
	for _, pair := range [][2]string{{"a", "b"}, {"ab", "a_b"}, {"a_b", "a__b"}} {
		src := fmt.Sprintf(`{"tools": [{"name": %q}, {"name": %q}]}`, pair[0], pair[1])
		if set, found := parseToolsJSON("f", []byte(src), Limits{}); set == nil {
			t.Errorf("ParseToolsJSON of %q and %q = %v, want both", pair[0], pair[1], found)
		}
	}
}

// EN-02: what no pack may set, since it changes what other programs run.
func TestEnvForbidden(t *testing.T) {
	for _, name := range []string{
		"LD_PRELOAD", "ld_preload", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PERL5LIB", "PERL5OPT",
		"RUBYOPT", "BASH_ENV", "ENV", "IFS", "GIT_SSH_COMMAND", "JAVA_TOOL_OPTIONS", "GOFLAGS", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
		"PATH", "Path", "HOME", "SHELL", "PAGER", "EDITOR", "VISUAL", "NODE_PATH", "RUBYLIB", "GCONV_PATH", "TMPDIR", "TMP", "TEMP", "PERLLIB", "CDPATH",
		"PROMPT_COMMAND", "LOCPATH", "NLSPATH", "TERMINFO", "MALLOC_TRACE", "GLIBC_TUNABLES", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONUSERBASE",
		"PYTHONPLATLIBDIR", "PYTHONWARNINGS", "PYTHONEXECUTABLE", "SHELLOPTS", "PS4", "BASH_FUNC_ls", "ZDOTDIR",
		"XDG_RUNTIME_DIR", "HTTPS_PROXY", "http_proxy", "GITHUB_TOKEN", "API_KEY", "CLIENT_SECRET", "AWS_REGION", "OPENAI_BASE_URL", "ANTHROPIC_MODEL", "PACKS_WORKSPACE",
		"LESSOPEN", "LESSCLOSE", "MANPAGER", "BROWSER", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "OPENSSL_CONF", "OPENSSL_MODULES", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CURL_HOME", "NODE_EXTRA_CA_CERTS", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS", "XDG_DATA_HOME",
		"HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN", "MALLOC_CHECK_", "RUSTC_WRAPPER", "npm_config_script_shell", "MAKEFLAGS", "LUA_INIT", "TAR_OPTIONS",
		"GNUPGHOME", "KUBECONFIG", "DOCKER_HOST", "CLASSPATH", "GOENV", "DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER_PATH", "INPUTRC", "TZDIR",
	} {
		if envForbidden(name) == "" {
			t.Errorf("envForbidden(%q) = %q, want a rule", name, "")
		}
	}
	for _, name := range []string{"TICKET_FORMAT", "ENVIRONMENT", "LDFLAGS", "KEY", "TOKEN_COUNT", "NODE_ENV", "PROXY", "PATHS", "MY_HOME", "PYTHONUTF8", "LANG", "TZ", "CARGO_TARGET_DIR", "XDG_CACHE_HOME", "GOCACHE", "GITHUB_REPOSITORY", "CC", "NO_COLOR"} {
		if rule := envForbidden(name); rule != "" {
			t.Errorf("envForbidden(%q) = %q, want none", name, rule)
		}
	}
}

func TestLookup(t *testing.T) {
	set, _ := parseToolsJSON("f", []byte(`{"tools": [{"name": "open_ticket"}, {"name": "close"}]}`), Limits{})
	for _, name := range []string{"open_ticket", "Open-Ticket", "open.ticket"} {
		if got := set.Lookup(name); got != set.Tools[0] {
			t.Errorf("Lookup(%q) = %v, want open_ticket", name, got)
		}
	}
	if got := set.Lookup("open"); got != nil {
		t.Errorf("Lookup(%q) = %v, want nil", "open", got)
	}
	if got := (*Set)(nil).Lookup("open"); got != nil {
		t.Errorf("Lookup in no set = %v, want nil", got)
	}
}

// The whole published schema says of files what the loader says, which uses
// only its part about one tool.
func TestPublishedSchema(t *testing.T) {
	root, e := parseJSON([]byte(schemas.ToolsV1()))
	if e != nil {
		t.Fatal(e)
	}
	if got := root.str("$id"); got != schemas.ToolsV1ID {
		t.Errorf("$id %q, want %q", got, schemas.ToolsV1ID)
	}
	whole, err := compileSchema(root)
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]bool{
		`{"tools": []}`:                    true,
		`[]`:                               true,
		`{}`:                               false,
		`{"tools": {}}`:                    false,
		one(`"command": ["p"]`):            true,
		one(`"command": ["p", 1]`):         false,
		one(`"command": {"program": "p"}`): true,
		one(`"command": {"program": "p", "x": 1}`):   true,
		one(`"policy": {"timeout_secs": 0}`):         false,
		one(`"output": {"format": "xml"}`):           false,
		one(`"annotations": {"readOnlyHint": true}`): true,
	} {
		n, e := parseJSON([]byte(src))
		if e != nil {
			t.Fatal(e)
		}
		if got := whole.Validate(n.value()) == nil; got != want {
			t.Errorf("schema accepts %s = %v, want %v", src, got, want)
		}
		if set, found := parseToolsJSON("f", []byte(src), Limits{}); (set != nil) != want {
			t.Errorf("ParseToolsJSON(%s) = %v, %v, want accepted = %v", src, set, found, want)
		}
	}
}

// The example packs are what people copy.
func TestExamplePacks(t *testing.T) {
	src, err := os.ReadFile("../../../examples/packs/git-helper/tools.json")
	if os.IsNotExist(err) {
		t.Skip("examples/packs/git-helper/tools.json is not there")
	}
	if err != nil {
		t.Fatal(err)
	}
	if set, found := parseToolsJSON("tools.json", src, Limits{}); set == nil || len(found) > 0 {
		t.Errorf("ParseToolsJSON = %v, %v, want tools and no diagnostics", set, found)
	}
}

func FuzzParseToolsJSON(f *testing.F) {
	for _, s := range []string{
		"", "{}", "[]", `{"tools": [{"name": "t", "command": ["p", "{{x}}"]}]}`,
		one(`"inputSchema": {"properties": {"x": {"type": "string", "default": "y"}}, "$ref": "#/$defs/a", "$defs": {"a": true}}, "command": {"program": "./p", "args": ["{{x...}}", "{{x:--f}}", "{{{{"], "env": {"A": "{{x}}"}, "cwd": "{{context.cwd}}", "stdin": "json"}, "policy": {"requires_network": true, "timeout_secs": 60, "allowed_exit_codes": [1, 0]}, "output": {"format": "json", "template": "{{output}}", "max_chars": 5, "speak": true}, "examples": ["a"], "modes": ["Global"], "title": "T"`),
		`[{"name": "a", "parameters": {"allOf": [{"properties": {"x": false}}]}, "command": ["p"]}]`,
	} {
		f.Add([]byte(s))
	}
	loader := &Loader{}
	f.Fuzz(func(t *testing.T, src []byte) {
		set, found := loader.ParseToolsJSON("f", src)
		if (set == nil) != diag.HasErrors(found) {
			t.Fatalf("ParseToolsJSON(%q) = %v with %v", src, set, found)
		}
		if set == nil {
			return
		}
		for _, tool := range set.Tools {
			def := tool.Definition()
			again, found := loader.ParseToolsJSON("f", []byte(`{"tools": [`+string(def)+`]}`))
			if again == nil {
				t.Fatalf("ParseToolsJSON of the definition %s = %v", def, found)
			}
			if got := again.Tools[0].Definition(); string(got) != string(def) {
				t.Errorf("definition is not stable:\n%s\n%s", def, got)
			}
			if _, e := parseJSON(tool.PortableSchema()); e != nil {
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
	src := one(`"inputSchema": {"type": "object", "properties": {"title": {"type": "string", "minLength": 1}, "severity": {"type": "integer", "default": 3}}, "required": ["title"]}, "command": {"program": "./p", "args": ["--title", "{{title}}"]}`)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			parseToolsJSON("f", []byte(src), Limits{})
		}
	})
	b.Run("later", func(b *testing.B) {
		loader := &Loader{}
		for b.Loop() {
			loader.ParseToolsJSON("f", []byte(src))
		}
	})
}
