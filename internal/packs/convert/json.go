package convert

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
	"github.com/packs-mcp/packs-mcp/schemas"
)

// An object is a JSON object with its members in order.
type object []field

type field struct {
	key   string
	value any
}

func (o *object) add(key string, value any) { *o = append(*o, field{key, value}) }

// addIf adds a member if when is true.
func (o *object) addIf(when bool, key string, value any) {
	if when {
		o.add(key, value)
	}
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	var w strictjson.Writer
	w.Open('{')
	for _, f := range o {
		raw, ok := f.value.(json.RawMessage)
		if !ok {
			raw = strictjson.Canonical(f.value)
		}
		w.Member(f.key, raw)
	}
	w.Close('}')
	return w.Bytes(), nil
}

// indented encodes v as a file for people to read.
func indented(v any) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, strictjson.Canonical(v), "", "  "); err != nil {
		panic("encoding a tool: " + err.Error()) // all of it was read as JSON or text
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// toolsJSON writes a tools.json.
func toolsJSON(list []*tools.Tool) []byte {
	all := make([]object, len(list))
	for i, t := range list {
		var o object
		o.add("name", t.Name)
		o.addIf(t.Title != "", "title", t.Title)
		o.addIf(t.Description != "", "description", t.Description)
		o.addIf(t.Version != "", "version", t.Version)
		o.addIf(len(t.InputSchema) > 0, "inputSchema", t.InputSchema)
		o.addIf(t.OutputSchema != nil, "outputSchema", t.OutputSchema)
		o.addIf(len(t.Sources) > 0, "sources", sources(t))
		o.addIf(t.Command != nil, "command", command(t.Command))
		policy := policyOf(t.Policy, false)
		o.addIf(len(policy) > 0, "policy", policy)
		output := outputOf(t.Output, false)
		o.addIf(len(output) > 0, "output", output)
		o.addIf(len(t.Examples) > 0, "examples", t.Examples)
		o.addIf(len(t.Modes) > 0, "modes", t.Modes)
		all[i] = o
	}
	return indented(object{{"$schema", schemas.ToolsV1ID}, {"tools", all}})
}

// sources writes where values come from, in the form of a tools.json.
func sources(t *tools.Tool) object {
	var all object
	for _, name := range slices.Sorted(maps.Keys(t.Sources)) {
		s := t.Sources[name]
		o := object{{"from", s.From}}
		o.addIf(s.Required, "required", true)
		o.addIf(s.From == tools.SourceLiteral, "value", s.Value)
		all.add(name, o)
	}
	return all
}

// toolPack writes a *.tool.json.
func toolPack(t *tools.Tool) []byte {
	o := object{{"$schema", schemas.ToolPackV1ID}}
	o.add("name", t.Name)
	o.addIf(t.Title != "", "title", t.Title)
	o.addIf(t.Description != "", "description", t.Description)
	o.addIf(t.Version != "", "version", t.Version)
	o.addIf(len(t.Modes) > 0, "modes", t.Modes)
	o.addIf(len(t.Examples) > 0, "examples", t.Examples)
	if params, ok := flat(t); ok {
		o.add("parameters", params)
	} else {
		o.add("inputSchema", t.InputSchema) // a flat map cannot express it
	}
	o.addIf(t.OutputSchema != nil, "outputSchema", t.OutputSchema)
	o.addIf(t.Command != nil, "command", command(specSpelled(t.Command)))
	o.add("policy", policyOf(t.Policy, true))
	o.add("output", outputOf(t.Output, true))
	return indented(o)
}

// flat writes the schema of a tool's arguments as the flat map of a tool pack, if it
// has only what that can express: properties, and which of them are required.
func flat(t *tools.Tool) (object, bool) {
	top, ok := members(t.InputSchema)
	if !ok {
		return nil, false
	}
	var schema struct {
		Type                 string
		Properties           json.RawMessage
		Required             []string
		AdditionalProperties *bool
	}
	for _, m := range top {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties"}, m.key) {
			return nil, false
		}
	}
	if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
		return nil, false
	}
	if schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		return nil, false // a flat map allows no additional properties
	}
	properties, _ := members(schema.Properties)
	var params object
	for _, p := range properties {
		keys, ok := members(p.value.(json.RawMessage))
		if !ok {
			return nil, false
		}
		var param object
		for _, k := range keys {
			if k.key == "required" || k.key == "source" {
				return nil, false // a JSON Schema keyword that means something else in a flat map
			}
			param = append(param, k)
		}
		s := t.Sources[p.key]
		param.addIf(slices.Contains(schema.Required, p.key) || s.Required, "required", true)
		param.addIf(s.From != "", "source", s.From)
		params.add(p.key, param)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Sources)) {
		if s := t.Sources[name]; s.From == tools.SourceLiteral {
			params.add(name, object{{"default", s.Value}, {"source", s.From}})
		}
	}
	if params == nil {
		params = object{}
	}
	return params, true
}

// members returns the members of a JSON object in order, their values as
// [json.RawMessage].
func members(raw json.RawMessage) (object, bool) {
	root, e := strictjson.Parse(raw)
	if e != nil || root.Kind != strictjson.Object {
		return nil, false
	}
	var o object
	for _, m := range root.Members {
		o.add(m.Key, raw[m.Value.Start:m.Value.End])
	}
	return o, true
}

// specSpelled returns the command with the folder spelled as in specs/tool-packs.
func specSpelled(c *tools.Command) *tools.Command {
	if c == nil || c.Cwd != tools.CwdProject {
		return c
	}
	own := *c
	own.Cwd = specCwd
	return &own
}

func command(c *tools.Command) object {
	if c == nil {
		return nil
	}
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.String()
	}
	o := object{{"program", c.Program}, {"args", args}}
	if len(c.Env) > 0 {
		var env object
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			env.add(name, c.Env[name].String())
		}
		o.add("env", env)
	}
	o.addIf(c.Cwd != "" && c.Cwd != tools.CwdWorkspace, "cwd", c.Cwd)
	o.addIf(c.Stdin != "", "stdin", c.Stdin)
	o.addIf(c.SkillEnv, "skill_env", true)
	return o
}

// policyOf writes a policy. In a tool pack, a tool is read-only unless it says
// otherwise.
func policyOf(p tools.Policy, pack bool) object {
	o := object{}
	o.addIf(p.ReadOnly || pack, "read_only", p.ReadOnly)
	switch p.Network {
	case tools.NetworkFull:
		o.add("requires_network", true)
	case tools.NetworkLoopback:
		o.add("network", string(p.Network))
	case tools.NetworkHosts:
		o.add("network", object{{"hosts", p.HostNames()}})
	}
	o.addIf(p.Timeout > 0, "timeout_secs", int(p.Timeout.Seconds()))
	o.addIf(p.AlwaysAsk, "confirm_before_run", true)
	o.addIf(p.Review, "review", tools.ReviewAll)
	o.addIf(p.Cache != "", "cache", p.Cache)
	o.addIf(p.AllowedExitCodes != nil, "allowed_exit_codes", p.AllowedExitCodes)
	return o
}

// outputOf writes how a result is shown. In a tool pack, it is spoken unless
// it says otherwise.
func outputOf(out tools.Output, pack bool) object {
	o := object{}
	o.addIf(out.Format != "", "format", out.Format)
	o.addIf(out.Speak || pack, "speak", out.Speak)
	o.addIf(out.MaxChars > 0, "max_chars", out.MaxChars)
	o.addIf(out.ExtractField != "", "extract_field", out.ExtractField)
	o.addIf(out.Template != "", "template", out.Template)
	o.addIf(out.Merged, "merged", true)
	return o
}
