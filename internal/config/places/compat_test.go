package places

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompatFolders(t *testing.T) {
	linux := []string{"HOME=/h"}
	tests := []struct {
		name, goos, project string
		names, environ      []string
		want                []string // name path, + for the project's, * for tools
	}{
		{"none", "linux", "/p", nil, linux, nil},
		{"project, then home", "linux", "/p", []string{"agents"}, linux, []string{"agents +/p/.agents/skills", "agents /h/.agents/skills"}},
		{"no project", "linux", "", []string{"claude"}, linux, []string{"claude /h/.claude/skills"}},
		{"no home", "linux", "/p", []string{"goose", "claude"}, []string{"HOME=h"}, []string{"goose +/p/.goose/skills", "claude +/p/.claude/skills"}},
		{"in the order of the list", "linux", "/p", []string{"stakpak", "codex", "copilot"}, linux, []string{
			"stakpak +/p/.stakpak/skills", "stakpak /h/.config/stakpak/skills",
			"codex +/p/.codex/skills", "codex /h/.codex/skills",
			"copilot +/p/.github/skills", "copilot /h/.copilot/skills",
		}},
		{"variables", "linux", "", []string{"claude", "codex", "opencode", "goose"},
			[]string{"HOME=/h", "CLAUDE_CONFIG_DIR=/c", "CODEX_HOME=relative", "XDG_CONFIG_HOME=/x"},
			[]string{"claude /c/skills", "codex /h/.codex/skills", "opencode /x/opencode/skills", "opencode /x/opencode/skill", "goose /x/goose/skills"}},
		{"folders of tools", "darwin", "/p", []string{"gibberish"}, linux, []string{
			"gibberish /h/.config/gibberish/skills", "gibberish /h/.config/gibb.eri.sh/tools", "gibberish */h/.config/gibb.eri.sh/tools.d",
		}},
		{"Windows", "windows", `C:\p`, []string{"gemini", "cursor"}, []string{`UserProfile=C:\ann`}, []string{
			`gemini +C:\p\.gemini\skills`, `gemini C:\ann\.gemini\skills`, `cursor +C:\p\.cursor\skills`, `cursor C:\ann\.cursor\skills`,
		}},
	}
	for _, tt := range tests {
		var got []string
		for _, f := range CompatFolders(tt.names, tt.environ, tt.goos, tt.project) {
			line := f.Name + " "
			if f.Project {
				line += "+"
			}
			if f.Tools {
				line += "*"
			}
			got = append(got, line+f.Path)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: CompatFolders (-want +got):\n%s", tt.name, diff)
		}
	}
	if names := CompatNames(); !slices.IsSorted(names) || len(names) != 10 {
		t.Errorf("CompatNames() = %v, want ten names, sorted", names)
	}
}
