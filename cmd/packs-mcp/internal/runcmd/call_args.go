package runcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// pair splits "name=value".
func pair(flag, text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", "", &cli.UsageError{
			Err: fmt.Errorf("%s %s has no value", flag, safetext.Quote(text)), Hint: fmt.Sprintf("write %s NAME=VALUE", flag),
		}
	}
	return name, value, nil
}

// objectOf returns the arguments in the value of --args.
func objectOf(text string) (json.RawMessage, error) {
	node, problem := strictjson.Parse([]byte(text))
	if problem != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("--args is not JSON: at byte %d: %w", problem.Offset, problem), Hint: `write an object, as in --args '{"count": 3}'`}
	}
	value, ok := node.Value().(map[string]any)
	if !ok {
		return nil, &cli.UsageError{Err: errors.New("--args is no JSON object"), Hint: `write an object, as in --args '{"count": 3}'`}
	}
	return json.Marshal(value)
}

// argumentsOf returns a tool's arguments from --arg NAME=VALUE. The tool's schema
// gives their types.
func argumentsOf(tool *tools.Tool, given []string) (json.RawMessage, error) {
	var root map[string]any
	if err := json.Unmarshal(tool.InputSchema, &root); err != nil {
		root = map[string]any{} // the schema true or false has no parameters
	}
	s := schema{root}
	params := s.properties(root, 0)
	args := make(map[string]any)
	for _, text := range given {
		name, value, err := pair("--arg", text)
		if err != nil {
			return nil, err
		}
		param, known := params[name]
		if !known && !s.open() {
			return nil, unknownArgument(tool, name, slices.Sorted(maps.Keys(params)))
		}
		if !known {
			param = root["additionalProperties"]
		}
		kinds := s.kinds(param, 0)
		if !slices.Contains(kinds, "array") {
			if _, twice := args[name]; twice {
				return nil, &cli.UsageError{Err: fmt.Errorf("--arg %s occurs twice", safetext.Quote(name)), Hint: "only a list can be given in several --arg"}
			}
			if args[name], err = typed(name, value, kinds); err != nil {
				return nil, err
			}
			continue
		}
		var items any
		if m, ok := s.follow(param, 0).(map[string]any); ok {
			items = m["items"]
		}
		item, err := typed(name, value, s.kinds(items, 0))
		if err != nil {
			return nil, err
		}
		list, _ := args[name].([]any)
		args[name] = append(list, item)
	}
	return json.Marshal(args)
}

func unknownArgument(tool *tools.Tool, name string, known []string) error {
	hint := fmt.Sprintf("tool %s takes no arguments", safetext.Quote(tool.Name))
	if len(known) > 0 {
		hint = "it takes: " + safetext.Line(strings.Join(known, ", "))
	}
	if meant := near.Names(name, known, 2); len(meant) > 0 {
		hint = fmt.Sprintf("did you mean %s?", safetext.Line(strings.Join(meant, " or ")))
	}
	return &cli.UsageError{Err: fmt.Errorf("tool %s has no argument %s", safetext.Quote(tool.Name), safetext.Quote(name)), Hint: hint}
}

// typed reads a value as the first of these kinds that fits. Text comes last, unless
// every kind is possible: then valid JSON is read as JSON.
func typed(name, text string, kinds []string) (any, error) {
	var value any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	isJSON := d.Decode(&value) == nil && !d.More()
	if isJSON {
		if _, wrong := strictjson.Parse([]byte(text)); wrong != nil {
			isJSON = false
		}
	}
	is := "string"
	switch v := value.(type) {
	case json.Number:
		is = "number"
		if !strings.ContainsAny(v.String(), ".eE") {
			is = "integer"
		}
	case bool:
		is = "boolean"
	case []any:
		is = "array"
	case map[string]any:
		is = "object"
	case nil:
		is = "null"
	}
	switch {
	case isJSON && (len(kinds) == 0 || slices.Contains(kinds, is) && !slices.Contains(kinds, "string")):
		return value, nil
	case isJSON && slices.Contains(kinds, "number") && (is == "integer" || is == "number") && !slices.Contains(kinds, "string"):
		return value, nil
	case isJSON && slices.Contains(kinds, "integer") && is == "number" && !slices.Contains(kinds, "string"):
		return value, nil // the schema decides whether 1.0 is an integer
	case len(kinds) == 0, slices.Contains(kinds, "string"):
		return text, nil
	}
	return nil, &cli.UsageError{
		Err:  fmt.Errorf("--arg %s=%s is no %s", safetext.Line(name), safetext.Quote(text), strings.Join(kinds, " or ")),
		Hint: "correct the value; --args takes all arguments as JSON",
	}
}

// A schema is the part of a tool's input schema that is needed to read values from a
// command line. The server checks the arguments.
type schema struct{ root map[string]any }

// maxRefs is how many references are followed to find the type of an argument.
const maxRefs = 8

// follow returns the target of a schema's reference in its document.
func (s schema) follow(of any, depth int) any {
	m, _ := of.(map[string]any)
	ref, ok := m["$ref"].(string)
	if !ok || depth > maxRefs {
		return of
	}
	var at any = s.root
	rest, local := strings.CutPrefix(ref, "#/")
	if !local {
		return of
	}
	for key := range strings.SplitSeq(rest, "/") {
		m, _ := at.(map[string]any)
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
	}
	return s.follow(at, depth+1)
}

// properties returns the properties of an object schema, including those in allOf.
func (s schema) properties(of any, depth int) map[string]any {
	all := make(map[string]any)
	m, _ := s.follow(of, 0).(map[string]any)
	if m == nil || depth > maxRefs {
		return all
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		parts, _ := m[key].([]any)
		for _, part := range parts {
			maps.Copy(all, s.properties(part, depth+1))
		}
	}
	if own, ok := m["properties"].(map[string]any); ok {
		maps.Copy(all, own)
	}
	return all
}

// open reports whether the schema explicitly allows more arguments than it names.
func (s schema) open() bool {
	more, said := s.root["additionalProperties"]
	return said && more != false || s.root["patternProperties"] != nil
}

// kinds returns the types that a schema allows; empty if it does not say.
func (s schema) kinds(of any, depth int) []string {
	m, _ := s.follow(of, 0).(map[string]any)
	if m == nil || depth > maxRefs {
		return nil
	}
	switch t := m["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, one := range t {
			if text, ok := one.(string); ok {
				all = append(all, text)
			}
		}
		return all
	}
	var all []string
	if values, ok := m["enum"].([]any); ok {
		for _, v := range values {
			if _, ok := v.(string); ok && !slices.Contains(all, "string") {
				all = append(all, "string")
			}
		}
		return all
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		parts, _ := m[key].([]any)
		for _, part := range parts {
			all = append(all, s.kinds(part, depth+1)...)
		}
	}
	return all
}
