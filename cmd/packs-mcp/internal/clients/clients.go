// Package clients describes the MCP clients in which packs-mcp can be set up: where
// each keeps its settings, and what must be in them.
//
// It neither reads nor writes settings; setup and doctor do.
package clients

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
)

// A Client is an MCP client.
type Client struct {
	ID   string // "claude-code"
	Name string // "Claude Code"
	// Program is the command that starts it in a terminal; empty for an application.
	Program string
	// Environ lists the variables that it passes to a server; nil: all of its own.
	Environ []string
	// PasteOnly says that its settings are only shown, for the person to edit.
	PasteOnly bool

	format func() *configedit.Format
	key    []string // path of the object that holds the servers
	entry  func(Server) configedit.Object
	more   func(p *Place, name string) []Change
	user   func(p *Place) []string // the user's files; the last is the one to create
	local  []string                // a project's file, relative to the project
}

// A Place is a machine and its user.
type Place struct {
	GOOS    string
	Environ []string
	Home    string // empty: unknown
	Project string // empty: there is none
}

// A Server says how a client starts packs-mcp.
type Server struct {
	Command string // an absolute path
	Args    []string
}

// A Scope says whose settings are meant.
type Scope string

const (
	ScopeUser    Scope = "user"
	ScopeProject Scope = "project"
)

// A Change is one value in one file of settings.
type Change struct {
	File   string
	Format *configedit.Format
	Path   []string
	// Value is the value to set; otherwise Word is appended to the list at Path.
	Value any
	Word  string
	// Why says what the change is good for and what else it allows, and Ask asks for
	// it. Both are empty for the entry itself.
	Why, Ask string
}

// All returns the clients, in the order in which they are shown.
func All() []Client {
	json, toml := configedit.JSON, configedit.TOML
	mcpServers := []string{"mcpServers"}
	return []Client{
		{
			ID: "claude-code", Name: "Claude Code", Program: "claude", format: json, key: mcpServers, entry: plain,
			user:  func(p *Place) []string { return []string{p.or("CLAUDE_CONFIG_DIR", p.Home, ".claude.json")} },
			local: []string{".mcp.json"},
			more: func(p *Place, name string) []Change {
				return []Change{{
					File: p.or("CLAUDE_CONFIG_DIR", filepath.Join(p.Home, ".claude"), "settings.json"), Format: json(), Path: []string{"permissions", "allow"}, Word: "mcp__" + name,
					// Its rules identify servers by name only.
					Why: "Claude Code also asks before each call. This turns that off for every server named \"" + name + "\", including one that a project defines. packs-mcp still asks",
					Ask: "Claude Code also asks before each call. Turn that off for every server named \"" + name + "\", including one that a project defines? packs-mcp still asks.",
				}}
			},
		},
		{
			ID: "claude-desktop", Name: "Claude Desktop", format: json, key: mcpServers, entry: plain,
			user: func(p *Place) []string { return []string{p.desktop("Claude", "claude_desktop_config.json")} },
		},
		{
			ID: "codex", Name: "Codex", Program: "codex", format: toml, key: []string{"mcp_servers"},
			Environ: append([]string{"HOME", "PATH", "TERM", "LANG"}, sessionVariables()...),
			entry: func(s Server) configedit.Object {
				return append(plain(s), configedit.Object{
					// Codex leaves approval to the server, which asks about every
					// call.
					{Key: "default_tools_approval_mode", Value: "approve"},
					// It passes few variables to a server, so the server could not
					// open a page.
					{Key: "env_vars", Value: sessionVariables()},
					{Key: "tool_timeout_sec", Value: 600},
				}...)
			},
			user: func(p *Place) []string {
				return []string{p.or("CODEX_HOME", filepath.Join(p.Home, ".codex"), "config.toml")}
			},
		},
		{
			ID: "cursor", Name: "Cursor", Program: "cursor", format: json, key: mcpServers, entry: plain,
			user:  func(p *Place) []string { return []string{p.home(".cursor", "mcp.json")} },
			local: []string{".cursor", "mcp.json"},
		},
		{
			ID: "vscode", Name: "VS Code", Program: "code", format: json, key: []string{"servers"},
			entry: func(s Server) configedit.Object {
				return append(configedit.Object{{Key: "type", Value: "stdio"}}, plain(s)...)
			},
			user:  func(p *Place) []string { return []string{p.desktop("Code", "User", "mcp.json")} },
			local: []string{".vscode", "mcp.json"},
		},
		{
			ID: "windsurf", Name: "Windsurf", Program: "windsurf", format: json, key: mcpServers, entry: plain,
			user: func(p *Place) []string { return []string{p.home(".codeium", "windsurf", "mcp_config.json")} },
		},
		{
			ID: "gemini", Name: "Gemini CLI", Program: "gemini", format: json, key: mcpServers, entry: trusted,
			user:  func(p *Place) []string { return []string{p.home(".gemini", "settings.json")} },
			local: []string{".gemini", "settings.json"},
		},
		{
			ID: "qwen", Name: "Qwen Code", Program: "qwen", format: json, key: mcpServers, entry: trusted,
			user:  func(p *Place) []string { return []string{p.home(".qwen", "settings.json")} },
			local: []string{".qwen", "settings.json"},
		},
		{
			ID: "copilot", Name: "Copilot CLI", Program: "copilot", format: json, key: mcpServers,
			entry: func(s Server) configedit.Object {
				return append(append(configedit.Object{{Key: "type", Value: "local"}}, plain(s)...), configedit.Member{Key: "tools", Value: []string{"*"}})
			},
			user: func(p *Place) []string { return []string{p.home(".copilot", "mcp-config.json")} },
		},
		{
			ID: "opencode", Name: "opencode", Program: "opencode", format: json, key: []string{"mcp"},
			entry: func(s Server) configedit.Object {
				return configedit.Object{
					{Key: "type", Value: "local"},
					{Key: "command", Value: append([]string{s.Command}, s.Args...)},
					{Key: "enabled", Value: true},
				}
			},
			user: func(p *Place) []string {
				return []string{p.xdg("opencode", "opencode.jsonc"), p.xdg("opencode", "opencode.json")}
			},
			local: []string{"opencode.json"},
		},
		{
			ID: "zed", Name: "Zed", PasteOnly: true, Program: "zed", format: json, key: []string{"context_servers"}, entry: plain,
			user: func(p *Place) []string {
				if p.GOOS == "windows" {
					return []string{p.desktop("Zed", "settings.json")}
				}
				return []string{p.xdg("zed", "settings.json")}
			},
			local: []string{".zed", "settings.json"},
		},
		{
			ID: "goose", Name: "Goose", PasteOnly: true, Program: "goose", format: configedit.YAML, key: []string{"extensions"},
			entry: func(s Server) configedit.Object {
				return configedit.Object{
					{Key: "type", Value: "stdio"}, {Key: "name", Value: "packs"}, {Key: "enabled", Value: true},
					{Key: "cmd", Value: s.Command}, {Key: "args", Value: s.Args}, {Key: "timeout", Value: 600},
				}
			},
			user: func(p *Place) []string {
				if p.GOOS == "windows" {
					return []string{p.desktop("Block", "goose", "config", "config.yaml")}
				}
				return []string{p.xdg("goose", "config.yaml")}
			},
		},
	}
}

