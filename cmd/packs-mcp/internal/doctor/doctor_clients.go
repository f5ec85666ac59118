package doctor

import (
	"bytes"
	"io"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// A clientFile is where an MCP client may name its servers.
type clientFile struct {
	client string
	path   string // absolute
}

// A foundClient is such a file that is there.
type foundClient struct {
	Client   string `json:"client"`
	File     string `json:"file"`
	Mentions bool   `json:"mentions"` // "packs-mcp" is somewhere in it
}

// clientFiles are the configuration files of clients that we know, the user's
// own before the project's. Either folder may be empty.
func clientFiles(goos string, environ []string, home, project string) []clientFile {
	or := func(name string, inHome ...string) string {
		if v := cli.Getenv(environ, name); filepath.IsAbs(v) {
			return v
		}
		if home == "" {
			return ""
		}
		return filepath.Join(append([]string{home}, inHome...)...)
	}
	// Where programs keep what the user sets: those of the desktop, and those
	// that are the same everywhere.
	var desktop string
	xdg := or("XDG_CONFIG_HOME", ".config")
	goose := []string{xdg, "goose", "config.yaml"}
	zed := []string{xdg, "zed", "settings.json"}
	switch goos {
	case "windows":
		desktop = or("APPDATA", "AppData", "Roaming")
		goose = []string{desktop, "Block", "goose", "config", "config.yaml"}
		zed = []string{desktop, "Zed", "settings.json"}
	case "darwin":
		desktop = or("", "Library", "Application Support")
	default:
		desktop = xdg
	}
	codex := or("CODEX_HOME", ".codex")
	all := []struct {
		client string
		path   []string // the first one is empty when it is not known
	}{
		{"Claude Desktop", []string{desktop, "Claude", "claude_desktop_config.json"}},
		{"Claude Code", []string{home, ".claude.json"}},
		{"Claude Code", []string{project, ".mcp.json"}},
		{"Cursor", []string{home, ".cursor", "mcp.json"}},
		{"Cursor", []string{project, ".cursor", "mcp.json"}},
		{"VS Code", []string{desktop, "Code", "User", "mcp.json"}},
		{"VS Code", []string{project, ".vscode", "mcp.json"}},
		{"Codex", []string{codex, "config.toml"}},
		{"Gemini CLI", []string{home, ".gemini", "settings.json"}},
		{"Gemini CLI", []string{project, ".gemini", "settings.json"}},
		{"opencode", []string{xdg, "opencode", "opencode.json"}},
		{"opencode", []string{xdg, "opencode", "opencode.jsonc"}},
		{"opencode", []string{project, "opencode.json"}},
		{"Goose", goose},
		{"Windsurf", []string{home, ".codeium", "windsurf", "mcp_config.json"}},
		{"Zed", zed},
		{"Zed", []string{project, ".zed", "settings.json"}},
		{"Copilot CLI", []string{home, ".copilot", "mcp-config.json"}},
	}
	var files []clientFile
	for _, f := range all {
		if f.path[0] != "" {
			files = append(files, clientFile{f.client, filepath.Join(f.path...)})
		}
	}
	return files
}

// maxClientFile is how much of a file is searched: some clients keep their
// history in it.
const maxClientFile = 32 << 20

// findClients returns the files that are there. Of what is in them, only
// whether they name this program is looked at.
func findClients(files []clientFile) []foundClient {
	found := []foundClient{}
	for _, f := range files {
		// What is not a regular file could keep us waiting.
		if info, err := os.Stat(f.path); err == nil && info.Mode().IsRegular() {
			found = append(found, foundClient{f.client, f.path, mentions(f.path, "packs-mcp")})
		}
	}
	return found
}

func mentions(path, word string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxClientFile))
	return err == nil && bytes.Contains(data, []byte(word))
}
