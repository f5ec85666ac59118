package tools

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// ParseToolPack compiles the one tool that src, the content of a *.tool.json
// called file, declares. The set is nil exactly if one of the diagnostics is an
// error; each names the line, and the JSON pointer if there is one.
//
// The flat parameters become a JSON Schema, and what they say of where values
// come from becomes [Tool.Sources]. A tool is taken to be read-only, and its
// result to be spoken, unless it says otherwise.
func (l *Loader) ParseToolPack(file string, src []byte) (*Set, []diag.Diagnostic) {
	p := &parser{loader: l, file: file, limits: l.Limits.orDefault(), toolPack: true}
	return p.finish(p.parseToolPack(src))
}

func (p *parser) parseToolPack(src []byte) *Set {
	src, root := p.read(src)
	if root == nil {
		return nil
	}
	const hint = `write one tool: {"name": "...", "description": "...", "parameters": {...}, "command": {...}}`
	switch {
	case root.kind != kindObject:
		p.report(diag.Error, CodeNotAToolPack, root, fmt.Sprintf("not a tool: it is %s", root.kind), hint)
		return nil
	case root.get("name") == nil && root.get("tools") != nil:
		p.report(diag.Error, CodeNotAToolPack, root.get("tools"), "not a tool, but a list of tools", "call the file tools.json, or give each tool a file of its own")
		return nil
	case root.get("name") == nil:
		p.report(diag.Error, CodeNotAToolPack, root, "not a tool: it has no name", hint)
		return nil
	}
	p.names([]*node{root})
	set := &Set{Tools: []*Tool{}}
	if t := p.tool(src, root); t != nil {
		set.Tools = append(set.Tools, t)
	}
	return set
}
