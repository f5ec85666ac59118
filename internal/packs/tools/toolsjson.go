package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/schemas"
)

// A Loader parses files of tools. The zero value is ready, with the default
// limits; it must not be copied after first use. Safe for concurrent use.
type Loader struct {
	Limits Limits

	listed, packed shape // of one tool, in a tools.json and in a *.tool.json
}

// A shape is what a published schema says of one tool, compiled at first use.
type shape struct {
	once   sync.Once
	schema *jsonschema.Schema
}

func (s *shape) get(text, id, fragment string) *jsonschema.Schema {
	s.once.Do(func() {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			c := jsonschema.NewCompiler()
			c.UseLoader(noLoader{})
			if err = c.AddResource(id, doc); err == nil {
				s.schema, err = c.Compile(id + fragment)
			}
		}
		if err != nil {
			panic(fmt.Sprintf("the embedded schema %s: %v", id, err)) // a test compiles it
		}
	})
	return s.schema
}

// toolShape returns what the published schema of the file says of one tool.
func (p *parser) toolShape() *jsonschema.Schema {
	if p.toolPack {
		return p.loader.packed.get(schemas.ToolPackV1(), schemas.ToolPackV1ID, "")
	}
	return p.loader.listed.get(schemas.ToolsV1(), schemas.ToolsV1ID, "#/$defs/tool")
}

// ParseToolsJSON compiles the tools that src, the content of file, declares:
// {"tools": [...]}, a bare list, or one of the shapes in which other programs
// write such a list. The set is nil exactly if one of the diagnostics is an
// error; each names the line, and the JSON pointer if there is one. Tools
// without a command that is understood are declared only.
func (l *Loader) ParseToolsJSON(file string, src []byte) (*Set, []diag.Diagnostic) {
	p := &parser{loader: l, file: file, limits: l.Limits.orDefault()}
	return p.finish(p.parse(src))
}