// sessionVariables returns the variables needed to open a browser in the person's
// session.
func sessionVariables() []string {
	return []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}
}

func plain(s Server) configedit.Object {
	return configedit.Object{{Key: "command", Value: s.Command}, {Key: "args", Value: s.Args}}
}

// trusted returns the settings for clients that would otherwise ask a second time.
func trusted(s Server) configedit.Object {
	return append(plain(s), configedit.Member{Key: "trust", Value: true})
}

// ByID returns the client with this ID.
func ByID(id string) (Client, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Client) bool { return c.ID == id })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

// Files returns the files in which the client may name its servers. The last is the
// one that is created if none exists. It is empty if the client has no such file.
func (c Client) Files(p *Place, scope Scope) []string {
	if scope == ScopeProject {
		if p.Project == "" || c.local == nil {
			return nil
		}
		return []string{filepath.Join(append([]string{p.Project}, c.local...)...)}
	}
	return slices.DeleteFunc(c.user(p), func(file string) bool { return file == "" })
}

// Entry returns the change that adds the server to file.
func (c Client) Entry(file, name string, s Server) Change {
	return Change{File: file, Format: c.format(), Path: append(slices.Clip(c.key), name), Value: c.entry(s)}
}

// Entries returns the servers that text, one of the client's files, names.
func (c Client) Entries(text []byte) (map[string]any, error) {
	all, _, err := c.format().Get(text, c.key...)
	entries, _ := all.(map[string]any)
	return entries, err
}

// More returns further changes of the user's own settings that make the client work
// well.
func (c Client) More(p *Place, name string) []Change {
	if c.more == nil || p.Home == "" {
		return nil
	}
	return c.more(p, name)
}

// Started returns the command that an entry, as [configedit.Format.Get] returns it,
// starts; nil if it starts none, for example because it has a URL.
func Started(entry any) []string {
	m, _ := entry.(map[string]any)
	var argv []string
	add := func(v any) bool {
		switch v := v.(type) {
		case string:
			argv = append(argv, v)
		case []any:
			for _, one := range v {
				s, ok := one.(string)
				if !ok {
					return false
				}
				argv = append(argv, s)
			}
		case nil:
		default:
			return false
		}
		return true
	}
	command := m["command"]
	if command == nil {
		command = m["cmd"] // Goose
	}
	if !add(command) || len(argv) == 0 || !add(m["args"]) {
		return nil
	}
	return argv
}

// IsOurs reports whether an entry starts a packs-mcp.
func IsOurs(entry any) bool {
	argv := Started(entry)
	if argv == nil {
		return false
	}
	base := argv[0][strings.LastIndexAny(argv[0], `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(base), ".exe") == "packs-mcp"
}

// or returns the path of a file in the folder that a variable names or, if it is not
// set, in dir.
func (p *Place) or(variable, dir, file string) string {
	if v := cli.Getenv(p.Environ, variable); filepath.IsAbs(v) {
		dir = v
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, file)
}

func (p *Place) home(parts ...string) string {
	if p.Home == "" {
		return ""
	}
	return filepath.Join(append([]string{p.Home}, parts...)...)
}

// xdg returns the path of a file in the folder where programs keep settings on most
// systems.
func (p *Place) xdg(parts ...string) string {
	return p.or("XDG_CONFIG_HOME", p.home(".config"), filepath.Join(parts...))
}

// desktop returns the path of a file in the folder where applications keep settings.
func (p *Place) desktop(parts ...string) string {
	file := filepath.Join(parts...)
	switch p.GOOS {
	case "windows":
		return p.or("APPDATA", p.home("AppData", "Roaming"), file)
	case "darwin":
		return p.home("Library", "Application Support", file)
	}
	return p.xdg(file)
}
