package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxProblems is how many problems an [ArgumentError] names: enough to mend a
// call at once, few enough to read.
const maxProblems = 20

// maxArguments is how many bytes arguments may have, and maxArgumentsDepth how
// deeply they may be nested.
const (
	maxArguments      = 4 << 20
	maxArgumentsDepth = 64
)

// Values are checked arguments of one tool, with defaults filled in. The zero
// value is no arguments.
type Values struct {
	given     *node           // the arguments as they came; nil: none
	fields    map[string]any  // :: name → value as JSON, numbers as json.Number
	defaulted map[string]bool // :: names whose value is the declared default
}

// json returns the values as one JSON object: keys sorted, no spaces, numbers
// as they were written. Equal bytes are equal calls of a tool.
func (v Values) json() json.RawMessage {
	if v.fields == nil {
		return json.RawMessage("{}")
	}
	return canonical(v.fields)
}

// An ArgumentError says why arguments are not what a tool takes.
type ArgumentError struct {
	Problems []string        // each with the JSON pointer of its place in the arguments
	Schema   json.RawMessage // what they were checked against
}

func (e *ArgumentError) Error() string {
	return "invalid arguments: " + strings.Join(e.Problems, "; ")
}

// Check reads the arguments of a call and holds them against the tool's input
// schema as it was declared. Nothing at all, and null, mean no arguments.
// Properties that are absent get their defaults, except those that come from
// the user's context, which [Tool.Expand] fills in. For an optional property, null
// is absence unless its schema allows null. A value for a parameter that
// the tool has a fixed one for is refused. An error is an *[ArgumentError], which shows no values of secret parameters.
func (t *Tool) Check(args json.RawMessage) (Values, error) {
	in := t.schema()
	refuse := func(problems ...string) (Values, error) {
		return Values{}, &ArgumentError{Problems: problems, Schema: t.InputSchema}
	}
	if len(args) > maxArguments {
		return refuse(fmt.Sprintf("arguments have %d bytes, and at most %d are read", len(args), maxArguments))
	}
	root := &node{kind: kindObject}
	if s := strings.TrimSpace(string(args)); s != "" && s != "null" {
		var e *jsonError
		if root, e = parseJSON(args); e != nil {
			return refuse(fmt.Sprintf("at byte %d: %s", e.offset, e.problem))
		}
		if root.kind != kindObject {
			return refuse(fmt.Sprintf("arguments must be an object, not %s", root.kind))
		}
	}
	if root.depth() > maxArgumentsDepth {
		return refuse(fmt.Sprintf("arguments are nested more than %d levels deep", maxArgumentsDepth))
	}
	if !(&meter{}).allows(in.compiled, root) {
		return refuse("arguments take too long to check against the tool's input schema: give fewer, less nested or shorter values")
	}
	fields := root.value().(map[string]any)
	var problems []string
	for _, name := range t.literals(fields) {
		problems = append(problems, pointer([]string{name})+": the tool has a fixed value for it; leave it out")
	}
	if problems != nil {
		return refuse(problems...)
	}
	in.dropNulls(fields)
	if err := in.compiled.Validate(fields); err != nil {
		v, ok := errors.AsType[*jsonschema.ValidationError](err)
		if !ok {
			return refuse(err.Error())
		}
		for _, l := range leavesOf(v, in.secrets) {
			if len(problems) == maxProblems {
				problems = append(problems, "and more")
				break
			}
			if p := pointer(l.path); p != "" {
				problems = append(problems, p+": "+l.text)
			} else {
				problems = append(problems, l.text)
			}
		}
		return refuse(problems...)
	}
	v := Values{given: root, fields: fields, defaulted: make(map[string]bool)}
	for _, p := range in.params {
		if _, fromContext := in.sources[p.name].context(); fromContext {
			continue // context is looked for first; see Expand
		}
		if _, ok := fields[p.name]; !ok && p.preset != nil {
			fields[p.name] = p.preset.value()
			v.defaulted[p.name] = true
		}
	}
	return v, nil
}

// dropNulls removes what is null of properties that need not be there and cannot
// be null: many models write null for what they leave out.
func (in *inputSchema) dropNulls(fields map[string]any) {
	for name, value := range fields {
		p := in.param(name)
		if value == nil && p != nil && !p.required && p.compiled != nil && p.compiled.Validate(nil) != nil {
			delete(fields, name)
		}
	}
}