// Names returns the names of the tools that src, the content of file, seems to
// declare, without compiling any: a file named tools.json is a list of them, any
// other is one tool. It is for finding them. What is wrong with a file is not said,
// and of one whose tools cannot be told there are none.
func (l *Loader) Names(file string, src []byte) []string {
	p := &parser{loader: l, file: file, limits: l.Limits.orDefault()}
	_, root := p.read(src)
	if root == nil {
		return nil
	}
	list := []*node{root}
	if FormatOf(file) == ToolsJSON {
		found, err := toolList(root)
		if err != nil {
			return nil
		}
		list = found.tools[:min(len(found.tools), p.limits.Count)]
	}
	var names []string
	for _, n := range list {
		if name := n.str("name"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// finish returns what was parsed, unless there was an error, and what was
// found.
func (p *parser) finish(set *Set) (*Set, []diag.Diagnostic) {
	if p.errors > 0 {
		set = nil
	}
	diag.Sort(p.found)
	if p.dropped > 0 {
		p.found = append(p.found, diag.Diagnostic{
			Code: CodeMore, Severity: diag.Info, File: p.file,
			Message: fmt.Sprintf("%d more problems are not shown", p.dropped), Hint: "mend these first",
		})
	}
	return set, p.found
}

// read reads the JSON of a file, or reports why it cannot, and then root is
// nil. The text it returns is what the offsets of nodes are in.
func (p *parser) read(src []byte) (text []byte, root *node) {
	p.lines = []int{0}
	if len(src) > p.limits.Size {
		p.report(diag.Error, CodeTooLarge, nil,
			fmt.Sprintf("file has %d bytes, and at most %d are read", len(src), p.limits.Size), "move what is not a declaration of a tool out of it")
		return nil, nil
	}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	for i, c := range src {
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	root, e := parseJSON(src)
	if e != nil {
		d := diag.Diagnostic{Code: e.code, Severity: diag.Error, File: p.file, Message: e.problem, Hint: e.hint}
		d.Line, d.Column = p.position(e.offset)
		p.add(d)
		return nil, nil
	}
	return src, root
}

func (p *parser) parse(src []byte) *Set {
	src, root := p.read(src)
	if root == nil {
		return nil
	}
	list, err := toolList(root)
	if err != nil {
		p.report(diag.Error, CodeNotAToolList, err.where, "not a list of tools: "+err.reason, `write {"tools": [...]}, or give this file another name if it is not about tools`)
		return nil
	}
	if len(list.tools) > p.limits.Count {
		p.report(diag.Error, CodeTooMany, list.node, fmt.Sprintf("%d tools, and at most %d are read", len(list.tools), p.limits.Count), "split the pack")
		return nil
	}
	set := &Set{Tools: []*Tool{}}
	for _, n := range list.extra {
		p.report(diag.Warning, CodeUnknownKey, n, fmt.Sprintf("key %+q is not read: the function has it, too", clip(n.key)), "keep one of them")
	}
	p.names(list.tools)
	for _, n := range list.tools {
		if t := p.tool(src, n); t != nil {
			set.Tools = append(set.Tools, t)
		}
	}
	return set
}

// tool compiles one declaration. It returns nil after an error.
func (p *parser) tool(src []byte, n *node) *Tool {
	before := p.errors
	command, why := commandOf(n)
	if why != "" && n.get("command") != nil {
		p.report(diag.Warning, CodeCommandNotUnderstood, n.get("command"), why+", so the tool is declared only",
			`write "command": {"program": "...", "args": ["..."]}`)
	}
	if p.toolPack && n.get("command") == nil {
		p.report(diag.Warning, CodeCommandMissing, n, "no command, so the tool is declared only", `write "command": {"program": "...", "args": ["..."]}`)
	}
	p.shape(n, command)
	p.unknownKeys(n, command)
	if p.errors > before {
		return nil
	}

	t := &Tool{
		Name:        n.str("name"),
		Title:       n.str("title"),
		Description: n.str("description"),
		Version:     n.str("version"),
		Examples:    n.strs("examples"),
		Modes:       n.strs("modes"),
		File:        p.file,
	}
	t.Line, _ = p.position(n.start)
	p.description(n, t.Description)
	p.input(t, src, n, command != nil)
	if !p.toolPack {
		p.sources(t, src, n.get("sources"))
	}
	p.outputSchema(t, src, n.get("outputSchema"), command != nil)
	t.Policy = p.policy(n.get("policy"))
	t.Output = p.output(n.get("output"))
	if command == nil {
		t.DeclaredOnly = why
	} else if t.input != nil {
		t.Command = p.command(command, t.input)
	}
	if p.errors > before {
		return nil
	}
	if t.Command != nil {
		p.unused(t, n)
	}
	return t
}

// unused warns of parameters that do not reach the program.
func (p *parser) unused(t *Tool, n *node) {
	if t.Command.Stdin == stdinJSON {
		return
	}
	used := make(map[string]bool)
	for _, a := range t.Command.templates() {
		for _, name := range a.names() {
			used[name] = true
		}
	}
	var names []string
	for _, param := range t.input.params {
		if !used[param.name] {
			names = append(names, param.name)
		}
	}
	if len(names) == 0 {
		return
	}
	at := inputOf(n)
	if at == nil {
		at = n
	}
	p.report(diag.Warning, CodeParameterUnused, at, fmt.Sprintf("the program never gets %s: no placeholder says where", quoted(names)),
		`write {{NAME}} in the command, or add "stdin": "json" to it`)
}

// shape holds a tool against the published schema.
func (p *parser) shape(n, command *node) {
	value := n.value().(map[string]any)
	if command == nil {
		delete(value, "command")
	}
	for _, key := range inputKeys {
		if s := n.get(key); s != nil && (command == nil && s.kind != kindObject || p.toolPack && isSchema(s)) {
			delete(value, key) // only warned about
		}
	}
	// Names have their own diagnostics, which say more than a pattern does.
	if name := n.get("name"); name.kind == kindText && !validName(name.text) {
		value["name"] = "x"
	}
	if cache := n.get("policy").get("cache"); cache != nil && cache.kind == kindText {
		value["policy"].(map[string]any)["cache"] = "x"
	}
	for _, name := range envNames(command) {
		if !validEnvName(name) {
			delete(value["command"].(map[string]any)["env"].(map[string]any), name)
		}
	}
	err := p.toolShape().Validate(value)
	if err == nil {
		return
	}
	v, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		p.report(diag.Error, CodeShape, n, err.Error(), "")
		return
	}
	published := "schemas/tools.v1.json"
	if p.toolPack {
		published = "schemas/tool-pack.v1.json"
	}
	for _, l := range leavesOf(v, nil) {
		p.report(diag.Error, CodeShape, n.at(l.path), l.text, "see "+published+" for what belongs here")
	}
}

func envNames(command *node) []string {
	env := command.get("env")
	if env == nil || env.kind != kindObject {
		return nil
	}
	var names []string
	for _, m := range env.members {
		names = append(names, m.key)
	}
	return names
}

// unknownKeys warns about keys that the published schema does not have.
func (p *parser) unknownKeys(n, command *node) {
	shape := p.toolShape()
	p.unknown(n, shape)
	if command != nil && command.kind == kindObject {
		object := shape.Properties["command"]
		if object.Else != nil {
			object = object.Else
		}
		p.unknown(command, object.Ref)
	}
	for _, key := range []string{"policy", "output"} {
		if v := n.get(key); v != nil && v.kind == kindObject {
			p.unknown(v, shape.Properties[key].Ref)
		}
	}
	if a := n.get("annotations"); a != nil {
		p.report(diag.Warning, CodeAnnotationsIgnored, a, "annotations are not read: a pack does not say of itself that it is safe",
			`remove them; "policy": {"read_only": true} tells what the tool means to do`)
	}
}

func (p *parser) unknown(n *node, shape *jsonschema.Schema) {
	known := slices.Sorted(maps.Keys(shape.Properties))
	for _, m := range n.members {
		if _, ok := shape.Properties[m.key]; !ok && !ofFunction(n, m) {
			hint := "remove it, or check its spelling"
			if meant := near.Names(m.key, known, 1); len(meant) > 0 && len(m.key) > 2 && n.get(meant[0]) == nil {
				hint = fmt.Sprintf("did you mean %q? Otherwise remove it", meant[0])
			}
			p.report(diag.Warning, CodeUnknownKey, m.value, fmt.Sprintf("key %+q is not read", clip(m.key)), hint)
		}
	}
}

// ofFunction reports whether m belongs to the way in which OpenAI's clients
// write functions.
func ofFunction(tool *node, m member) bool {
	return m.key == "type" && m.value.text == "function" || m.key == "strict" && m.value.kind == kindBoolean ||
		m.key == "schema" && m.value == objectSchema(tool)
}

func (p *parser) description(n *node, s string) {
	at := n.get("description")
	if strings.TrimSpace(s) == "" {
		if at == nil {
			at = n
		}
		p.report(diag.Warning, CodeDescriptionMissing, at, "no description, so a model cannot know when to use the tool", "say in a sentence or two what it does and when to use it")
		return
	}
	if count := utf8.RuneCountInString(s); count > p.limits.Description {
		p.report(diag.Warning, CodeDescriptionLong, at,
			fmt.Sprintf("description has %d characters, of which models see the first %d", count, p.limits.Description), "move details into the pack's documents")
	}
}

// input reads the input schema. On an error, t.input stays nil.
func (p *parser) input(t *Tool, src []byte, n *node, runs bool) {
	s := inputOf(n)
	for _, key := range inputKeys {
		if other := n.get(key); other != nil && other != s {
			p.report(diag.Error, CodeSchemaTwice, other, fmt.Sprintf("both %q and %q are there", s.key, key), "keep "+s.key)
		}
	}
	severity, code := diag.Error, CodeSchemaInvalid
	if !runs {
		severity, code = diag.Warning, CodeSchemaNotRead
	}
	raw, at := json.RawMessage(emptyInput), schemaAt(n)
	switch {
	case p.toolPack && (s == nil || s.key == flatKey && s.kind == kindObject && len(s.members) == 0):
		raw = p.flat(t, &node{kind: kindObject}, severity)
	case s == nil:
	case isFlat(s), p.toolPack && s.key == flatKey && s.kind == kindObject && !isSchema(s):
		raw, at = p.flat(t, s, severity), flatAt(s, 1)
	case !isObjectSchema(s):
		p.report(severity, code, s, `the schema of arguments must be an object schema`, `write {"type": "object", "properties": {...}}`)
		if runs {
			return
		}
	default:
		if p.toolPack && s.key == flatKey && isSchema(s) {
			p.report(diag.Warning, CodeNotFlat, s, "parameters are a JSON Schema, and in a tool pack they are a flat map",
				`write {"x": {"type": "string", "required": true}}, or call it inputSchema`)
		}
		raw, at = slices.Clone(src[s.start:s.end]), schemaAt(s)
	}
	in, err := parseInputSchema(raw)
	if err != nil {
		p.schemaProblem(severity, code, at, err)
		if runs {
			return
		}
		t.Sources = nil
		raw = json.RawMessage(emptyInput)
		if in, err = parseInputSchema(raw); err != nil {
			panic(err) // it is a constant
		}
	}
	t.InputSchema, t.input = raw, in
	in.sources = t.Sources
	m := &meter{}
	for i := range in.params {
		if runs && !p.preset(at, &in.params[i], m) {
			return
		}
	}
}

// isSchema reports whether s is a JSON Schema of arguments, where a flat map
// is expected.
func isSchema(s *node) bool {
	return isObjectSchema(s) && !isFlat(s) && (s.get("type") != nil || s.get("properties") != nil)
}

func isObjectSchema(s *node) bool {
	if s.kind != kindObject {
		return false
	}
	typ := s.get("type")
	return typ == nil || typ.text == "object" || slices.Contains(s.strs("type"), "object")
}

// outputSchema keeps the schema of what the program prints, if it is one.
func (p *parser) outputSchema(t *Tool, src []byte, s *node, runs bool) {
	if s == nil {
		return
	}
	raw := slices.Clone(src[s.start:s.end])
	root, e := parseJSON(raw)
	if e != nil {
		panic(e) // it was read before
	}
	if _, err := compileSchema(root); err == nil {
		t.OutputSchema = raw
	} else if runs {
		p.schema(diag.Error, CodeSchemaInvalid, s, err)
	} else {
		p.schema(diag.Warning, CodeSchemaNotRead, s, err)
	}
}

// schema reports why s does not compile.
func (p *parser) schema(severity diag.Severity, code string, s *node, err error) {
	p.schemaProblem(severity, code, schemaAt(s), err)
}

// schemaProblem reports why the schema at a place does not compile.
func (p *parser) schemaProblem(severity diag.Severity, code string, at place, err error) {
	e, ok := errors.AsType[*schemaError](err)
	if !ok {
		e = &schemaError{problem: err.Error()}
	}
	p.report(severity, code, at(e.path), e.problem, e.hint)
}

// preset refuses a default that no caller could give: it would reach the
// program unchecked. It reports false when defaults take too long to check.
func (p *parser) preset(at place, param *param, m *meter) bool {
	if param.preset == nil {
		return true
	}
	// Every call gets a copy of every default.
	m.spent += (param.preset.end - param.preset.start) / 16
	if param.preset.depth() > maxArgumentsDepth || !m.allows(param.compiled, param.preset) {
		p.report(diag.Error, CodeSchemaInvalid, at([]string{"properties", param.name, "default"}),
			"defaults of the schema take too long to check", "make them shorter and less nested, or the schema simpler")
		return false
	}
	if err := param.compiled.Validate(param.preset.value()); err != nil {
		where := at([]string{"properties", param.name, "default"})
		p.report(diag.Error, CodeDefaultInvalid, where, fmt.Sprintf("the default of %+q is not valid under its own schema", clip(param.name)), "change the default or the schema")
	}
	return true
}
