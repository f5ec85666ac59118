package decl

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/toolname"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// shape validates a tool against the published schema.
func (p *Parser) shape(n, command *strictjson.Node) {
	value := n.Value().(map[string]any)
	if command == nil {
		delete(value, "command")
	}
	for _, key := range inputKeys {
		if s := n.Get(key); s != nil && (command == nil && s.Kind != strictjson.Object || p.dialect.Flat && isSchema(s)) {
			delete(value, key) // these only cause warnings
		}
	}
	// Names have their own diagnostics, which say more than a pattern could.
	if name := n.Get("name"); name.Kind == strictjson.Text && !toolname.Valid(name.Text) {
		value["name"] = "x"
	}
	if cache := n.Get("policy").Get("cache"); cache != nil && cache.Kind == strictjson.Text {
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

func envNames(command *strictjson.Node) []string {
	env := command.Get("env")
	if env == nil || env.Kind != strictjson.Object {
		return nil
	}
	var names []string
	for _, m := range env.Members {
		names = append(names, m.Key)
	}
	return names
}

// unknownKeys warns about keys that are not in the published schema.
func (p *Parser) unknownKeys(n, command *strictjson.Node) {
	shape := p.dialect.Shape()
	p.unknown(n, shape)
	if command != nil && command.Kind == strictjson.Object {
		object := shape.Properties["command"]
		if object.Else != nil {
			object = object.Else
		}
		p.unknown(command, object.Ref)
	}
	for _, key := range []string{"policy", "output"} {
		if v := n.Get(key); v != nil && v.Kind == strictjson.Object {
			p.unknown(v, shape.Properties[key].Ref)
		}
	}
	if v := n.Get("policy").Get("network"); v != nil && v.Kind == strictjson.Object {
		p.unknown(v, shape.Properties["policy"].Ref.Properties["network"])
	}
	if a := n.Get("annotations"); a != nil {
		p.Report(diag.Warning, tools.CodeAnnotationsIgnored, a, "annotations are ignored: a pack cannot vouch for its own safety",
			`remove them; "policy": {"read_only": true} tells what the tool means to do`)
	}
}

func (p *Parser) unknown(n *strictjson.Node, shape *jsonschema.Schema) {
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

// ofFunction reports whether m is part of the way OpenAI's clients write functions.
func ofFunction(tool *strictjson.Node, m strictjson.Member) bool {
	return m.Key == "type" && m.Value.Text == "function" || m.Key == "strict" && m.Value.Kind == strictjson.Boolean ||
		m.Key == "schema" && m.Value == objectSchema(tool)
}
