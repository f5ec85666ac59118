package tools

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/redact"
)

// emptyInput is the schema of a tool that declares none.
const emptyInput = `{"type":"object"}`

// An inputSchema is an input schema with what this package reads out of it.
type inputSchema struct {
	root     *node
	compiled *jsonschema.Schema
	params   []param           // in declared order
	byName   map[string]int    // :: name → index in params
	required []string          // names that are always required, as declared
	sources  map[string]Source // of the tool
	declared []string          // names of properties at any depth that are declared secret, sorted
	secrets  []string          // those, and names like password, sorted
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
	in := &inputSchema{root: root, compiled: compiled, byName: make(map[string]int)}
	in.collect(root, always, make(map[*node]bool))
	if err := in.repeated(); err != nil {
		return nil, err
	}
	secrets := secretSchemas(root)
	in.collectSecrets(root, secrets)
	for _, p := range in.params {
		if secrets[p.schema] {
			in.declared = append(in.declared, p.name)
		}
	}
	slices.Sort(in.declared)
	in.declared = slices.Compact(in.declared)
	in.secrets = slices.Clone(in.declared)
	in.required = unique(in.required)
	for _, name := range in.required {
		if p := in.param(name); p != nil {
			p.required = true
		}
	}
	properties := make(map[string]*jsonschema.Schema)
	gather(compiled, properties, make(map[*jsonschema.Schema]bool))
	for i := range in.params {
		p := &in.params[i]
		if p.compiled = properties[p.name]; p.compiled == nil {
			p.preset = nil
		}
		if redact.SensitiveName(p.name) {
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
	in := t.derive()
	in.sources = t.Sources
	return in
}

// derive compiles the input schema of a Tool that no parser made.
func (t *Tool) derive() *inputSchema {
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

// knows reports whether a placeholder may name name: a property, or a fixed
// value.
func (in *inputSchema) knows(name string) bool {
	return in.sources[name].From == SourceLiteral || in.param(name) != nil
}

func (in *inputSchema) param(name string) *param {
	if i, ok := in.byName[name]; ok {
		return &in.params[i]
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

// repeated refuses a schema whose properties hold each other, by references
// into them: what clients get is every one of them, whole.
func (in *inputSchema) repeated() error {
	size := 0
	for _, p := range in.params {
		size += p.schema.end - p.schema.start
		for _, s := range p.others {
			size += s.end - s.start
		}
	}
	if size > 1<<16+4*(in.root.end-in.root.start) {
		return &schemaError{problem: "properties of the schema stand inside each other too often", hint: "let references point to $defs"}
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
				in.byName[m.key] = len(in.params)
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

// collectSecrets gathers the names of properties that are declared secret, in every
// part of the schema.
func (in *inputSchema) collectSecrets(n *node, secrets map[*node]bool) {
	if props := n.get("properties"); props != nil && props.kind == kindObject {
		for _, m := range props.members {
			if secrets[m.value] {
				in.declared = append(in.declared, m.key)
			}
		}
	}
	for _, child := range n.children() {
		in.collectSecrets(child, secrets)
	}
}

// secretSchemas returns the schemas in root of which any part says that the
// value is a secret. It goes from those parts to what leads there, as the other
// way round there may be more paths than time.
func secretSchemas(root *node) map[*node]bool {
	leading := make(map[*node][]*node) // :: schema → the schemas it is a part of
	secret := make(map[*node]bool)
	var todo []*node
	mark := func(s *node) {
		if !secret[s] {
			secret[s] = true
			todo = append(todo, s)
		}
	}
	var walk func(*node)
	walk = func(s *node) {
		if s.kind == kindObject {
			if s.isTrue("writeOnly") || s.str("format") == "password" || s.isTrue("secret") {
				mark(s)
			}
			part := func(n *node) {
				if n != nil && n.kind == kindObject {
					leading[n] = append(leading[n], s)
				}
			}
			part(localRef(root, s))
			part(s.get("items"))
			for _, key := range []string{"allOf", "anyOf", "oneOf"} {
				if branches := s.get(key); branches != nil {
					for _, b := range branches.items {
						part(b)
					}
				}
			}
		}
		for _, child := range s.children() {
			walk(child)
		}
	}
	walk(root)
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, whole := range leading[s] {
			mark(whole)
		}
	}
	return secret
}
