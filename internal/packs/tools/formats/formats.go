// Package formats is the table of the formats in which files declare tools: which files
// belong to each format, and which parser compiles them. CONTRIBUTING.md lists what else a
// new format needs.
//
// It compiles nothing itself, and reads no files. Markdown is not in the table: only its
// place in a pack shows that a document declares tools, so the code that knows the place
// calls package markdown.
package formats

import (
	"path"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolpack"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
)

// A Format is a way to declare tools in a file.
type Format string

// The formats. The name of a file shows that it is a ToolPack or a ToolsJSON. A Markdown
// document declares tools only as the entry document of a pack.
const (
	Markdown  Format = "markdown"   // the entry document, SKILL.md
	ToolPack  Format = "tool-pack"  // NAME.tool.json, one file a tool
	ToolsJSON Format = "tools-json" // tools.json, several tools
)

// ToolsJSONFile is the name of the file that declares several tools.
const ToolsJSONFile = "tools.json"

// toolPackSuffix is the suffix of the names of files with one tool.
const toolPackSuffix = ".tool.json"

// A row is a format whose files are recognised by their names.
type row struct {
	format Format
	is     func(base string) bool
	parse  func(file string, src []byte, limits tools.Limits) (*tools.Set, []diag.Diagnostic)
	names  func(src []byte, limits tools.Limits) []string
}

// table has every format but Markdown. Its last row also takes files of no format.
var table = []row{ // never modified
	{ToolsJSON, func(base string) bool { return base == ToolsJSONFile }, toolsjson.Parse, toolsjson.Names},
	{ToolPack, func(base string) bool { return strings.HasSuffix(base, toolPackSuffix) }, toolpack.Parse, toolpack.Names},
}

// Of returns the format of a file that is recognised by its name; "" for any other file.
// The path has slashes.
func Of(file string) Format {
	base := path.Base(file)
	for _, r := range table {
		if r.is(base) {
			return r.format
		}
	}
	return ""
}

// rowOf returns the row of f, or the last one.
func rowOf(f Format) row {
	for _, r := range table {
		if r.format == f {
			return r
		}
	}
	return table[len(table)-1]
}

// Parse compiles the tools of a JSON file in format f. It parses a file in another format as
// a declaration of one tool. The set is nil exactly if one of the diagnostics is an error.
func Parse(f Format, file string, src []byte, limits tools.Limits) (*tools.Set, []diag.Diagnostic) {
	return rowOf(f).parse(file, src, limits)
}

// Names returns the names of the tools that src, the content of file, seems to declare,
// without compiling any. It is for search: it reports no problems, and returns nothing if
// it cannot recognise the file's tools.
func Names(file string, src []byte, limits tools.Limits) []string {
	return rowOf(Of(file)).names(src, limits)
}

// CutToolPack returns the name of a file with one tool without its suffix, and reports
// whether it is such a file.
func CutToolPack(file string) (name string, ok bool) { return strings.CutSuffix(file, toolPackSuffix) }

// ToolPackFile returns the name of the file for the tool called name.
func ToolPackFile(name string) string { return name + toolPackSuffix }
