package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
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

// schemaURL is where a schema is while it is compiled: nowhere that could be
// fetched.
const schemaURL = "urn:packs-mcp:schema"

// noLoader refuses to fetch anything: a pack does not make this process read
// files or open connections.
type noLoader struct{}

func (noLoader) Load(u string) (any, error) {
	return nil, errors.New("schemas outside the file are not read")
}

// compileSchema compiles root as JSON Schema 2020-12, unless it names another
// dialect that is known.
func compileSchema(root *node) (*jsonschema.Schema, error) {
	if cost := (coster{root: root, memo: make(map[*node]int)}).of(root); cost > maxInPlace {
		return nil, &schemaError{problem: "the schema's references and combinators multiply too often", hint: "make it simpler"}
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, root.value()); err != nil {
		return nil, &schemaError{problem: err.Error()}
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, explainSchema(err)
	}
	return compiled, nil
}

// A schemaError says where and why a schema does not compile.
type schemaError struct {
	path    []string // in the schema
	problem string
	hint    string
}

func (e *schemaError) Error() string { return e.problem }

func explainSchema(err error) *schemaError {
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			if leaves := leavesOf(v, nil); len(leaves) > 0 {
				l := leaves[0]
				return &schemaError{path: l.path, problem: l.text, hint: "see the JSON Schema 2020-12 specification for what this keyword takes"}
			}
		}
	}
	if e, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		out := &schemaError{problem: fmt.Sprintf("pattern %q cannot be checked here: %v", e.Regex, e.Err), hint: "use a pattern without look-around and back references"}
		if _, fragment, ok := strings.Cut(e.URL, "#"); ok {
			if fragment, err := url.PathUnescape(fragment); err == nil {
				out.path = splitPointer(fragment)
			}
		}
		return out
	}
	if e, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return &schemaError{problem: fmt.Sprintf("refers to %q, which is outside the file", strings.TrimPrefix(e.URL, schemaURL)), hint: "copy what it refers to into $defs"}
	}
	return &schemaError{problem: strings.ReplaceAll(err.Error(), schemaURL, ""), hint: "see the JSON Schema 2020-12 specification"}
}

// A leaf is one thing that a validator found.
type leaf struct {
	path []string // in the instance
	kind jsonschema.ErrorKind
	text string
}

// leavesOf returns what is wrong in the end, without the combinators on the
// way, in a stable order. secrets names values that must not be shown.
func leavesOf(v *jsonschema.ValidationError, secrets []string) []leaf {
	printer := message.NewPrinter(language.English)
	var out []leaf
	var walk func(*jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		if len(v.Causes) > 0 {
			for _, c := range v.Causes {
				walk(c)
			}
			return
		}
		l := leaf{path: v.InstanceLocation, kind: v.ErrorKind, text: v.ErrorKind.LocalizedString(printer)}
		if slices.ContainsFunc(l.path, func(tok string) bool {
			return slices.Contains(secrets, tok) || sensitiveName(tok)
		}) {
			l.text = "not valid (the value is secret and not shown)"
		}
		switch k := v.ErrorKind.(type) {
		case *kind.Required:
			slices.Sort(k.Missing)
			l.text = "missing " + quoted(k.Missing)
		case *kind.AdditionalProperties:
			slices.Sort(k.Properties)
			l.text = "unknown " + quoted(k.Properties)
		case *kind.FalseSchema:
			l.text = "not allowed here"
		}
		l.text = printable(l.text)
		const maxText = 300
		if len(l.text) > maxText {
			l.text = strings.ToValidUTF8(l.text[:maxText], "") + "…"
		}
		out = append(out, l)
	}
	walk(v)
	slices.SortFunc(out, func(a, b leaf) int {
		if c := strings.Compare(pointer(a.path), pointer(b.path)); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	return slices.CompactFunc(out, func(a, b leaf) bool {
		return a.text == b.text && slices.Equal(a.path, b.path)
	})
}

// printable escapes what a person would not see, or not where it is.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}

// maxInPlace is how many subschemas one value may have to be held against.
const maxInPlace = 10_000

// A coster counts the subschemas that apply to the same value as a schema
// does, as often as a validator visits them. Fifty schemas of which each
// refers twice to the next are a small file and 2^50 visits.
type coster struct {
	root *node
	memo map[*node]int // :: schema → visits; 0 while it is being computed (a cycle, which the validator detects)
}

func (c coster) of(s *node) int {
	if s == nil || s.kind != kindObject {
		return 1
	}
	if cost, ok := c.memo[s]; ok {
		return cost
	}
	c.memo[s] = 0
	sum := 1
	add := func(n *node) {
		if n != nil && sum <= maxInPlace {
			sum += c.of(n)
		}
	}
	add(localRef(c.root, s))
	for _, key := range []string{"not", "if", "then", "else"} {
		add(s.get(key))
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "dependentSchemas"} {
		if branches := s.get(key); branches != nil {
			for _, b := range branches.children() {
				add(b)
			}
		}
	}
	worst := sum
	// Subschemas for the values inside are visited once per visit of s.
	for _, key := range []string{"properties", "patternProperties", "$defs", "definitions", "prefixItems"} {
		if inner := s.get(key); inner != nil {
			for _, b := range inner.children() {
				worst = max(worst, c.of(b))
			}
		}
	}
	for _, key := range []string{"items", "contains", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames"} {
		if inner := s.get(key); inner != nil {
			worst = max(worst, c.of(inner))
		}
	}
	if worst > maxInPlace {
		sum = worst
	}
	c.memo[s] = sum
	return sum
}
