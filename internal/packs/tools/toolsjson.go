package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/schemas"
)

// A Loader parses files of tools. The zero value is ready, with the default
// limits; it must not be copied after first use. Safe for concurrent use.
type Loader struct {
	Limits Limits

	once  sync.Once
	shape *jsonschema.Schema // of one tool, out of the published schema; compiled at first use
}

func (l *Loader) toolShape() *jsonschema.Schema {
	l.once.Do(func() {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schemas.ToolsV1()))
		if err == nil {
			c := jsonschema.NewCompiler()
			c.UseLoader(noLoader{})
			if err = c.AddResource(schemas.ToolsV1ID, doc); err == nil {
				l.shape, err = c.Compile(schemas.ToolsV1ID + "#/$defs/tool")
			}
		}
		if err != nil {
			panic(fmt.Sprintf("the embedded schema of tools.json: %v", err)) // a test compiles it
		}
	})
	return l.shape
}

// ParseToolsJSON compiles the tools that src, the content of file, declares:
// {"tools": [...]} or a bare list. The set is nil exactly if one of the
// diagnostics is an error; each names the line, and the JSON pointer if there
// is one. Tools without a command that is understood are declared only.
func (l *Loader) ParseToolsJSON(file string, src []byte) (*Set, []diag.Diagnostic) {
	p := &parser{loader: l, file: file, limits: l.Limits.orDefault()}
	set := p.parse(src)
	if p.errors > 0 {
		set = nil
	}
	diag.Sort(p.found)
	if p.dropped > 0 {
		p.found = append(p.found, diag.Diagnostic{
			Code: CodeMore, Severity: diag.Info, File: file,
			Message: fmt.Sprintf("%d more problems are not shown", p.dropped), Hint: "mend these first",
		})
	}
	return set, p.found
}

func (p *parser) parse(src []byte) *Set {
	p.lines = []int{0}
	if len(src) > p.limits.Size {
		p.report(diag.Error, CodeTooLarge, nil,
			fmt.Sprintf("file has %d bytes, and at most %d are read", len(src), p.limits.Size), "move what is not a declaration of a tool out of it")
		return nil
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
		return nil
	}
	list, where, reason := toolList(root)
	if reason != "" {
		p.report(diag.Error, CodeNotAToolList, where, "not a list of tools: "+reason, `write {"tools": [...]}, or give this file another name if it is not about tools`)
		return nil
	}
	if len(list.items) > p.limits.Count {
		p.report(diag.Error, CodeTooMany, list, fmt.Sprintf("%d tools, and at most %d are read", len(list.items), p.limits.Count), "split the pack")
		return nil
	}
	set := &Set{Tools: []*Tool{}}
	p.names(list.items)
	for _, n := range list.items {
		if t := p.tool(src, n); t != nil {
			set.Tools = append(set.Tools, t)
		}
	}
	return set
}

// toolList finds the list of tools in root, or says why there is none, and
// where.
func toolList(root *node) (list, where *node, reason string) {
	switch root.kind {
	case kindList:
		list = root
	case kindObject:
		v := root.get("tools")
		switch {
		case v == nil:
			return nil, root, `it has no "tools"`
		case v.kind != kindList:
			return nil, v, fmt.Sprintf(`"tools" is %s, not a list`, v.kind)
		}
		list = v
	default:
		return nil, root, "it is " + root.kind.String()
	}
	callable := false
	for i, n := range list.items {
		switch {
		case n.kind != kindObject:
			return nil, n, fmt.Sprintf("entry %d is %s, not an object", i+1, n.kind)
		case n.get("name") == nil:
			return nil, n, fmt.Sprintf("entry %d has no name", i+1)
		}
		callable = callable || n.get("command") != nil || inputOf(n) != nil
	}
	// Lists of all kinds of things have names. Under "tools" they are taken
	// for tools; a bare list has to say so.
	if root.kind == kindList && len(list.items) > 0 && !callable {
		return nil, root, "nothing in it has a command or a schema"
	}
	return list, nil, ""
}

