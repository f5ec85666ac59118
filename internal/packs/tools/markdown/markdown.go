// Package markdown compiles the tools that a Markdown document declares with headings,
// tables and fences.
//
// It does not parse the frontmatter; [DefaultsOf] takes its parsed content. It parses no
// Markdown within a line. A command is only split into words; no shell interprets it.
package markdown

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"

	"github.com/packs-mcp/packs-mcp/internal/packs/cachename"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/decl"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// The level-4 headings that have a meaning, in lower case.
const (
	partCommand    = "command"
	partParameters = "parameters"
	partExamples   = "examples"
	partExample    = "example"
)

// MentionsCommand reports whether a Markdown document may declare a tool: whether any
// line looks like the heading "#### Command", in any letter case. If it returns false,
// [Parse] finds no tool. It is much cheaper than Parse.
func MentionsCommand(src []byte) bool {
	const marks, space = "####", " \t\v\f\r"
	for {
		i := bytes.Index(src, []byte(marks))
		if i < 0 {
			return false
		}
		src = src[i+len(marks):]
		title := bytes.TrimLeft(src, space)
		if len(title) == len(src) || len(title) < len(partCommand) || !bytes.EqualFold(title[:len(partCommand)], []byte(partCommand)) {
			continue
		}
		if rest := bytes.TrimLeft(title[len(partCommand):], "#"+space); len(rest) == 0 || rest[0] == '\n' {
			return true
		}
	}
}

// Parse compiles the tools that src, the content of a Markdown file, declares. A tool is a
// level-3 heading that is a tool's name, followed, before the next such heading, by a
// level-4 heading "Command" with one fenced command line. Any other heading is text.
//
// The set is nil if one of the diagnostics is an error, or if no tool is declared.
// Positions are relative to the whole file.
func Parse(file string, src []byte, d Defaults, limits tools.Limits) (*tools.Set, []diag.Diagnostic) {
	m := newDocument(file, src, d, limits)
	if !MentionsCommand(m.src) {
		return nil, nil
	}
	return m.Finish(m.parse(src))
}

// A document is the state of parsing one.
type document struct {
	*decl.Parser
	src      []byte // the body
	base     int    // offset of the body in the file
	defaults Defaults
}

func newDocument(file string, src []byte, d Defaults, limits tools.Limits) *document {
	m := &document{
		Parser:   decl.New(file, limits, decl.Dialect{Parameter: "parameter", Declare: "add it to the table of parameters"}),
		defaults: d,
		base:     min(max(d.BodyOffset, 0), len(src)),
	}
	const mark = "\xef\xbb\xbf" // a byte order mark
	if m.base == 0 && bytes.HasPrefix(src, []byte(mark)) {
		m.base = len(mark)
	}
	m.src = src[m.base:]
	return m
}

func (m *document) parse(file []byte) *tools.Set {
	if !m.Fits(file) {
		return nil
	}
	m.SetText(file)
	sections, fence := m.outline()
	declared := m.declared(sections)
	if fence != nil && MentionsCommand(fence.Lines().Value(m.src)) {
		m.unclosed(fence)
	}
	if len(declared) == 0 {
		return nil
	}
	if len(declared) > m.Limits.Count {
		m.Report(diag.Error, tools.CodeTooMany, m.node(declared[m.Limits.Count].at, ""),
			fmt.Sprintf("%d tools, and at most %d are read", len(declared), m.Limits.Count), "split the pack")
		return nil
	}
	if !utf8.Valid(m.src) {
		m.Report(diag.Error, tools.CodeNotUTF8, m.node(invalidUTF8(m.src), ""), "text is not UTF-8", "save the file as UTF-8")
		return nil
	}
	named := make([]*strictjson.Node, len(declared))
	for i, s := range declared {
		name := m.node(s.at, s.name())
		named[i] = &strictjson.Node{Kind: strictjson.Object, Start: name.Start, Members: []strictjson.Member{{Key: "name", Value: name}}}
	}
	m.Names(named)
	set := &tools.Set{Tools: []*tools.Tool{}}
	for _, s := range declared {
		if t := m.tool(s); t != nil {
			set.Tools = append(set.Tools, t)
		}
	}
	return set
}

