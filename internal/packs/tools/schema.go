package tools

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// emptyInput is the schema of a tool that declares none.
const emptyInput = `{"type":"object"}`

// An inputSchema is an input schema with what this package reads out of it.
type inputSchema struct {
	root     *node
	compiled *jsonschema.Schema
	params   []param  // in declared order
	required []string // names that are always required, as declared
	secrets  []string // names of secret properties at any depth, sorted
}

// A param is one property of the arguments.
type param struct {
	name      string
	schema    *node
	required  bool
	preset    *node              // its default, or nil; only of a property that always applies
	compiled  *jsonschema.Schema // nil unless the property always applies
	others    []*node            // what other branches of combinators say of the property
	test      bool               // stands in an "if", which restricts nothing
	allowDash bool               // values may begin with "-"
}

// newInputSchema reads and compiles root, an object schema.
func newInputSchema(root *node) (*inputSchema, error) {
	compiled, err := compileSchema(root)
	if err != nil {
		return nil, err
	}
	in := &inputSchema{root: root, compiled: compiled}
	in.collect(root, always, make(map[*node]bool))
	in.collectSecrets(root)
	in.required = unique(in.required)
	for i := range in.params {
		p := &in.params[i]
		if p.compiled = property(compiled, p.name, 0); p.compiled == nil {
			p.preset = nil
		}
		p.required = slices.Contains(in.required, p.name)
		if secret(root, p.schema, nil) || sensitiveName(p.name) {
			in.secrets = append(in.secrets, p.name)
		}
	}
	slices.Sort(in.secrets)
	in.secrets = slices.Compact(in.secrets)
	return in, nil
}

// parseInputSchema is newInputSchema of a schema that is not parsed yet.
func parseInputSchema(raw json.RawMessage) (*inputSchema, error) {
	root, e := parseJSON(raw)
	if e != nil {
		return nil, &schemaError{problem: e.problem, hint: e.hint}
	}
	return newInputSchema(root)
}

// schema returns the compiled input schema. A Tool that no parser made gets
// its own on every call, and one that accepts nothing if InputSchema is no
// schema.
func (t *Tool) schema() *inputSchema {
	if t.input != nil {
		return t.input
	}
	src := t.InputSchema
	if len(src) == 0 {
		src = json.RawMessage(emptyInput)
	}
	in, err := parseInputSchema(src)
	if err != nil {
		if in, err = parseInputSchema(json.RawMessage("false")); err != nil {
			panic(err) // false is a schema
		}
	}
	return in
}

// unique returns names without repetitions, in order.
func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func (in *inputSchema) param(name string) *param {
	for i := range in.params {
		if in.params[i].name == name {
			return &in.params[i]
		}
	}
	return nil
}

// property finds the compiled schema of a property that always applies.
func property(s *jsonschema.Schema, name string, depth int) *jsonschema.Schema {
	if s == nil || depth > 10 {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	if p := property(s.Ref, name, depth+1); p != nil {
		return p
	}
	for _, branch := range s.AllOf {
		if p := property(branch, name, depth+1); p != nil {
			return p
		}
	}
	return nil
}

// applies says when a part of a schema does.
type applies uint8

const (
	always    applies = iota
	sometimes         // a branch of a combinator
	asTest            // an "if": it restricts nothing
)

// collect gathers the properties of the object that s describes, wherever in
// its references and combinators they stand, and what is always required.
func (in *inputSchema) collect(s *node, when applies, seen map[*node]bool) {
	if s == nil || s.kind != kindObject || seen[s] {
		return
	}
	seen[s] = true
	if props := s.get("properties"); props != nil && props.kind == kindObject {
		for _, m := range props.members {
			if p := in.param(m.key); p == nil {
				in.params = append(in.params, param{
					name:      m.key,
					schema:    m.value,
					preset:    preset(in.root, m.value),
					allowDash: m.value.isTrue(keyAllowDash),
					test:      when == asTest,
				})
			} else if when == sometimes {
				p.others = append(p.others, m.value)
			}
		}
	}
	in.collect(localRef(in.root, s), when, seen)
	if all := s.get("allOf"); all != nil {
		for _, b := range all.items {
			in.collect(b, when, seen)
		}
	}
	inside := max(when, sometimes)
	for _, key := range []string{"anyOf", "oneOf", "dependentSchemas"} {
		if branches := s.get(key); branches != nil {
			for _, b := range branches.children() {
				in.collect(b, inside, seen)
			}
		}
	}
	in.collect(s.get("then"), inside, seen)
	in.collect(s.get("else"), inside, seen)
	in.collect(s.get("if"), asTest, seen)
	if when == always {
		in.required = append(in.required, s.strs("required")...)
	}
}

// keyAllowDash is our own keyword: values of the parameter may begin with "-".
const keyAllowDash = "allow_leading_dash"

// preset returns the default of a property, its own or that of what it refers to.
func preset(root, s *node) *node {
	for range 10 {
		if s == nil {
			return nil
		}
		if d := s.get("default"); d != nil {
			return d
		}
		s = localRef(root, s)
	}
	return nil
}

// localRef returns what the $ref of s means within the document, or nil.
func localRef(root, s *node) *node {
	fragment, ok := strings.CutPrefix(s.str("$ref"), "#")
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
	path := splitPointer(fragment)
	n := root
	for i := range path {
		next := n.at(path[i : i+1])
		if next == n {
			return nil
		}
		n = next
	}
	return n
}

func splitPointer(p string) []string {
	if p == "" {
		return nil
	}
	path := strings.Split(p, "/")[1:]
	for i, tok := range path {
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(tok)
	}
	return path
}

// collectSecrets gathers the names of secret properties in every part of the
// schema.
func (in *inputSchema) collectSecrets(n *node) {
	if props := n.get("properties"); props != nil && props.kind == kindObject {
		for _, m := range props.members {
			if secret(in.root, m.value, nil) {
				in.secrets = append(in.secrets, m.key)
			}
		}
	}
	for _, child := range n.children() {
		in.collectSecrets(child)
	}
}

// secret reports whether any part of s says that its value is one.
func secret(root, s *node, seen []*node) bool {
	if s == nil || s.kind != kindObject || slices.Contains(seen, s) || len(seen) > 50 {
		return false
	}
	seen = append(seen, s)
	if s.isTrue("writeOnly") || s.str("format") == "password" {
		return true
	}
	if secret(root, localRef(root, s), seen) || secret(root, s.get("items"), seen) {
		return true
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if branches := s.get(key); branches != nil {
			for _, b := range branches.items {
				if secret(root, b, seen) {
					return true
				}
			}
		}
	}
	return false
}