// inputKeys are the names under which an input schema is found.
var inputKeys = [...]string{"inputSchema", "input_schema", "parameters"}

func inputOf(tool *node) *node {
	for _, key := range inputKeys {
		if n := tool.get(key); n != nil {
			return n
		}
	}
	return nil
}

// tool compiles one declaration. It returns nil after an error.
func (p *parser) tool(src []byte, n *node) *Tool {
	before := p.errors
	command, why := commandOf(n)
	if why != "" && n.get("command") != nil {
		p.report(diag.Warning, CodeCommandNotUnderstood, n.get("command"), why+", so the tool is declared only",
			`write "command": {"program": "...", "args": ["..."]}`)
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
		Examples:    n.strs("examples"),
		Modes:       n.strs("modes"),
		File:        p.file,
	}
	t.Line, _ = p.position(n.start)
	p.description(n, t.Description)
	p.input(t, src, n, command != nil)
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
	return t
}

// commandOf returns the command of a tool, or why there is none that can be
// run. Nothing is guessed.
func commandOf(tool *node) (command *node, why string) {
	c := tool.get("command")
	switch {
	case c == nil:
		return nil, "it declares no command"
	case c.kind == kindList, c.kind == kindObject && c.get("program") != nil:
		return c, ""
	case c.kind == kindObject:
		return nil, `its command has no "program"`
	default:
		return nil, fmt.Sprintf("its command is %s", c.kind)
	}
}

