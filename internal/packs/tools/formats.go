package tools

import (
	"path"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// A Format is a way to declare tools in a file.
type Format string

// The formats. A file is in one of the last two by its name; a Markdown document
// declares tools only as the entry document of a pack, which no name says.
const (
	Markdown  Format = "markdown"   // the entry document, SKILL.md
	ToolPack  Format = "tool-pack"  // NAME.tool.json, one file a tool
	ToolsJSON Format = "tools-json" // tools.json, several tools
)

const (
	// ToolsJSONFile is the name of the file that declares several tools.
	ToolsJSONFile = "tools.json"
	// ToolPackSuffix is how the names of files with one tool end.
	ToolPackSuffix = ".tool.json"
)

// FormatOf returns the format of the file that declares tools by its name alone,
// whose path has slashes, and "" for any other file.
func FormatOf(file string) Format {
	switch base := path.Base(file); {
	case base == ToolsJSONFile:
		return ToolsJSON
	case strings.HasSuffix(base, ToolPackSuffix):
		return ToolPack
	}
	return ""
}

// Parse compiles the tools of a JSON file in format f, as [Loader.ParseToolsJSON] and
// [Loader.ParseToolPack] do. Whatever is no [ToolsJSON] is taken to declare one tool.
func (l *Loader) Parse(f Format, file string, src []byte) (*Set, []diag.Diagnostic) {
	if f == ToolsJSON {
		return l.ParseToolsJSON(file, src)
	}
	return l.ParseToolPack(file, src)
}
