package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

// refs returns references to what, separated by commas.
func refs(what string, count int) string {
	return strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"$ref": %q},`, what), count), ",")
}

// chain returns definitions B0 to B(depth), of which each is made of the next
// by format and the last is a string.
func chain(depth int, format func(next string) string) string {
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, `"B%d": %s, `, i, format(fmt.Sprintf("#/$defs/B%d", i+1)))
	}
	fmt.Fprintf(&b, `"B%d": {"type": "string"}`, depth)
	return b.String()
}

func toB0(defs string) string {
	return `{"type": "object", "properties": {"a": {"$ref": "#/$defs/B0"}}, "$defs": {` + defs + `}}`
}

// Nothing that a schema says makes reading it, or showing it, take for ever.
func TestHostileSchemas(t *testing.T) {
	items := func(wide int) string {
		return chain(12, func(next string) string { return `{"items": {"anyOf": [` + refs(next, wide) + `]}}` })
	}
	var clique, anchors, wide, deep, text []string
	for i := range 30 {
		var all []string
		for k := range 30 {
			all = append(all, fmt.Sprintf(`{"$ref": "#/$defs/B%d"}`, k))
		}
		clique = append(clique, fmt.Sprintf(`"B%d": {"anyOf": [%s]}`, i, strings.Join(all, ",")))
		anchors = append(anchors, fmt.Sprintf(`"B%d": {"$anchor": "b%d", "allOf": [%s]}`, i, i, refs(fmt.Sprintf("#b%d", i+1), 4)))
	}
	anchors = append(anchors, `"B30": {"$anchor": "b30"}`)
	for i := range 25_000 {
		wide = append(wide, fmt.Sprintf(`"p%d": {"writeOnly": true}`, i))
		deep = append(deep, fmt.Sprintf(`"B%d": {"$ref": "#/$defs/B%d"}`, i, i+1))
	}
	deep = append(deep, `"B25000": {}`)
	for i := range 12 {
		kind := []string{"string", "integer", "boolean", "null"}[i%4]
		text = append(text, fmt.Sprintf(`"B%d": {"anyOf": [{"type": %q}, %s]}`, i, kind, strings.Repeat(fmt.Sprintf(`{"type": "array", "items": {"$ref": "#/$defs/B%d"}},`, i+1), 120)+`{"type": "null"}`))
	}
	text = append(text, `"B12": {}`)
	for _, tt := range []struct {
		name, schema string
		ok           bool
	}{
		{"items of branches, 8 wide", toB0(items(8)), true},
		{"items of branches, 40 wide", toB0(items(40)), true},
		{"every schema is a branch of every other", toB0(strings.Join(clique, ",")), false},
		{"anchors", toB0(strings.Join(anchors, ",")), false},
		{"anchors, from a property's list", strings.Replace(toB0(strings.Join(anchors, ",")), `{"$ref": "#/$defs/B0"}`, `{"items": {"$ref": "#b0"}}`, 1), false},
		{"branches, all of which always apply", `{"allOf": [` + refs("#/$defs/B0", 1) + `], "$defs": {` + chain(7, func(next string) string { return `{"allOf": [` + refs(next, 3) + `]}` }) + `}}`, true},
		{"25,000 secrets", `{"properties": {` + strings.Join(wide, ",") + `}}`, false},
		{"1,900 secrets", `{"properties": {` + strings.Join(wide[:1900], ",") + `}}`, true},
		{"25,000 references in a row", toB0(strings.Join(deep, ",")), false},
		{"1,000 references in a row", toB0(strings.Join(deep[:1000], ",") + `, "B1000": {}`), false},
		{"30,000 names that are required", `{"required": ["p` + strings.Join(strings.Split(strings.Repeat("x ", 30_000), " "), `", "p`) + `"]}`, false},
		{"types of types", toB0(strings.Join(text, ",")), true},
		{"properties in properties", `{"properties": {"a": ` + strings.Repeat(`{"properties": {"a": `, 30) + `{"const": "` + strings.Repeat("x", 20_000) + `"}` + strings.Repeat(`}}`, 30) + `}, "allOf": [` +
			func() string {
				var out []string
				for i := range 30 {
					out = append(out, fmt.Sprintf(`{"properties": {"p%d": {"$ref": "#%s"}}}, {"anyOf": [{"$ref": "#%s"}]}`, i, strings.Repeat("/properties/a", i+1), strings.Repeat("/properties/a", i+1)))
				}
				return strings.Join(out, ",")
			}() + `]}`, false},
		{"patterns that unfold", `{"properties": {"a": {"pattern": "` + strings.Repeat(".{1000}", 1000) + `"}}}`, false},
		{"patterns of classes", `{"properties": {"a": {"pattern": "` + strings.Repeat(`\\pL`, 10_000) + `"}}}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tooltest.Soon(t, "reading "+tt.name, func() {
				set, found := toolsjson.Parse("f", []byte(tooltest.One(`"command": ["p"], "inputSchema": `+tt.schema)), tools.Limits{})
				if (set != nil) != tt.ok || set == nil && tooltest.Codes(found) != tools.CodeSchemaInvalid {
					t.Errorf("ParseToolsJSON(%.200s) = %v, want accepted = %v", tt.schema, found, tt.ok)
				}
				// Literal tools have had no parser to refuse them.
				for _, tool := range []*tools.Tool{{Name: "t", InputSchema: json.RawMessage(tt.schema)}, {Name: "t", OutputSchema: json.RawMessage(tt.schema)}} {
					if size := len(tool.PortableSchema()); size > 8*len(tt.schema)+1000 {
						t.Errorf("PortableSchema() has %d bytes, of a schema of %d", size, len(tt.schema))
					}
					_ = tool.Signature()
					_ = tool.Definition()
					_ = tool.Secrets()
					_ = redacted(tool, `{"a": [[["x"]]]}`)
					_, _ = tool.Check(tooltest.Arguments(t, `{"a": [[[["x"]]]], "p1": 5}`))
				}
			})
		})
	}
}

