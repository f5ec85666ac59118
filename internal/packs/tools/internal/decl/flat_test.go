package decl

import (
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A flat map of parameters can be told from a JSON Schema.
func TestIsFlat(t *testing.T) {
	for src, want := range map[string]bool{
		`{}`:                              false,
		`{"x": {"type": "string"}}`:       true,
		`{"x": {"required": true}}`:       true,
		`{"x": "string", "y": "integer"}`: true,
		`{"x": "a string"}`:               false,
		`{"x": {}}`:                       false,
		`{"type": "object"}`:              false,
		`{"type": "string"}`:              false,
		`{"type": {"type": "string"}, "name": {"type": "string"}}`:                       true,
		`{"properties": {"x": {"type": "string"}}}`:                                      false,
		`{"properties": {"type": {"type": "string"}}}`:                                   false,
		`{"properties": {"type": "array", "description": "a list of them"}}`:             true,
		`{"x": {"type": "string"}, "required": ["x"]}`:                                   false,
		`{"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}`: false,
		`{"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}}`:                      false,
		`{"anyOf": [{"type": "object"}]}`:                                                false,
		`[{"type": "string"}]`:                                                           false,
	} {
		n, e := strictjson.Parse([]byte(src))
		if e != nil {
			t.Fatal(e)
		}
		if got := isFlat(n); got != want {
			t.Errorf("isFlat(%s) = %v, want %v", src, got, want)
		}
	}
}
