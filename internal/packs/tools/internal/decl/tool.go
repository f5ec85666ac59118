package decl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/jsontree"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/toolname"
)

// Tools compiles declarations, which are nodes of src.
func (p *Parser) Tools(src []byte, list []*jsontree.Node) *tools.Set {
	p.Names(list)
	set := &tools.Set{Tools: []*tools.Tool{}}
	for _, n := range list {
		if t := p.tool(src, n); t != nil {
			set.Tools = append(set.Tools, t)
		}
	}
	return set
}

// tool compiles one declaration. It returns nil after an error.
func (p *Parser) tool(src []byte, n *jsontree.Node) *tools.Tool {
	before := p.Errors
	command, why := CommandOf(n)
	if why != "" && n.Get("command") != nil {
		p.Report(diag.Warning, tools.CodeCommandNotUnderstood, n.Get("command"), why+", so the tool is declared only",
			`write "command": {"program": "...", "args": ["..."]}`)
	}
	if p.dialect.WantsCommand && n.Get("command") == nil {
		p.Report(diag.Warning, tools.CodeCommandMissing, n, "no command, so the tool is declared only", `write "command": {"program": "...", "args": ["..."]}`)
	}
	p.shape(n, command)
	p.unknownKeys(n, command)
	if p.Errors > before {
		return nil
	}

	t := &tools.Tool{
		Name:        n.StringAt("name"),
		Title:       n.StringAt("title"),
		Description: n.StringAt("description"),
		Version:     n.StringAt("version"),
		Examples:    n.StringsAt("examples"),
		Modes:       n.StringsAt("modes"),
		File:        p.File,
	}
	t.Line, _ = p.Position(n.Start)
	p.Description(n, t.Description)
	p.input(t, src, n, command != nil)
	if !p.dialect.Flat {
		p.sources(t, src, n.Get("sources"))
	}
	p.outputSchema(t, src, n.Get("outputSchema"), command != nil)
	t.Policy = p.policy(n.Get("policy"))
	t.Output = p.output(n.Get("output"))
	if command == nil {
		t.DeclaredOnly = why
	} else if t.Input != nil {
		t.Command = p.command(command, t)
	}
	if p.Errors > before {
		return nil
	}
	if t.Command != nil {
		p.unused(t, n)
	}
	return t
}

