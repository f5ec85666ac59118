package protect

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReason(t *testing.T) {
	n, err := New([]string{"*.secret", "deploy/**", "x/y.txt"}, []string{"CODEOWNERS"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{
		"CLAUDE.md", "a/b/claude.md", "AGENTS.md", "agents.MD.", "GEMINI.md", ".claude/settings.json", "x/.cursor/rules/a", ".codex", ".mcp.json",
		".vscode/tasks.json", ".idea/x", ".helix/languages.toml", ".zed/tasks.json", ".envrc", "d/.envrc", ".hg/hgrc", ".husky/pre-commit",
		".pre-commit-config.yaml", ".npmrc", ".yarnrc.yml", ".yarnrc", "pip.conf", ".gitmodules", "sub/.gitattributes", ".packs/x/SKILL.md",
		".copilot/mcp.json", ".github/workflows/ci.yml", "gradle/wrapper/gradle-wrapper.jar", "sub/gradle/wrapper", "GITMOD~1", "gi7eba~1",
		".git", ".GIT", "a/.git/config", ".git.", ".git ", ".git. . ", "git~1", "GIT~1/config", ".g\u200cit", ".\u200dgit", ".git::$INDEX_ALLOCATION/x",
		".git:x", "．git", ".ｇｉｔ", ".GiT", `.git\config`, `a\.git\config`, "my.secret", "a/deploy/b", "deploy", "x/y.txt", "a/x/y.txt", "ＡＧＥＮＴＳ.md", "AGENTS\u200c.md",
	} {
		if n.Reason(p) == "" {
			t.Errorf("Reason(%q) is empty", p)
		}
	}
	for _, p := range []string{
		"README.md", "src/main.go", "Makefile", "package.json", ".gitignore", ".github/ISSUE_TEMPLATE.md", "git", "a.git/x", "foo.git", "y.txt", "CODEOWNERS",
		"claude", "claude.md.txt", "docs/agents.html", "wrapper/x", "github", ".gitkeep", ".editorconfig", "vscode/x", "日本", "\xff",
	} {
		if why := n.Reason(p); why != "" {
			t.Errorf("Reason(%q) = %q, want none", p, why)
		}
	}
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "/", "*", "**", "a//b", "a/../b", "["} {
		if _, err := New([]string{bad}, nil); err == nil {
			t.Errorf("New accepts the pattern %q", bad)
		}
	}
	if _, err := New(nil, []string{"no such name"}); err == nil {
		t.Error("New takes a name out that is not in the list")
	}
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if name != "" && seen[name] && !strings.HasPrefix(name, "#") {
			t.Errorf("%q is in the list twice", name)
		}
		seen[name] = true
	}
}

// What is folded is a fold of itself, so that comparing folds is enough.
func FuzzFold(f *testing.F) {
	for _, s := range []string{".git", "．ＧＩＴ", "a\u0301", "İ", "ß", "ǅ", ".git::$DATA", "Kelvin \u212a"} {
		f.Add(s)
	}
	n, err := New(nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if IsDotGit(s) && n.Reason(s) == "" {
			t.Errorf("%q is a spelling of .git, and not protected", s)
		}
		if a, b := Fold(s), Fold(strings.ToLower(s)); utf8.ValidString(s) && a != b {
			t.Errorf("Fold(%q) = %q, and in lower case %q", s, a, b)
		}
	})
}
