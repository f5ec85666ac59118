package runcmd

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// The tool's schema decides how a value on the command line is read.
func TestArgumentsOf(t *testing.T) {
	const schema = `{
		"type": "object", "additionalProperties": false,
		"$defs": {"size": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}, "a/b": {"type": "boolean"}},
		"allOf": [{"properties": {"deep": {"type": "number"}}}],
		"properties": {
			"text": {"type": "string"}, "count": {"type": "integer"}, "rate": {"type": "number"}, "on": {"type": "boolean"},
			"tags": {"type": "array", "items": {"type": "string"}}, "sizes": {"type": "array", "items": {"$ref": "#/$defs/size"}}, "all": {"type": "array"},
			"object": {"type": "object"}, "none": {"type": "null"}, "any": {}, "either": {"type": ["integer", "null"]}, "both": {"type": ["string", "integer"]},
			"word": {"enum": ["1", "2"]}, "mixed": {"enum": [1, 2]}, "one": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
			"size": {"$ref": "#/$defs/size"}, "loop": {"$ref": "#/$defs/loop"}, "slash": {"$ref": "#/$defs/a~1b"}, "away": {"$ref": "https://example.com/x"}
		}
	}`
	tool := &tools.Tool{Name: "t", InputSchema: json.RawMessage(schema)}
	for _, tt := range []struct {
		given []string
		want  string // the arguments, or a part of the error
	}{
		{nil, `{}`},
		{[]string{"text=5"}, `{"text":"5"}`},
		{[]string{"text="}, `{"text":""}`},
		{[]string{"text=a=b"}, `{"text":"a=b"}`},
		{[]string{"count=5"}, `{"count":5}`},
		{[]string{"count=-5"}, `{"count":-5}`},
		{[]string{"count=123456789012345678901234567890"}, `{"count":123456789012345678901234567890}`},
		{[]string{"count=5.0"}, `{"count":5.0}`},
		{[]string{"count=five"}, `is no integer`},
		{[]string{"count="}, `is no integer`},
		{[]string{"count=5 5"}, `is no integer`},
		{[]string{"count=1e999999"}, `is no integer`},
		{[]string{"count=true"}, `is no integer`},
		{[]string{"rate=0.5"}, `{"rate":0.5}`},
		{[]string{"rate=2"}, `{"rate":2}`},
		{[]string{"deep=2"}, `{"deep":2}`},
		{[]string{"on=true"}, `{"on":true}`},
		{[]string{"on=yes"}, `is no boolean`},
		{[]string{"tags=1", "tags=b"}, `{"tags":["1","b"]}`},
		{[]string{`tags=["a"]`}, `{"tags":["[\"a\"]"]}`},
		{[]string{"sizes=1", "sizes=2"}, `{"sizes":[1,2]}`},
		{[]string{"sizes=x"}, `is no integer`},
		{[]string{"all=1", "all=x"}, `{"all":[1,"x"]}`},
		{[]string{`object={"a": 1}`}, `{"object":{"a":1}}`},
		{[]string{`object={"a": 1, "a": 2}`}, `is no object`},
		{[]string{`object=[1]`}, `is no object`},
		{[]string{"none=null"}, `{"none":null}`},
		{[]string{"any=1"}, `{"any":1}`},
		{[]string{"any=x"}, `{"any":"x"}`},
		{[]string{"either=null"}, `{"either":null}`},
		{[]string{"either=x"}, `is no integer or null`},
		{[]string{"both=1"}, `{"both":"1"}`},
		{[]string{"word=1"}, `{"word":"1"}`},
		{[]string{"mixed=1"}, `{"mixed":1}`},
		{[]string{"one=1"}, `{"one":1}`},
		{[]string{"one=true"}, `{"one":true}`},
		{[]string{"size=1"}, `{"size":1}`},
		{[]string{"slash=true"}, `{"slash":true}`},
		{[]string{"loop=1"}, `{"loop":1}`},
		{[]string{"away=x"}, `{"away":"x"}`},
		{[]string{"count=1", "count=2"}, `occurs twice`},
		{[]string{"conut=1"}, `has no argument "conut"`},
		{[]string{"count"}, `has no value`},
		{[]string{"=1"}, `has no value`},
	} {
		got, err := argumentsOf(tool, tt.given)
		if err != nil {
			if _, ok := errors.AsType[*cli.UsageError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("argumentsOf(%q) = %v, want %s", tt.given, err, tt.want)
			}
			continue
		}
		if string(got) != tt.want {
			t.Errorf("argumentsOf(%q) = %s, want %s", tt.given, got, tt.want)
		}
	}
}

// An argument that the schema does not name is an error, unless the schema explicitly
// allows more.
func TestArgumentsBeyondTheSchema(t *testing.T) {
	for schema, ok := range map[string]bool{
		`{"type": "object"}`: false, `true`: false, `{"type": "object", "properties": {"a": {}}}`: false,
		`{"type": "object", "additionalProperties": true}`: true, `{"type": "object", "additionalProperties": {"type": "string"}}`: true,
		`{"type": "object", "additionalProperties": false}`: false, `{"type": "object", "patternProperties": {"^x": {}}}`: true,
	} {
		_, err := argumentsOf(&tools.Tool{Name: "t", InputSchema: json.RawMessage(schema)}, []string{"xyz=1"})
		if (err == nil) != ok {
			t.Errorf("argumentsOf with %s = %v, want an error: %v", schema, err, !ok)
		}
	}
}
