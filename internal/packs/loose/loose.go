// Package loose describes a tool that is a pack by itself: a file NAME.tool.json that
// lies in a folder of tools and not in a pack. There is no document beside it, so one
// is generated from the declaration.
//
// It reads no files, and does not say where such tools may lie; package packs does.
package loose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolpack"
)

// CodeFolder is an error: a file in a folder of tools wants a folder of its own.
const CodeFolder = "loose-tool-folder"

// Parse compiles a tool without a pack folder. It is nil if one of the diagnostics
// is an error.
func Parse(file string, src []byte, limits tools.Limits) (*tools.Tool, []diag.Diagnostic) {
	set, problems := toolpack.Parse(file, src, limits)
	if set == nil || len(set.Tools) == 0 {
		return nil, problems
	}
	t := set.Tools[0]
	if c := t.Command; c != nil && (strings.HasPrefix(c.Program, "./") || c.Cwd == tools.CwdPackRoot) {
		return nil, append(problems, diag.Diagnostic{
			Code: CodeFolder, Severity: diag.Error, File: file, Line: t.Line,
			Message: "the tool runs in, or from, the folder of its pack, but a file in a folder of tools has none of its own",
			Hint:    "make a folder with this file, what it needs, and a SKILL.md; or name a program of the user's",
		})
	}
	return t, problems
}

// Document returns a loose tool's substitute for frontmatter.
func Document(t *tools.Tool) *frontmatter.Document {
	return &frontmatter.Document{Name: t.Name, Description: t.Description, Modes: t.Modes}
}

// Text returns the generated document of a loose tool, in at most max bytes.
func Text(t *tools.Tool, max int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n\n## Parameters\n\n`%s`\n", t.Name, t.Description, t.Signature())
	schema := new(bytes.Buffer)
	if err := json.Indent(schema, t.InputSchema, "", "  "); err == nil {
		fmt.Fprintf(&b, "\n```json\n%s\n```\n", schema)
	}
	b.WriteString("\n## Command\n\n")
	if t.Command == nil {
		fmt.Fprintf(&b, "None: %s.\n", t.DeclaredOnly)
	} else {
		fmt.Fprintf(&b, "The program and its arguments, one a line:\n\n    %s\n", inline(t.Command.Program))
		for _, a := range t.Command.Args {
			fmt.Fprintf(&b, "    %s\n", inline(a.String()))
		}
	}
	if b.Len() <= max {
		return b.Bytes()
	}
	cut := b.Bytes()[:max]
	for len(cut) > 0 {
		if r, n := utf8.DecodeLastRune(cut); r != utf8.RuneError || n != 1 {
			break
		}
		cut = cut[:len(cut)-1]
	}
	return cut
}

// inline returns text on one line.
func inline(text string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(text)
}
