package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// protected returns what a run may not change although it is in a folder that
// the run may change: what others run or trust, and what this server goes by.
// Examples of it come first.
func (s *Server) protected(c *call, m *permissions, pack *packs.Pack) []string {
	var all []string
	known := make(map[string]bool)
	add := func(paths ...string) {
		for _, path := range paths {
			inside := slices.ContainsFunc(m.policy.Writable, func(dir string) bool { return below(path, dir) })
			// A run has its workspace, wherever the user put it.
			if inside && !known[path] && !within(c.in().workspace, path) {
				known[path], all = true, append(all, path)
			}
		}
	}
	for _, dir := range m.policy.Writable {
		if dir == c.in().workspace && c.in().ownFolder {
			continue // made for this chat: nobody opens an editor there
		}
		trusted := protectedIn(dir)
		if within(dir, m.project) {
			trusted = append(trusted, protectedIn(m.project)...)
		}
		add(slices.DeleteFunc(trusted, m.grantsIn)...)
	}
	add(pack.Dir)
	add(s.opts.Own...)
	// In a root, a new pack would be found.
	roots := make(map[string]string) // :: as it was named → without links
	for _, p := range c.catalog.All() {
		root, ok := roots[p.Root]
		if !ok {
			root, _ = filepath.EvalSymlinks(p.Root)
			roots[p.Root] = root
			add(root)
		}
		if !known[root] {
			add(p.Dir)
		}
	}
	return all
}

// grantsIn reports whether the user granted path, or something in it, to be
// changed.
func (m *permissions) grantsIn(path string) bool {
	return slices.ContainsFunc(m.granted.Folders, func(dir string) bool {
		return within(dir, path) && slices.Contains(m.policy.Writable, dir)
	})
}

// below reports whether the clean path is in dir, and not dir itself.
func below(path, dir string) bool {
	return len(path) > len(dir) && strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// protectedIn returns the absolute paths, existing or not, of what in dir other
// programs run or trust as soon as they come across it: hooks, settings of
// editors and shells, instructions for agents. A tool that works on a project
// has no business with them. What everybody knows comes first.
func protectedIn(dir string) []string {
	if dir == "" {
		return nil
	}
	names := []string{
		"CLAUDE.md", ".vscode",

		// Editors and what they start.
		".idea", ".vs", ".zed", ".fleet", ".nova", ".devcontainer", ".devcontainer.json", ".gitpod.yml",
		".dir-locals.el", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".gdbinit", ".lldbinit",

		// Agents: their settings, servers, hooks and instructions.
		".mcp.json", ".claude", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "AGENT.md", ".agents", ".agent",
		"GEMINI.md", ".gemini", ".codex", ".cursor", ".cursorrules", ".windsurf", ".windsurfrules",
		".cline", ".clinerules", ".roo", ".roomodes", ".roorules", ".kilocode", ".kiro", ".aider.conf.yml", ".aider.model.settings.yml",
		".amazonq", ".augment", ".augment-guidelines", ".continue", ".continuerules", ".crush", "crush.json", "CRUSH.md", ".factory",
		".goose", ".goosehints", ".junie", ".opencode", "opencode.json", "opencode.jsonc", "QWEN.md", ".qwen", ".rules", ".stakpak",
		".trae", "WARP.md", ".github/copilot-instructions.md", ".github/instructions", ".github/prompts", ".github/chatmodes",
		".github/agents", ".github/skills", ".github/hooks",

		// Packs of this program.
		".packs",

		// Hooks and shells.
		".husky", ".githooks", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml",
		".envrc", ".direnv", ".autoenv", ".autoenv.zsh",

		// Which version of a program is run, and with what before it.
		".tool-versions", ".python-version", ".nvmrc", ".node-version", ".ruby-version", ".java-version", ".go-version", ".sdkmanrc",
		"mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".mise", ".config/mise", ".config/mise.toml",
		"rust-toolchain", "rust-toolchain.toml", ".cargo", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml", ".bazelrc",
	}
	git := gitNames(dir)
	paths := make([]string, 0, len(git)+len(names))
	for _, name := range slices.Concat(git[:1], names[:1], git[1:], names[1:]) {
		paths = append(paths, filepath.Join(dir, filepath.FromSlash(name)))
	}
	return paths
}

// gitNames are the names of what git itself runs or goes by. Of a repository,
// a tool may change what is committed, not what git runs; where there is none,
// or where it is elsewhere, a new one would bring its own hooks.
func gitNames(dir string) []string {
	if info, err := os.Lstat(filepath.Join(dir, ".git")); err != nil || !info.IsDir() {
		return []string{".git", ".gitmodules"}
	}
	return []string{
		".git/hooks", ".git/rebase-merge", ".git/rebase-apply", ".git/sequencer", ".git/config", ".git/config.worktree", ".git/commondir", ".git/modules", ".git/worktrees", ".git/info/attributes",
		".gitmodules",
	}
}
