package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// maxProblems is how many problems an [ArgumentError] lists: enough to fix a call at
// once, few enough to read.
const maxProblems = 20

// maxArguments is how many bytes arguments may have.
const maxArguments = 4 << 20

// Values are checked arguments of one tool, with defaults filled in. The zero
// value is no arguments.
type Values struct {
	given     *strictjson.Node // the original arguments; nil: none
	fields    map[string]any   // :: name → value as JSON, numbers as json.Number
	defaulted map[string]bool  // :: names whose value is the declared default
}

// json returns the values as one JSON object: keys sorted, no spaces, numbers as
// written. Equal bytes mean equal calls of a tool.
func (v Values) json() json.RawMessage {
	if v.fields == nil {
		return json.RawMessage("{}")
	}
	return strictjson.Canonical(v.fields)
}

// An ArgumentError says why arguments are not what a tool takes.
type ArgumentError struct {
	Problems []string        // each with its JSON pointer into the arguments
	Schema   json.RawMessage // what they were checked against
}

func (e *ArgumentError) Error() string {
	return "invalid arguments: " + strings.Join(e.Problems, "; ")
}

// Check checks the arguments of a call against the tool's declared input schema. Nil and null mean
// no arguments. It keeps args and does not change them. Properties that are absent get their
// defaults, except those that come from the user's context, which [Tool.Expand] fills in. For an
// optional property, null means absent unless its schema allows null. A value for a parameter with
// a fixed value is refused. The error is an *[ArgumentError], which shows no values of secret
// parameters.
func (t *Tool) Check(args *strictjson.Node) (Values, error) {
	in := t.schema()
	refuse := func(problems ...string) (Values, error) {
		return Values{}, &ArgumentError{Problems: problems, Schema: t.InputSchema}
	}
	if args == nil || args.Kind == strictjson.Null {
		args = &strictjson.Node{Kind: strictjson.Object}
	}
	if size := args.End - args.Start; size > maxArguments {
		return refuse(fmt.Sprintf("arguments have %d bytes, and at most %d are read", size, maxArguments))
	}
	if args.Kind != strictjson.Object {
		return refuse(fmt.Sprintf("arguments must be an object, not %s", args.Kind))
	}
	if args.Depth() > schema.MaxDepth {
		return refuse(fmt.Sprintf("arguments are nested more than %d levels deep", schema.MaxDepth))
	}
	if !(&schema.Meter{}).Allows(in.Compiled, args) {
		return refuse("arguments take too long to check against the tool's input schema: give fewer, less nested or shorter values")
	}
	fields := args.Value().(map[string]any)
	var problems []string
	for _, name := range t.literals(fields) {
		problems = append(problems, strictjson.Pointer([]string{name})+": the tool has a fixed value for it; leave it out")
	}
	if problems != nil {
		return refuse(problems...)
	}
	in.DropNulls(fields)
	if err := in.Compiled.Validate(fields); err != nil {
		v, ok := errors.AsType[*jsonschema.ValidationError](err)
		if !ok {
			return refuse(err.Error())
		}
		for _, l := range schema.Leaves(v, in.Secrets) {
			if len(problems) == maxProblems {
				problems = append(problems, "and more")
				break
			}
			if p := strictjson.Pointer(l.Path); p != "" {
				problems = append(problems, p+": "+l.Text)
			} else {
				problems = append(problems, l.Text)
			}
		}
		return refuse(problems...)
	}
	v := Values{given: args, fields: fields, defaulted: make(map[string]bool)}
	for _, p := range in.Params {
		if t.Sources[p.Name].IsContext() {
			continue // the context comes first; see Expand
		}
		if _, ok := fields[p.Name]; !ok && p.Preset != nil {
			fields[p.Name] = p.Preset.Value()
			v.defaulted[p.Name] = true
		}
	}
	return v, nil
}
