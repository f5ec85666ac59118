// Package schemas holds the published JSON Schemas of pack files as bytes, for
// the loaders that check against them and the commands that print them.
//
// It compiles and decides nothing.
package schemas

import _ "embed"

// The $id of each schema.
const (
	ToolsV1ID    = "https://raw.githubusercontent.com/packs-mcp/packs-mcp/main/schemas/tools.v1.json"
	ToolPackV1ID = "https://raw.githubusercontent.com/packs-mcp/packs-mcp/main/schemas/tool-pack.v1.json"
	TestsV1ID    = "https://raw.githubusercontent.com/packs-mcp/packs-mcp/main/schemas/tests.v1.json"
)

// The schemas are strings, so that nobody can change what is checked against.
var (
	//go:embed tools.v1.json
	toolsV1 string
	//go:embed tool-pack.v1.json
	toolPackV1 string
)

// ToolsV1 returns the schema of tools.json (JSON Schema 2020-12).
func ToolsV1() string { return toolsV1 }

// ToolPackV1 returns the schema of *.tool.json (JSON Schema 2020-12).
func ToolPackV1() string { return toolPackV1 }