// shape holds a tool against the published schema.
func (p *parser) shape(n, command *node) {
	value := n.value().(map[string]any)
	if command == nil {
		delete(value, "command")
	}
	for _, key := range inputKeys {
		if s := n.get(key); command == nil && s != nil && s.kind != kindObject {
			delete(value, key) // only warned about
		}
	}
	// Names have their own diagnostics, which say more than a pattern does.
	if name := n.get("name"); name.kind == kindText && !validName(name.text) {
		value["name"] = "x"
	}
	for _, name := range envNames(command) {
		if !validEnvName(name) {
			delete(value["command"].(map[string]any)["env"].(map[string]any), name)
		}
	}
	err := p.loader.toolShape().Validate(value)
	if err == nil {
		return
	}
	v, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		p.report(diag.Error, CodeShape, n, err.Error(), "")
		return
	}
	for _, l := range leavesOf(v, nil) {
		p.report(diag.Error, CodeShape, n.at(l.path), l.text, "see schemas/tools.v1.json for what belongs here")
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
	shape := p.loader.toolShape()
	p.unknown(n, shape)
	if command != nil && command.kind == kindObject {
		p.unknown(command, shape.Properties["command"].Else.Ref)
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
	for _, m := range n.members {
		if _, ok := shape.Properties[m.key]; !ok {
			p.report(diag.Warning, CodeUnknownKey, m.value, fmt.Sprintf("key %+q is not read", clip(m.key)), "remove it, or check its spelling")
		}
	}
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
	var s *node
	for _, key := range inputKeys {
		switch other := n.get(key); {
		case other != nil && s != nil:
			p.report(diag.Error, CodeSchemaTwice, other, fmt.Sprintf("both %q and %q are there", s.key, key), "keep inputSchema")
		case other != nil:
			s = other
		}
	}
	severity, code := diag.Error, CodeSchemaInvalid
	if !runs {
		severity, code = diag.Warning, CodeSchemaNotRead
	}
	raw := json.RawMessage(emptyInput)
	if s != nil && !isObjectSchema(s) {
		p.report(severity, code, s, `the schema of arguments must be an object schema`, `write {"type": "object", "properties": {...}}`)
		if runs {
			return
		}
		s = nil
	}
	if s != nil {
		raw = slices.Clone(src[s.start:s.end])
	}
	in, err := parseInputSchema(raw)
	if err != nil {
		p.schema(severity, code, s, err)
		if runs {
			return
		}
		raw = json.RawMessage(emptyInput)
		if in, err = parseInputSchema(raw); err != nil {
			panic(err) // it is a constant
		}
	}
	t.InputSchema, t.input = raw, in
	m := &meter{}
	for i := range in.params {
		if runs && !p.preset(s, &in.params[i], m) {
			return
		}
	}
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
	e, ok := errors.AsType[*schemaError](err)
	if !ok {
		e = &schemaError{problem: err.Error()}
	}
	p.report(severity, code, s.at(e.path), e.problem, e.hint)
}

// preset refuses a default that no caller could give: it would reach the
// program unchecked. It reports false when defaults take too long to check.
func (p *parser) preset(schema *node, param *param, m *meter) bool {
	if param.preset == nil {
		return true
	}
	// Every call gets a copy of every default.
	m.spent += (param.preset.end - param.preset.start) / 16
	if param.preset.depth() > maxArgumentsDepth || !m.allows(param.compiled, param.preset) {
		p.report(diag.Error, CodeSchemaInvalid, schema.at([]string{"properties", param.name, "default"}),
			"defaults of the schema take too long to check", "make them shorter and less nested, or the schema simpler")
		return false
	}
	if err := param.compiled.Validate(param.preset.value()); err != nil {
		where := schema.at([]string{"properties", param.name, "default"})
		p.report(diag.Error, CodeDefaultInvalid, where, fmt.Sprintf("the default of %+q is not valid under its own schema", clip(param.name)), "change the default or the schema")
	}
	return true
}

func (p *parser) policy(n *node) Policy {
	policy := Policy{
		ReadOnly:  n.isTrue("read_only"),
		AlwaysAsk: n.isTrue("confirm_before_run"),
		Network:   NetworkNone,
	}
	requires := n.get("requires_network")
	if requires != nil && requires.truth {
		policy.Network = NetworkFull
	}
	if network := n.str("network"); network != "" {
		policy.Network = Network(network)
		if requires != nil && requires.truth != (policy.Network != NetworkNone) {
			p.report(diag.Error, CodePolicyConflict, n.get("network"), fmt.Sprintf("network is %q, and requires_network says otherwise", network), "keep network")
		}
	}
	if secs := n.get("timeout_secs"); secs != nil {
		policy.Timeout = time.Duration(integer(secs)) * time.Second
	}
	if codes := n.get("allowed_exit_codes"); codes != nil {
		for _, c := range codes.items {
			policy.AllowedExitCodes = append(policy.AllowedExitCodes, integer(c))
		}
		slices.Sort(policy.AllowedExitCodes)
		policy.AllowedExitCodes = slices.Compact(policy.AllowedExitCodes)
	}
	return policy
}

// integer reads a number that the shape says is a small integer; it may be
// written 6e1.
func integer(n *node) int {
	i, err := strconv.Atoi(shortNumber(n.text))
	if err != nil {
		return 0
	}
	return i
}

func (p *parser) output(n *node) Output {
	if n == nil {
		return Output{}
	}
	o := Output{
		Format:       n.str("format"),
		ExtractField: n.str("extract_field"),
		Template:     n.str("template"),
		Speak:        n.isTrue("speak"),
		Merged:       n.isTrue("merged"),
	}
	if limit := n.get("max_chars"); limit != nil {
		o.MaxChars = integer(limit)
	}
	if o.Template != "" {
		at := n.get("template")
		a, ok := p.template(at)
		for _, piece := range a.pieces {
			if ok && piece.form != literal && (piece.name != outputName || piece.form == spread || piece.form == option) {
				p.report(diag.Error, CodePlaceholderUnknown, at, fmt.Sprintf("the template has %s, and only {{output}} stands for something", piece), "write {{output}}, or {{{{ for a literal {{")
			}
		}
	}
	return o
}