// A secret is found at the end of any way to it, and in a ring of references.
func TestSecretsFarAway(t *testing.T) {
	defs := chain(60, func(next string) string { return `{"items": {"anyOf": [` + refs(next, 3) + `]}}` })
	for schema, want := range map[string]string{
		toB0(defs): "[]",
		toB0(strings.Replace(defs, `{"type": "string"}`, `{"type": "string", "writeOnly": true}`, 1)):                                                                                                            "[a]",
		`{"properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/y"}}, "$defs": {"x": {"items": {"$ref": "#/$defs/y"}}, "y": {"anyOf": [{"items": {"$ref": "#/$defs/x"}}, {"format": "password"}]}}}`: "[a b]",
	} {
		if got := fmt.Sprint(tooltest.Compile(t, schema, `["p"]`).Secrets()); got != want {
			t.Errorf("the secrets of %.200s are %s, want %s", schema, got, want)
		}
	}
}

func listsIn(depth int) string {
	return `{"a": ` + strings.Repeat("[", depth) + `"x"` + strings.Repeat("]", depth) + `}`
}

// hostileB multiplies with every level of a value.
const hostileB = `{"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}, "$defs": {"B": {"anyOf": [
	{"type": "array", "items": {"$ref": "#/$defs/B"}}, {"type": "array", "items": {"$ref": "#/$defs/B"}}, {"type": "array", "items": {"$ref": "#/$defs/B"}}]}}}`

// A call that would take for ever is refused instead.
func TestHostileArguments(t *testing.T) {
	enum := strings.Repeat(`"`+strings.Repeat("v", 1000)+`", `, 500)
	for _, tt := range []struct {
		name, schema, args, want string
	}{
		{"branches at every level", hostileB, listsIn(40), "take too long"},
		{"branches at every level, 12 deep", hostileB, listsIn(12), "take too long"},
		{"branches at every level, shallow", hostileB, listsIn(2), "/a"},
		{"objects", strings.NewReplacer(`"array"`, `"object"`, "items", "additionalProperties").Replace(hostileB), `{"a": ` + strings.Repeat(`{"b":`, 20) + `1` + strings.Repeat("}", 20) + `}`, "take too long"},
		{"deep", `{}`, listsIn(63), "nested more than 64"},
		{"large", `{}`, `{"a": "` + strings.Repeat("x", tools.MaxArguments) + `"}`, "at most"},
		{"a pattern and a text", `{"properties": {"a": {"pattern": "(x{0,100}y){9}z"}}}`, `{"a": "` + strings.Repeat("x", 1<<20) + `"}`, "take too long"},
		{"an enum of much", `{"properties": {"a": {"items": {"enum": [` + enum + `"w"]}}}}`, `{"a": [` + strings.Repeat(`"x",`, 2000) + `"x"]}`, "take too long"},
		{"items that are unique", `{"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"uniqueItems": true, "items": {"allOf": [` + refs("#/$defs/a", 2) + `]}}}}`, listsIn(30), "take too long"},
		{"names", `{"properties": {"a": {"propertyNames": {"anyOf": [` + refs("#/$defs/n", 100) + `]}}}, "$defs": {"n": {"pattern": "^y"}}}`,
			`{"a": {` + names(20_000) + `}}`, "take too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tooltest.Soon(t, "checking "+tt.name, func() {
				_, err := tooltest.Compile(t, tt.schema, `["p"]`).Check(tooltest.Arguments(t, tt.args))
				if e, ok := errors.AsType[*tools.ArgumentError](err); !ok || !strings.Contains(e.Error(), tt.want) {
					t.Errorf("Check(%.100s) under %.200s = %v, want an ArgumentError with %q", tt.args, tt.schema, err, tt.want)
				}
			})
		})
	}
}

// names returns count members of an object.
func names(count int) string {
	var out []string
	for i := range count {
		out = append(out, fmt.Sprintf(`"x%d": 1`, i))
	}
	return strings.Join(out, ",")
}

