package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

func TestPortableSchema(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"plain":                        {`{"type": "object", "properties": {"b": {"type": "string"}, "a": {"enum": [1, true]}}, "required": ["b"], "additionalProperties": false}`, `{"type":"object","additionalProperties":false,"properties":{"b":{"type":"string"},"a":{"enum":[1,true]}},"required":["b"]}`},
		"empty":                        {`{}`, `{"type":"object"}`},
		"types":                        {`{"type": ["object", "null"]}`, `{"type":"object"}`},
		"no properties":                {`{"properties": {}}`, `{"type":"object","properties":{}}`},
		"required alone":               {`{"required": ["x"]}`, `{"type":"object","required":["x"]}`},
		"boolean properties":           {`{"properties": {"x": true, "y": false}}`, `{"type":"object","properties":{"x":{},"y":{"not":{}}}}`},
		"booleans inside":              {`{"properties": {"x": {"items": true, "contains": false, "anyOf": [true, {"additionalProperties": {"properties": {"z": true}}}], "not": false, "unevaluatedItems": false, "prefixItems": [true], "patternProperties": {"^a": true}}}, "$defs": {"d": true}}`, `{"type":"object","$defs":{"d":{}},"properties":{"x":{"items":{},"contains":{"not":{}},"anyOf":[{},{"additionalProperties":{"properties":{"z":{}}}}],"not":{"not":{}},"unevaluatedItems":{"not":{}},"prefixItems":[{}],"patternProperties":{"^a":{}}}}}`},
		"booleans that are data":       {`{"properties": {"x": {"default": true, "enum": [true, {"properties": {"a": true}}], "uniqueItems": true}}}`, `{"type":"object","properties":{"x":{"default":true,"enum":[true,{"properties":{"a":true}}],"uniqueItems":true}}}`},
		"a property called properties": {`{"properties": {"properties": true, "anyOf": {"type": "string"}, "$ref": {"type": "string"}}}`, `{"type":"object","properties":{"properties":{},"anyOf":{"type":"string"},"$ref":{"type":"string"}}}`},
		"combinators":                  {`{"properties": {"a": {}}, "anyOf": [{"required": ["a"]}], "not": {"required": ["b"]}, "allOf": [{"properties": {"c": {"type": "string"}}, "required": ["c"]}], "if": {"properties": {"k": {"const": 1}}}, "then": {"properties": {"t": {"type": "integer"}}}}`, `{"type":"object","properties":{"a":{},"c":{"type":"string"},"t":{"type":"integer"},"k":{}},"required":["c"]}`},
		"branches that disagree":       {`{"oneOf": [{"properties": {"k": {"const": 1}, "x": {"type": "string"}}}, {"properties": {"k": {"const": 2}, "x": {"type": "string"}}}]}`, `{"type":"object","properties":{"k":{"anyOf":[{"const":1},{"const":2}]},"x":{"type":"string"}}}`},
		"reference at the top":         {`{"$ref": "#/$defs/args", "$defs": {"args": {"type": "object", "properties": {"x": {"$ref": "#/$defs/y"}}, "required": ["x"]}, "y": {"type": "string"}}}`, `{"type":"object","$defs":{"args":{"type":"object","properties":{"x":{"$ref":"#/$defs/y"}},"required":["x"]},"y":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/y"}},"required":["x"]}`},
		"reference out":                {`{"properties": {"x": {"$ref": "https://json-schema.org/draft/2020-12/schema", "type": "object"}}}`, `{"type":"object","properties":{"x":{"type":"object"}}}`},
		"reference by id":              {`{"$id": "https://example.com/a", "properties": {"x": {"$ref": "b"}, "y": {"$id": "b", "$ref": "#/$defs/z", "$defs": {"z": {}}}}}`, `{"type":"object","properties":{"x":{},"y":{"$defs":{"z":{}}}}}`},
		"our keywords":                 {`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$comment": "c", "properties": {"x": {"type": "string", "allow_leading_dash": true}}}`, `{"type":"object","properties":{"x":{"type":"string"}}}`},
		"a parameter of that name":     {`{"properties": {"allow_leading_dash": {"type": "boolean"}}}`, `{"type":"object","properties":{"allow_leading_dash":{"type":"boolean"}}}`},
		"draft 7":                      {`{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": true}, "properties": {"x": {"items": [true, {"$ref": "#/definitions/a"}], "additionalItems": false}}, "dependencies": {"x": ["y"]}}`, `{"type":"object","definitions":{"a":{}},"properties":{"x":{"prefixItems":[{},{"$ref":"#/definitions/a"}]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := tooltest.Compile(t, tt.in, `["p"]`).PortableSchema()
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("PortableSchema() of %s: -want +got\n%s", tt.in, diff)
			}
			if _, err := schema.Parse(got); err != nil {
				t.Errorf("PortableSchema() of %s = %s, no schema: %v", tt.in, got, err)
			}
		})
	}
}

func TestSignature(t *testing.T) {
	for in, want := range map[string]string{
		`{}`: `t()`,
		`{"properties": {"title": {"type": "string"}, "severity": {"type": "integer", "default": 3}}, "required": ["title"]}`:                                           `t(title: string, severity?: integer = 3)`,
		`{"properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "array"}, "c": {"type": ["string", "null"]}}}`:                              `t(a?: string[], b?: array, c?: string|null)`,
		`{"properties": {"a": {"type": "array", "items": {"type": ["string", "integer"]}}, "b": {"$ref": "#/$defs/b"}, "c": true}, "$defs": {"b": {"type": "number"}}}`: `t(a?: (string|integer)[], b?: number, c?: any)`,
		`{"properties": {"a": {"enum": ["x", "y"], "default": "x"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "c": {"anyOf": [{}, {"type": "null"}]}}}`:   `t(a?: string = "x", b?: null|string, c?: any)`,
		`{"properties": {"a": {"default": [1, "x"]}, "b": {"default": 1.0}, "c": {"default": "` + strings.Repeat("x", 41) + `"}}}`:                                      `t(a?: any = [1,"x"], b?: any = 1, c?: any = …)`,
		`{"properties": {"a b": {}, "\u202e": {"default": "\u202e"}, "password": {"default": "hunter2"}}}`:                                                              `t("a b"?: any, "\u202e"?: any = "\u202e", password?: any)`,
		`{"properties": {"a": {"type": "string", "default": "\u001b[2J"}, "x": {"type": "array", "items": {"$ref": "#/properties/x"}}}}`:                                `t(a?: string = "\x1b[2J", x?: array[][])`,
	} {
		if got := tooltest.Compile(t, in, `["p"]`).Signature(); got != want {
			t.Errorf("Signature() of %s\n= %s\nwant %s", in, got, want)
		}
	}
}

// Everything that an approval covers changes the definition, and nothing else
// does.
func TestDefinition(t *testing.T) {
	base := `{"name": "t", "title": "T", "description": "d", "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
		"outputSchema": {"type": "object"}, "examples": ["e"], "modes": ["Global"],
		"command": {"program": "p", "args": ["{{x}}"], "env": {"A": "1"}, "cwd": "workspace", "stdin": "json"},
		"policy": {"read_only": false, "network": "none", "timeout_secs": 5, "confirm_before_run": false, "allowed_exit_codes": [0, 1]},
		"output": {"format": "text", "extract_field": "f", "template": "{{output}}", "max_chars": 5, "speak": false, "merged": false}}`
	tool := tooltest.CompileTool(t, base)
	for _, edit := range [][2]string{
		{`"name": "t"`, `"name": "u"`}, {`"title": "T"`, `"title": "U"`}, {`"description": "d"`, `"description": "e"`},
		{`"x": {"type": "string"}`, `"x": {"type": "string", "description": "now"}`}, {`"outputSchema": {"type": "object"}`, `"outputSchema": {}`},
		{`["e"]`, `["f"]`}, {`["Global"]`, `["Dev"]`}, {`"program": "p"`, `"program": "./p"`}, {`["{{x}}"]`, `["--", "{{x}}"]`}, {`["{{x}}"]`, `["{{x:}}"]`},
		{`"A": "1"`, `"A": "2"`}, {`"A": "1"`, `"B": "1"`}, {`"workspace"`, `"project"`}, {`"stdin": "json"`, `"stdin": ""`},
		{`"read_only": false`, `"read_only": true`}, {`"network": "none"`, `"network": "full"`}, {`"timeout_secs": 5`, `"timeout_secs": 6`},
		{`"confirm_before_run": false`, `"confirm_before_run": true`}, {`"network": "none"`, `"network": "none", "review": "all"`}, {`[0, 1]`, `[0]`},
		{`"format": "text"`, `"format": "json"`}, {`"extract_field": "f"`, `"extract_field": "g"`}, {`"template": "{{output}}"`, `"template": "x"`},
		{`"max_chars": 5`, `"max_chars": 6`}, {`"speak": false`, `"speak": true`}, {`"merged": false`, `"merged": true`},
	} {
		edited := strings.Replace(base, edit[0], edit[1], 1)
		if edited == base {
			t.Fatalf("%s is not in the tool", edit[0])
		}
		if other := tooltest.CompileTool(t, edited); other.Digest() == tool.Digest() {
			t.Errorf("Digest() is the same with %s and %s", edit[0], edit[1])
		}
	}
	for _, same := range []string{
		"\n\n" + base,
		strings.Replace(base, `"name": "t", "title": "T"`, `"title": "T", "name": "t"`, 1),
		strings.Replace(base, `"network": "none"`, `"requires_network": false`, 1),
		strings.Replace(base, `, "cwd": "workspace"`, ``, 1),
		strings.Replace(base, `[0, 1]`, `[1, 0, 1]`, 1),
	} {
		if other := tooltest.CompileTool(t, same); other.Digest() != tool.Digest() {
			t.Errorf("Definition() of %s\n= %s\nwant %s", same, other.Definition(), tool.Definition())
		}
	}
	argv := tooltest.CompileTool(t, `{"name": "t", "description": "d", "command": ["p", "a"]}`)
	if object := tooltest.CompileTool(t, `{"name": "t", "description": "d", "command": {"program": "p", "args": ["a"]}, "inputSchema": {"type": "object"}}`); object.Digest() != argv.Digest() {
		t.Errorf("Definition() = %s, want %s", object.Definition(), argv.Definition())
	}
	var v any
	if err := json.Unmarshal(tool.Definition(), &v); err != nil {
		t.Errorf("Definition() = %s, not JSON: %v", tool.Definition(), err)
	}
}