func invalidUTF8(src []byte) int {
	for i := 0; ; {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// declared returns the sections that declare tools, and reports those that nearly do.
func (m *document) declared(sections []*section) []*section {
	var out []*section
	for _, s := range sections {
		commands := s.all(partCommand)
		switch name := s.name(); {
		case len(commands) == 0:
			if s.level == toolLevel && validMarkdownName(name) && slices.ContainsFunc(s.all(partParameters), part.hasTable) {
				m.Report(diag.Warning, tools.CodeToolWithoutCommand, m.node(s.at, ""), fmt.Sprintf("%q has parameters and no command, so it is not a tool", name),
					`add "#### Command" with a fenced command line, or remove the parameters`)
			}
		case s.level != toolLevel:
			if c := commands[0]; c.hasFence() {
				m.Report(diag.Warning, tools.CodeCommandWithoutTool, m.node(c.at, ""), "a command that belongs to no tool: it is under no level-3 heading",
					`write "### name_of_the_tool" above it`)
			}
		case !validMarkdownName(name):
			m.badName(s, name, commands[0].hasFence())
		default:
			out = append(out, s)
		}
	}
	return out
}

// badName reports a heading that has a command but is not a valid name. A heading of
// several words may well not be meant as a tool.
func (m *document) badName(s *section, name string, fenced bool) {
	if strings.ContainsAny(name, " \t") || name == "" {
		if fenced {
			m.Report(diag.Warning, tools.CodeNameInvalid, m.node(s.at, ""),
				fmt.Sprintf("heading %+q has a command and is not the name of a tool, so it is not a tool", phrase.Clip(name)),
				"to make it one, write a name of 1 to 32 lower-case letters, digits and _")
		}
		return
	}
	hint := "rename the tool"
	if better := strings.ReplaceAll(strings.ToLower(name), "-", "_"); validMarkdownName(better) {
		hint = fmt.Sprintf("call it %q", better)
	}
	m.Report(diag.Error, tools.CodeNameInvalid, m.node(s.at, ""),
		fmt.Sprintf("tool name %+q is not made of 1 to 32 lower-case letters, digits and _", phrase.Clip(name)), hint)
}

// validMarkdownName reports whether specs/skill-md-tools allows name. It is stricter than
// the other formats.
func validMarkdownName(name string) bool {
	return name != "" && len(name) <= 32 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// unclosed reports an unclosed fence, once.
func (m *document) unclosed(f *ast.FencedCodeBlock) {
	at := m.node(f.Pos(), "")
	line, column := m.Position(at.Start)
	if slices.ContainsFunc(m.Found, func(d diag.Diagnostic) bool {
		return d.Code == tools.CodeFenceUnclosed && d.Line == line && d.Column == column
	}) {
		return
	}
	m.Report(diag.Error, tools.CodeFenceUnclosed, at, "a fence is not closed before the next command or the end", "write ``` on a line of its own where it ends")
}

// tool compiles one section. It returns nil after an error.
func (m *document) tool(s *section) *tools.Tool {
	before := m.Errors
	t := &tools.Tool{
		Name:        s.name(),
		Description: m.text(s.intro),
		Policy: tools.Policy{
			ReadOnly: m.defaults.ReadOnly, DeclaresReadOnly: m.defaults.ReadOnly, AlwaysAsk: m.defaults.AlwaysAsk, Review: m.defaults.Review, Network: tools.NetworkNone,
			Timeout: min(max(m.defaults.Timeout, 0), tools.MaxTimeout).Truncate(time.Second),
		},
		Output: tools.Output{Merged: true},
		Modes:  slices.Clone(m.defaults.Modes),
		File:   m.File,
	}
	if m.defaults.Network {
		t.Policy.Network = tools.NetworkFull
	}
	if cachename.Valid(m.defaults.Cache) {
		t.Policy.Cache = m.defaults.Cache
	}
	here := &strictjson.Node{Kind: strictjson.Object, Start: m.base + s.at}
	t.Line, _ = m.Position(here.Start)
	m.Description(here, t.Description)

	words := m.commandLine(s)
	if words == nil {
		return nil
	}
	args := make([]template.Arg, len(words)-1)
	for i, w := range words[1:] {
		args[i], _ = m.Template(w)
	}
	params := m.parameters(s)
	if m.Errors > before {
		return nil
	}
	m.presets(params, args)
	raw := schemaOf(params)
	in, err := schema.Parse(raw)
	if err != nil {
		m.Schema(diag.Error, tools.CodeSchemaInvalid, here, err)
		return nil
	}
	t.InputSchema, t.Input = raw, in
	t.Command = m.run(words, args, t)
	if m.Errors > before {
		return nil
	}
	m.unused(params, args)
	for _, p := range s.parts {
		if p.title == partExamples || p.title == partExample {
			for _, f := range p.fences() {
				if text := strings.TrimRight(m.fenceText(f), "\n"); text != "" {
					t.Examples = append(t.Examples, text)
				}
			}
		}
	}
	return t
}

// run makes the command out of its words.
func (m *document) run(words []*strictjson.Node, args []template.Arg, t *tools.Tool) *tools.Command {
	c := &tools.Command{Program: words[0].Text, Args: args, Cwd: tools.CwdProject, UsualCwd: tools.CwdProject, SkillEnv: true}
	if c.Program == "$" {
		m.Report(diag.Error, tools.CodeProgramInvalid, words[0], "the command begins with a prompt", "remove the $")
	} else {
		m.Program(words[0])
	}
	for i, a := range args {
		m.Known(a, words[1+i], t)
	}
	m.Code(c, words[1:])
	return c
}
