package author

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// sarifSchema is the part of SARIF 2.1.0 (OASIS, sections 3.13 to 3.52) about what we
// write: which members are required, their types, and the values of enumerations. It
// refuses members that we do not write, so that each new one must be checked first.
const sarifSchema = `{
	"type": "object", "required": ["version", "runs"], "additionalProperties": false,
	"properties": {
		"$schema": {"type": "string", "format": "uri"},
		"version": {"const": "2.1.0"},
		"runs": {"type": "array", "minItems": 1, "items": {
			"type": "object", "required": ["tool", "results"], "additionalProperties": false,
			"properties": {
				"columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
				"tool": {"type": "object", "required": ["driver"], "additionalProperties": false, "properties": {"driver": {
					"type": "object", "required": ["name"], "additionalProperties": false,
					"properties": {
						"name": {"type": "string"}, "version": {"type": "string"}, "informationUri": {"type": "string", "format": "uri"},
						"rules": {"type": "array", "uniqueItems": true, "items": {
							"type": "object", "required": ["id"], "additionalProperties": false,
							"properties": {"id": {"type": "string"}, "helpUri": {"type": "string", "format": "uri"}}
						}}
					}
				}}},
				"results": {"type": "array", "items": {
					"type": "object", "required": ["message"], "additionalProperties": false,
					"properties": {
						"ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": -1},
						"level": {"enum": ["none", "note", "warning", "error"]},
						"message": {"type": "object", "required": ["text"], "additionalProperties": false, "properties": {"text": {"type": "string", "minLength": 1}}},
						"locations": {"type": "array", "items": {
							"type": "object", "additionalProperties": false,
							"properties": {"physicalLocation": {
								"type": "object", "required": ["artifactLocation"], "additionalProperties": false,
								"properties": {
									"artifactLocation": {"type": "object", "additionalProperties": false, "properties": {"uri": {"type": "string", "format": "uri-reference"}}},
									"region": {"type": "object", "required": ["startLine"], "additionalProperties": false, "properties": {
										"startLine": {"type": "integer", "minimum": 1}, "startColumn": {"type": "integer", "minimum": 1}
									}}
								}
							}}
						}}
					}
				}}
			}
		}}
	}
}`

func TestSARIF(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(sarifSchema))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("sarif.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "a b.md")
	if err := os.WriteFile(file, []byte("one\nä𝄞x: y\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	problems := []diag.Diagnostic{
		{Code: "b", Severity: diag.Error, File: file, Line: 2, Column: 1 + len("ä𝄞"), Message: "m", Hint: "h"},
		{Code: "a", Severity: diag.Warning, File: "p/ö:%#?.md", Line: 3, Column: 9, Message: "m"},
		{Code: "b", Severity: diag.Info, File: "p", Message: "m"},
	}
	for name, problems := range map[string][]diag.Diagnostic{"none": nil, "some": problems} {
		raw, err := json.Marshal(sarifOf("1.2.3", problems))
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v\n%s", name, err, raw)
		}
	}
	run := sarifOf("1.2.3", problems).Runs[0]
	type flat struct {
		rule, level, text, uri string
		line, column           int
	}
	var got []flat
	for _, r := range run.Results {
		at := r.Locations[0].Physical
		f := flat{rule: run.Tool.Driver.Rules[*r.RuleIndex].ID, level: string(r.Level), text: r.Message.Text, uri: at.Artifact.URI}
		if r.RuleID != f.rule {
			t.Errorf("the result of %s has the index of %s", r.RuleID, f.rule)
		}
		if at.Region != nil {
			f.line, f.column = at.Region.Line, at.Region.Column
		}
		got = append(got, f)
	}
	want := []flat{
		{"b", "error", "m\nHint: h", got[0].uri, 2, 4}, // ä is one unit, the clef is two
		{"a", "warning", "m", "p/%C3%B6:%25%23%3F.md", 3, 0},
		{"b", "note", "m", "p", 0, 0},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(flat{})); diff != "" {
		t.Errorf("the results (-want +got):\n%s", diff)
	}
	if uri := got[0].uri; !strings.HasPrefix(uri, "file:///") || !strings.HasSuffix(uri, "/a%20b.md") {
		t.Errorf("the URI of %q is %q", file, uri)
	}
}
