// Package schemas holds the published JSON Schemas of pack files as bytes, for
// the loaders that check against them and the commands that print them.
//
// It compiles and decides nothing.
package schemas

import _ "embed"

// ToolsV1ID is the $id of [ToolsV1].
const ToolsV1ID = "https://packs-mcp.github.io/schemas/tools.v1.json"

// toolsV1 is a string, so that nobody can change what is checked against.
//
//go:embed tools.v1.json
var toolsV1 string

// ToolsV1 returns the schema of tools.json (JSON Schema 2020-12).
func ToolsV1() string { return toolsV1 }
