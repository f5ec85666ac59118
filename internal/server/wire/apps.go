package wire

import "slices"

// The names of MCP Apps: the extension, and the media type of its documents.
const (
	ExtensionApps = "io.modelcontextprotocol/ui"
	AppsMIME      = "text/html;profile=mcp-app"
)

// appsSupport is what a client declared about MCP Apps. The zero value means no
// support.
type appsSupport struct {
	cards bool // it shows documents of the media type AppsMIME
	forms bool // also in place of its own form for a question
}

// readApps reads what a client declared. It ignores what does not follow the
// extension.
func readApps(declared any) appsSupport {
	settings, _ := declared.(map[string]any)
	types, _ := settings["mimeTypes"].([]any)
	if !slices.Contains(types, any(AppsMIME)) {
		return appsSupport{}
	}
	_, forms := settings["elicitation"].(map[string]any)
	return appsSupport{cards: true, forms: forms}
}