// unused warns of parameters that do not reach the program.
func (p *Parser) unused(t *tools.Tool, n *jsontree.Node) {
	if t.Command.Stdin == tools.StdinJSON {
		return
	}
	used := make(map[string]bool)
	for _, a := range t.Command.Templates() {
		for _, name := range a.Names() {
			used[name] = true
		}
	}
	var names []string
	for _, param := range t.Input.Params {
		if !used[param.Name] {
			names = append(names, param.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	at := InputOf(n)
	if at == nil {
		at = n
	}
	p.Report(diag.Warning, tools.CodeParameterUnused, at, fmt.Sprintf("the program never gets %s: no placeholder says where", phrase.Quoted(names)),
		`write {{NAME}} in the command, or add "stdin": "json" to it`)
}

// Shape holds a tool against the published schema.
func (p *Parser) shape(n, command *jsontree.Node) {
	value := n.Value().(map[string]any)
	if command == nil {
		delete(value, "command")
	}
	for _, key := range inputKeys {
		if s := n.Get(key); s != nil && (command == nil && s.Kind != jsontree.Object || p.dialect.Flat && isSchema(s)) {
			delete(value, key) // only warned about
		}
	}
	// Names have their own diagnostics, which say more than a pattern does.
	if name := n.Get("name"); name.Kind == jsontree.Text && !toolname.Valid(name.Text) {
		value["name"] = "x"
	}
	if cache := n.Get("policy").Get("cache"); cache != nil && cache.Kind == jsontree.Text {
		value["policy"].(map[string]any)["cache"] = "x"
	}
	for _, name := range envNames(command) {
		if !ValidEnvName(name) {
			delete(value["command"].(map[string]any)["env"].(map[string]any), name)
		}
	}
	err := p.dialect.Shape().Validate(value)
	if err == nil {
		return
	}
	v, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		p.Report(diag.Error, tools.CodeShape, n, err.Error(), "")
		return
	}
	for _, l := range schema.Leaves(v, nil) {
		p.Report(diag.Error, tools.CodeShape, n.At(l.Path), l.Text, "see "+p.dialect.Published+" for what belongs here")
	}
}

func envNames(command *jsontree.Node) []string {
	env := command.Get("env")
	if env == nil || env.Kind != jsontree.Object {
		return nil
	}
	var names []string
	for _, m := range env.Members {
		names = append(names, m.Key)
	}
	return names
}

// unknownKeys warns about keys that the published schema does not have.
func (p *Parser) unknownKeys(n, command *jsontree.Node) {
	shape := p.dialect.Shape()
	p.unknown(n, shape)
	if command != nil && command.Kind == jsontree.Object {
		object := shape.Properties["command"]
		if object.Else != nil {
			object = object.Else
		}
		p.unknown(command, object.Ref)
	}
	for _, key := range []string{"policy", "output"} {
		if v := n.Get(key); v != nil && v.Kind == jsontree.Object {
			p.unknown(v, shape.Properties[key].Ref)
		}
	}
	if a := n.Get("annotations"); a != nil {
		p.Report(diag.Warning, tools.CodeAnnotationsIgnored, a, "annotations are not read: a pack does not say of itself that it is safe",
			`remove them; "policy": {"read_only": true} tells what the tool means to do`)
	}
}

func (p *Parser) unknown(n *jsontree.Node, shape *jsonschema.Schema) {
	known := slices.Sorted(maps.Keys(shape.Properties))
	for _, m := range n.Members {
		if _, ok := shape.Properties[m.Key]; !ok && !ofFunction(n, m) {
			hint := "remove it, or check its spelling"
			if meant := near.Names(m.Key, known, 1); len(meant) > 0 && len(m.Key) > 2 && n.Get(meant[0]) == nil {
				hint = fmt.Sprintf("did you mean %q? Otherwise remove it", meant[0])
			}
			p.Report(diag.Warning, tools.CodeUnknownKey, m.Value, fmt.Sprintf("key %+q is not read", phrase.Clip(m.Key)), hint)
		}
	}
}

// ofFunction reports whether m belongs to the way in which OpenAI's clients
// write functions.
func ofFunction(tool *jsontree.Node, m jsontree.Member) bool {
	return m.Key == "type" && m.Value.Text == "function" || m.Key == "strict" && m.Value.Kind == jsontree.Boolean ||
		m.Key == "schema" && m.Value == objectSchema(tool)
}

// Description reports a missing description, and one of which models see a part.
func (p *Parser) Description(n *jsontree.Node, s string) {
	at := n.Get("description")
	if strings.TrimSpace(s) == "" {
		if at == nil {
			at = n
		}
		p.Report(diag.Warning, tools.CodeDescriptionMissing, at, "no description, so a model cannot know when to use the tool", "say in a sentence or two what it does and when to use it")
		return
	}
	if count := utf8.RuneCountInString(s); count > p.Limits.Description {
		p.Report(diag.Warning, tools.CodeDescriptionLong, at,
			fmt.Sprintf("description has %d characters, of which models see the first %d", count, p.Limits.Description), "move details into the pack's documents")
	}
}

// Input reads the input schema. On an error, t.input stays nil.
func (p *Parser) input(t *tools.Tool, src []byte, n *jsontree.Node, runs bool) {
	s := InputOf(n)
	for _, key := range inputKeys {
		if other := n.Get(key); other != nil && other != s {
			p.Report(diag.Error, tools.CodeSchemaTwice, other, fmt.Sprintf("both %q and %q are there", s.Key, key), "keep "+s.Key)
		}
	}
	severity, code := diag.Error, tools.CodeSchemaInvalid
	if !runs {
		severity, code = diag.Warning, tools.CodeSchemaNotRead
	}
	raw, at := json.RawMessage(schema.Empty), schemaAt(n)
	switch {
	case p.dialect.Flat && (s == nil || s.Kind == jsontree.Object && len(s.Members) == 0):
		raw = p.flat(t, &jsontree.Node{Kind: jsontree.Object}, severity)
	case s == nil:
	case isFlat(s):
		raw, at = p.flat(t, s, severity), flatAt(s, 1)
	case !isObjectSchema(s):
		p.Report(severity, code, s, `the schema of arguments must be an object schema`, `write {"type": "object", "properties": {...}}`)
		if runs {
			return
		}
	default:
		if p.dialect.Flat && isSchema(s) {
			p.Report(diag.Warning, tools.CodeNotFlat, s, "parameters are a JSON Schema, and in a tool pack they are a flat map",
				`write {"x": {"type": "string", "required": true}}`)
		}
		raw, at = slices.Clone(src[s.Start:s.End]), schemaAt(s)
	}
	in, err := schema.Parse(raw)
	if err != nil {
		p.schemaProblem(severity, code, at, err)
		if runs {
			return
		}
		t.Sources = nil
		raw = json.RawMessage(schema.Empty)
		if in, err = schema.Parse(raw); err != nil {
			panic(err) // it is a constant
		}
	}
	t.InputSchema, t.Input = raw, in
	m := &schema.Meter{}
	for i := range in.Params {
		if runs && !p.preset(at, &in.Params[i], m) {
			return
		}
	}
}

// isSchema reports whether s is a JSON Schema of arguments, where a flat map
// is expected.
func isSchema(s *jsontree.Node) bool {
	return isObjectSchema(s) && !isFlat(s) && (s.Get("type") != nil || s.Get("properties") != nil)
}

func isObjectSchema(s *jsontree.Node) bool {
	if s.Kind != jsontree.Object {
		return false
	}
	typ := s.Get("type")
	return typ == nil || typ.Text == "object" || slices.Contains(s.StringsAt("type"), "object")
}

// outputSchema keeps the schema of what the program prints, if it is one.
func (p *Parser) outputSchema(t *tools.Tool, src []byte, s *jsontree.Node, runs bool) {
	if s == nil {
		return
	}
	raw := slices.Clone(src[s.Start:s.End])
	root, e := jsontree.Parse(raw)
	if e != nil {
		panic(e) // it was read before
	}
	if _, err := schema.Compile(root); err == nil {
		t.OutputSchema = raw
	} else if runs {
		p.Schema(diag.Error, tools.CodeSchemaInvalid, s, err)
	} else {
		p.Schema(diag.Warning, tools.CodeSchemaNotRead, s, err)
	}
}

// Schema reports why s does not compile.
func (p *Parser) Schema(severity diag.Severity, code string, s *jsontree.Node, err error) {
	p.schemaProblem(severity, code, schemaAt(s), err)
}

// schemaProblem reports why the schema at a place does not compile.
func (p *Parser) schemaProblem(severity diag.Severity, code string, at place, err error) {
	e, ok := errors.AsType[*schema.Error](err)
	if !ok {
		e = &schema.Error{Problem: err.Error()}
	}
	p.Report(severity, code, at(e.Path), e.Problem, e.Hint)
}

// Preset refuses a default that no caller could give: it would reach the
// program unchecked. It reports false when defaults take too long to check.
func (p *Parser) preset(at place, param *schema.Param, m *schema.Meter) bool {
	if param.Preset == nil {
		return true
	}
	// Every call gets a copy of every default.
	m.Spent += (param.Preset.End - param.Preset.Start) / 16
	if param.Preset.Depth() > schema.MaxDepth || !m.Allows(param.Compiled, param.Preset) {
		p.Report(diag.Error, tools.CodeSchemaInvalid, at([]string{"properties", param.Name, "default"}),
			"defaults of the schema take too long to check", "make them shorter and less nested, or the schema simpler")
		return false
	}
	if err := param.Compiled.Validate(param.Preset.Value()); err != nil {
		where := at([]string{"properties", param.Name, "default"})
		p.Report(diag.Error, tools.CodeDefaultInvalid, where, fmt.Sprintf("the default of %+q is not valid under its own schema", phrase.Clip(param.Name)), "change the default or the schema")
	}
	return true
}
