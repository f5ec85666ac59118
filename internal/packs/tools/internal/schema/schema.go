// Package schema compiles the JSON Schemas of tools, and extracts what else they define:
// parameters and their defaults, which of them are secret, a form that every client
// accepts, and the cost of validation.
//
// It fetches nothing, and refuses schemas that take too long to compile or to validate
// against. It knows neither tools nor formats.
package schema

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Empty is the schema of a tool that declares no parameters.
const Empty = `{"type":"object"}`

// An Input is an input schema with what this package extracts from it.
type Input struct {
	Root     *strictjson.Node
	Compiled *jsonschema.Schema
	Params   []Param        // in declared order
	byName   map[string]int // :: name → index in params
	required []string       // names that are always required, as declared
	Declared []string       // names of properties at any depth that are declared secret, sorted
	Secrets  []string       // Declared, and names such as password, sorted
}

// A Param is one property of the arguments.
type Param struct {
	Name      string
	Schema    *strictjson.Node
	Required  bool
	Preset    *strictjson.Node   // its default, or nil; only for a property that always applies
	Compiled  *jsonschema.Schema // nil unless the property always applies
	others    []*strictjson.Node // the property's schemas in other branches of combinators
	test      bool               // occurs in an "if", which restricts nothing
	AllowDash bool               // values may begin with "-"
}

// newInput compiles root, an object schema.
func newInput(root *strictjson.Node) (*Input, error) {
	compiled, err := Compile(root)
	if err != nil {
		return nil, err
	}
	in := &Input{Root: root, Compiled: compiled, byName: make(map[string]int)}
	in.collect(root, always, make(map[*strictjson.Node]bool))
	if err := in.repeated(); err != nil {
		return nil, err
	}
	secrets := secretSchemas(root)
	in.collectSecrets(root, secrets)
	for _, p := range in.Params {
		if secrets[p.Schema] {
			in.Declared = append(in.Declared, p.Name)
		}
	}
	slices.Sort(in.Declared)
	in.Declared = slices.Compact(in.Declared)
	in.Secrets = slices.Clone(in.Declared)
	in.required = unique(in.required)
	for _, name := range in.required {
		if p := in.Param(name); p != nil {
			p.Required = true
		}
	}
	properties := make(map[string]*jsonschema.Schema)
	gather(compiled, properties, make(map[*jsonschema.Schema]bool))
	for i := range in.Params {
		p := &in.Params[i]
		if p.Compiled = properties[p.Name]; p.Compiled == nil {
			p.Preset = nil
		}
		if redact.SensitiveName(p.Name) {
			in.Secrets = append(in.Secrets, p.Name)
		}
	}
	slices.Sort(in.Secrets)
	in.Secrets = slices.Compact(in.Secrets)
	return in, nil
}

// Parse compiles an input schema. An error is an *[Error].
func Parse(raw json.RawMessage) (*Input, error) {
	root, e := strictjson.Parse(raw)
	if e != nil {
		return nil, &Error{Problem: e.Problem, Hint: e.Hint}
	}
	return newInput(root)
}

// unique returns names without repetitions, in order.
func unique(names []string) []string {
	seen := make(map[string]bool, len(names))
	var out []string
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// Param returns the parameter called name, or nil.
func (in *Input) Param(name string) *Param {
	if i, ok := in.byName[name]; ok {
		return &in.Params[i]
	}
	return nil
}

// gather finds the compiled schemas of the properties that always apply.
func gather(s *jsonschema.Schema, found map[string]*jsonschema.Schema, seen map[*jsonschema.Schema]bool) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	for name, p := range s.Properties {
		if found[name] == nil {
			found[name] = p
		}
	}
	gather(s.Ref, found, seen)
	for _, branch := range s.AllOf {
		gather(branch, found, seen)
	}
}

// repeated refuses a schema whose properties contain each other through references, since
// clients get every property in full.
func (in *Input) repeated() error {
	size := 0
	for _, p := range in.Params {
		size += p.Schema.End - p.Schema.Start
		for _, s := range p.others {
			size += s.End - s.Start
		}
	}
	if size > 1<<16+4*(in.Root.End-in.Root.Start) {
		return &Error{Problem: "properties of the schema stand inside each other too often", Hint: "let references point to $defs"}
	}
	return nil
}

// applies says when a part of a schema applies.
type applies uint8

const (
	always    applies = iota
	sometimes         // a branch of a combinator
	asTest            // an "if": it restricts nothing
)

// collect collects the properties of the object that s describes, including those in
// references and combinators, and the names that are always required.
func (in *Input) collect(s *strictjson.Node, when applies, seen map[*strictjson.Node]bool) {
	if s == nil || s.Kind != strictjson.Object || seen[s] {
		return
	}
	seen[s] = true
	if props := s.Get("properties"); props != nil && props.Kind == strictjson.Object {
		for _, m := range props.Members {
			if p := in.Param(m.Key); p == nil {
				in.byName[m.Key] = len(in.Params)
				in.Params = append(in.Params, Param{
					Name:      m.Key,
					Schema:    m.Value,
					Preset:    preset(in.Root, m.Value),
					AllowDash: m.Value.IsTrue(keyAllowDash),
					test:      when == asTest,
				})
			} else if when == sometimes {
				p.others = append(p.others, m.Value)
			}
		}
	}
	in.collect(localRef(in.Root, s), when, seen)
	if all := s.Get("allOf"); all != nil {
		for _, b := range all.Items {
			in.collect(b, when, seen)
		}
	}
	inside := max(when, sometimes)
	for _, key := range []string{"anyOf", "oneOf", "dependentSchemas"} {
		if branches := s.Get(key); branches != nil {
			for _, b := range branches.Children() {
				in.collect(b, inside, seen)
			}
		}
	}
	in.collect(s.Get("then"), inside, seen)
	in.collect(s.Get("else"), inside, seen)
	in.collect(s.Get("if"), asTest, seen)
	if when == always {
		in.required = append(in.required, s.StringsAt("required")...)
	}
}

// keyAllowDash is our own keyword: values of the parameter may begin with "-".
const keyAllowDash = "allow_leading_dash"

// preset returns the default of a property: its own, or that of the schema it refers to.
func preset(root, s *strictjson.Node) *strictjson.Node {
	for range 10 {
		if s == nil {
			return nil
		}
		if d := s.Get("default"); d != nil {
			return d
		}
		s = localRef(root, s)
	}
	return nil
}

// localRef returns the target of s's $ref within the document, or nil.
func localRef(root, s *strictjson.Node) *strictjson.Node {
	fragment, ok := strings.CutPrefix(s.StringAt("$ref"), "#")
	if !ok {
		return nil
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil
	}
	if fragment == "" {
		return root
	}
	if fragment[0] != '/' {
		return nil
	}
	path := strictjson.SplitPointer(fragment)
	n := root
	for i := range path {
		next := n.At(path[i : i+1])
		if next == n {
			return nil
		}
		n = next
	}
	return n
}

// DropNulls removes optional properties that are null but cannot be: many models write null
// for what they omit.
func (in *Input) DropNulls(fields map[string]any) {
	for name, value := range fields {
		p := in.Param(name)
		if value == nil && p != nil && !p.Required && p.Compiled != nil && p.Compiled.Validate(nil) != nil {
			delete(fields, name)
		}
	}
}