// Nor does a default.
func TestHostileDefaults(t *testing.T) {
	nestedDefault := func(depth int) string {
		value := strings.TrimSuffix(strings.TrimPrefix(listsIn(depth), `{"a": `), "}")
		return strings.Replace(hostileB, `{"$ref": "#/$defs/B"}`, `{"$ref": "#/$defs/B", "default": `+value+`}`, 1)
	}
	var shared []string
	for i := range 2000 {
		shared = append(shared, fmt.Sprintf(`"p%d": {"$ref": "#/$defs/d"}`, i))
	}
	for name, tt := range map[string]struct{ schema, want string }{
		"branches at every level":          {nestedDefault(40), tools.CodeSchemaInvalid},
		"branches at every level, shallow": {nestedDefault(2), tools.CodeDefaultInvalid},
		"deep":                             {`{"properties": {"a": {"default": ` + tooltest.Nested(65) + `}}}`, tools.CodeSchemaInvalid},
		"one for many":                     {`{"properties": {` + strings.Join(shared, ",") + `}, "$defs": {"d": {"default": "` + strings.Repeat("x", 100_000) + `"}}}`, tools.CodeSchemaInvalid},
	} {
		tooltest.Soon(t, "reading the default "+name, func() {
			if set, found := toolsjson.Parse("f", []byte(tooltest.One(`"command": ["p"], "inputSchema": `+tt.schema)), tools.Limits{}); set != nil || tooltest.Codes(found) != tt.want {
				t.Errorf("ParseToolsJSON of the default %s = %v, want %s", name, found, tt.want)
			}
		})
	}
}

// What is harmless still works: trees, lists of lists, and much of it.
func TestRecursiveSchemas(t *testing.T) {
	tree := func(depth, wide int) string {
		s := `{}`
		for range depth {
			s = `{"name": "n", "children": [` + strings.TrimSuffix(strings.Repeat(s+",", wide), ",") + `]}`
		}
		return s
	}
	const trees = `{"type": "object", "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}}, "additionalProperties": false}`
	const lists = `{"properties": {"a": {"$ref": "#/$defs/v"}}, "$defs": {"v": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/v"}}]}}}`
	const anyJSON = `{"properties": {"a": {"$ref": "#/$defs/v"}}, "$defs": {"v": {"oneOf": [{"type": ["null", "boolean", "number", "string"]},
		{"type": "array", "items": {"$ref": "#/$defs/v"}}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/v"}}]}}}`
	const filter = `{"properties": {"where": {"$ref": "#/$defs/f"}}, "$defs": {"f": {"oneOf": [
		{"properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/f"}}}, "required": ["and"], "additionalProperties": false},
		{"properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/f"}}}, "required": ["or"], "additionalProperties": false},
		{"properties": {"not": {"$ref": "#/$defs/f"}}, "required": ["not"], "additionalProperties": false},
		{"properties": {"eq": {"type": "string"}}, "required": ["eq"], "additionalProperties": false}]}}}`
	for _, tt := range []struct {
		name, schema, args string
		ok                 bool
	}{
		{"tree", trees, tree(3, 3), true},
		{"tall tree", trees, tree(28, 1), true},
		{"wide tree", trees, tree(3, 15), true},
		{"tree with a mistake", trees, strings.Replace(tree(3, 3), `{}`, `{"x": 1}`, 1), false},
		{"lists in lists", lists, listsIn(60), true},
		{"lists in lists, of numbers", lists, strings.Replace(listsIn(60), `"x"`, "1", 1), false},
		{"any JSON", anyJSON, `{"a": ` + tree(4, 5) + `}`, true},
		{"a filter", filter, `{"where": {"and": [{"not": {"or": [{"eq": "a"}, {"and": [{"eq": "b"}]}]}}, {"eq": "c"}]}}`, true},
		{"a filter with a mistake", filter, `{"where": {"and": [{"not": {"or": [{"eq": 1}]}}]}}`, false},
		{"many texts", `{"properties": {"a": {"type": "array", "items": {"type": "string", "minLength": 1}}}}`, `{"a": [` + strings.Repeat(`"text",`, 50_000) + `"x"]}`, true},
		{"a long text", `{"properties": {"a": {"type": "string", "pattern": "^[^-]", "maxLength": 2000000}}}`, `{"a": "` + strings.Repeat("x", 1<<20) + `"}`, true},
		{"a schema", `{"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}`, `{"a": ` + trees + `}`, true},
		{"a schema with a mistake", `{"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}`, `{"a": {"properties": {"x": {"type": "text"}}}}`, false},
	} {
		tool := tooltest.Compile(t, tt.schema, `["p"]`)
		_, err := tool.Check(tooltest.Arguments(t, tt.args))
		if (err == nil) != tt.ok || err != nil && strings.Contains(err.Error(), "too long") {
			t.Errorf("%s: Check(%.200s) = %v, want accepted = %v", tt.name, tt.args, err, tt.ok)
		}
	}
}
