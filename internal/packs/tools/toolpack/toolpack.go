// Package toolpack compiles files called NAME.tool.json, with one tool each.
//
// It does not read lists of tools, which belong in a tools.json, and does not compare
// the file's name with the tool's.
package toolpack

import (
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/decl"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
	"github.com/packs-mcp/packs-mcp/schemas"
)

// shape is the published schema.
var shape = sync.OnceValue(func() *jsonschema.Schema {
	return schema.Published(schemas.ToolPackV1(), "")
})

// Parse compiles the tool that src, the content of the *.tool.json file, declares.
// The set is nil exactly if one of the diagnostics is an error; each names the line,
// and the JSON pointer if there is one.
//
// The flat parameters become a JSON Schema, and the sources of their values become
// [tools.Tool.Sources]. By default, a tool is read-only and its result is spoken.
func Parse(file string, src []byte, limits tools.Limits) (*tools.Set, []diag.Diagnostic) {
	p := decl.New(file, limits, decl.Dialect{
		Parameter: "parameter", Declare: "declare the parameter",
		Published: "schemas/tool-pack.v1.json", Shape: shape,
		Flat: true, WantsCommand: true, ReadOnly: true, Speak: true,
	})
	return p.Finish(readTool(p, src))
}

// Names returns the name of the tool that src seems to declare, in a list of at most
// one, without compiling it. It does not report problems.
func Names(src []byte, limits tools.Limits) []string {
	_, root := decl.New("", limits, decl.Dialect{}).Read(src)
	if name := root.StringAt("name"); name != "" {
		return []string{name}
	}
	return nil
}

func readTool(p *decl.Parser, src []byte) *tools.Set {
	src, root := p.Read(src)
	if root == nil {
		return nil
	}
	const hint = `write one tool: {"name": "...", "description": "...", "parameters": {...}, "command": {...}}`
	switch {
	case root.Kind != strictjson.Object:
		p.Report(diag.Error, tools.CodeNotAToolPack, root, fmt.Sprintf("not a tool: it is %s", root.Kind), hint)
		return nil
	case root.Get("name") == nil && root.Get("tools") != nil:
		p.Report(diag.Error, tools.CodeNotAToolPack, root.Get("tools"), "not a tool, but a list of tools", "call the file tools.json, or give each tool a file of its own")
		return nil
	case root.Get("name") == nil:
		p.Report(diag.Error, tools.CodeNotAToolPack, root, "not a tool: it has no name", hint)
		return nil
	}
	return p.Tools(src, []*strictjson.Node{root})
}
