package decl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Tools compiles declarations, which are nodes of src.
func (p *Parser) Tools(src []byte, list []*strictjson.Node) *tools.Set {
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
func (p *Parser) tool(src []byte, n *strictjson.Node) *tools.Tool {
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

// unused warns about parameters that do not reach the program.
func (p *Parser) unused(t *tools.Tool, n *strictjson.Node) {
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

// Description reports a missing description, or one that models see truncated.
func (p *Parser) Description(n *strictjson.Node, s string) {
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
