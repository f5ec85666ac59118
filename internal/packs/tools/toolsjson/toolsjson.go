// Package toolsjson compiles tools.json files, including the shapes that other
// programs use for lists of tools.
//
// It finds the declarations in a file; package decl compiles each. It guesses no
// commands: a tool without a command that it understands is declared only.
package toolsjson

import (
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/decl"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/schemas"
)

// shape is the part of the published schema about one tool.
var shape = sync.OnceValue(func() *jsonschema.Schema {
	return schema.Published(schemas.ToolsV1(), "#/$defs/tool")
})

// Parse compiles the tools that src, the content of file, declares: {"tools": [...]},
// a bare list, or one of the shapes in which other programs write such a list. The
// set is nil exactly if one of the diagnostics is an error; each names the line, and
// the JSON pointer if there is one. Tools without an understood command are declared
// only.
func Parse(file string, src []byte, limits tools.Limits) (*tools.Set, []diag.Diagnostic) {
	p := decl.New(file, limits, decl.Dialect{
		Parameter: "property of the input schema", Declare: "declare the property",
		Published: "schemas/tools.v1.json", Shape: shape,
	})
	return p.Finish(readList(p, src))
}

// Names returns the names of the tools that src seems to declare, without compiling
// any. It is for search: it does not report problems, and returns nothing if it
// cannot recognize the file's tools.
func Names(src []byte, limits tools.Limits) []string {
	p := decl.New("", limits, decl.Dialect{})
	_, root := p.Read(src)
	if root == nil {
		return nil
	}
	found, err := toolList(root)
	if err != nil {
		return nil
	}
	var names []string
	for _, n := range found.tools[:min(len(found.tools), p.Limits.Count)] {
		if name := n.StringAt("name"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func readList(p *decl.Parser, src []byte) *tools.Set {
	src, root := p.Read(src)
	if root == nil {
		return nil
	}
	list, err := toolList(root)
	if err != nil {
		p.Report(diag.Error, tools.CodeNotAToolList, err.where, "not a list of tools: "+err.reason, `write {"tools": [...]}, or give this file another name if it is not about tools`)
		return nil
	}
	if len(list.tools) > p.Limits.Count {
		p.Report(diag.Error, tools.CodeTooMany, list.node, fmt.Sprintf("%d tools, and at most %d are read", len(list.tools), p.Limits.Count), "split the pack")
		return nil
	}
	for _, n := range list.extra {
		p.Report(diag.Warning, tools.CodeUnknownKey, n, fmt.Sprintf("key %+q is not read: the function has it, too", phrase.Clip(n.Key)), "keep one of them")
	}
	return p.Tools(src, list.tools)
}
