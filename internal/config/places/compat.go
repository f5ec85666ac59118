package places

import (
	"slices"
	"strings"
)

// A CompatFolder is a folder where another program keeps its packs.
type CompatFolder struct {
	Name    string // as in Config.Compat
	Path    string // absolute
	Project bool   // the folder is in the project, not the user's own
	Tools   bool   // it holds tools, sorted into folders
}

// A compat is one program whose packs can be used. Its folders are relative,
// with slashes. Earlier folders in a list take precedence.
type compat struct {
	name    string
	project []string // to the project
	home    []string // to the home folder
	config  []string // to $XDG_CONFIG_HOME, ~/.config by default
	own     string   // a variable whose folder, with "/skills" appended, replaces home's
}

// compats returns the programs, with the folders that their documentation names.
func compats() []compat {
	return []compat{
		{name: "agents", project: []string{".agents/skills"}, home: []string{".agents/skills"}},
		{name: "claude", project: []string{".claude/skills"}, home: []string{".claude/skills"}, own: "CLAUDE_CONFIG_DIR"},
		{name: "codex", project: []string{".codex/skills"}, home: []string{".codex/skills"}, own: "CODEX_HOME"},
		{name: "copilot", project: []string{".github/skills"}, home: []string{".copilot/skills"}},
		{name: "cursor", project: []string{".cursor/skills"}, home: []string{".cursor/skills"}},
		{name: "gemini", project: []string{".gemini/skills"}, home: []string{".gemini/skills"}},
		{name: "gibberish", config: []string{"gibberish/skills", "gibb.eri.sh/tools", "gibb.eri.sh/tools.d"}},
		{name: "goose", project: []string{".goose/skills"}, config: []string{"goose/skills"}},
		{name: "opencode", project: []string{".opencode/skills", ".opencode/skill"}, config: []string{"opencode/skills", "opencode/skill"}},
		{name: "stakpak", project: []string{".stakpak/skills"}, config: []string{"stakpak/skills"}},
	}
}

// CompatNames returns every program that Config.Compat can list, sorted.
func CompatNames() []string {
	var names []string
	for _, c := range compats() {
		names = append(names, c.name)
	}
	return names
}

// CompatFolders returns the folders of the named programs, in the order of
// names. Each program's project folders come before the user's. It takes an
// environment and an operating system as [Resolve] does. It does not check
// whether the folders exist. project is absolute, or empty for none.
func CompatFolders(names []string, environ []string, goos, project string) []CompatFolder {
	env := Environment(environ, goos)
	absolute := func(path string) string {
		if IsAbs(goos, path) {
			return path
		}
		return ""
	}
	home := absolute(env[HomeName(goos)])
	config := absolute(env["XDG_CONFIG_HOME"])
	if config == "" && home != "" {
		config = join(goos, home, ".config")
	}
	var all []CompatFolder
	for _, c := range compats() {
		if !slices.Contains(names, c.name) {
			continue
		}
		add := func(base string, folders []string, inProject bool) {
			for _, f := range folders {
				if base != "" {
					all = append(all, CompatFolder{
						Name: c.name, Path: join(goos, base, f), Project: inProject, Tools: strings.HasSuffix(f, "/tools.d"),
					})
				}
			}
		}
		add(project, c.project, true)
		if own := absolute(env[c.own]); c.own != "" && own != "" {
			add(own, []string{"skills"}, false)
		} else {
			add(home, c.home, false)
		}
		add(config, c.config, false)
	}
	slices.SortStableFunc(all, func(a, b CompatFolder) int {
		return slices.Index(names, a.Name) - slices.Index(names, b.Name)
	})
	return all
}
