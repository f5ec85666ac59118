package schema_test

import (
	"encoding/json"
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

func Example() {
	in, err := schema.Parse(json.RawMessage(`{
		"properties": {"title": {"type": "string"}, "pin": {"type": "integer", "default": 0}},
		"required": ["title"], "allOf": [{"properties": {"tags": {"items": {"type": "string"}, "type": "array"}}}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	types := schema.NewTypes(in.Root)
	for _, p := range in.Params {
		fmt.Println(p.Name, types.Text(p.Schema), "required:", p.Required, "secret:", schema.IsSecret(in.Secrets, p.Name), "default:", p.Preset != nil)
	}
	fmt.Printf("%s\n", in.Portable())

	_, err = schema.Parse(json.RawMessage(`{"properties": {"x": {"$ref": "https://example.com/x"}}}`))
	fmt.Println(err)
	// Output:
	// title string required: true secret: false default: false
	// pin integer required: false secret: true default: true
	// tags string[] required: false secret: false default: false
	// {"type":"object","properties":{"title":{"type":"string"},"pin":{"type":"integer","default":0},"tags":{"items":{"type":"string"},"type":"array"}},"required":["title"]}
	// refers to "https://example.com/x", which is outside the file
}

// A value that would take too long to check is detected beforehand.
func ExampleMeter() {
	in, err := schema.Parse(json.RawMessage(`{"properties": {"a": {"$ref": "#/$defs/B"}}, "$defs": {"B": {"anyOf": [
		{"type": "array", "items": {"$ref": "#/$defs/B"}}, {"type": "array", "items": {"$ref": "#/$defs/B"}}]}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, args := range []string{`{"a": [[]]}`, `{"a": [[[[[[[[[[[[[[[[[[[[[[[[[["x"]]]]]]]]]]]]]]]]]]]]]]]]]]}`} {
		value, e := strictjson.Parse([]byte(args))
		if e != nil {
			fmt.Println(e)
			return
		}
		fmt.Println(new(schema.Meter).Allows(in.Compiled, value))
	}
	// Output:
	// true
	// false
}
