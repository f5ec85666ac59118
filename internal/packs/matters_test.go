package packs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/byname"
)

// Files for which Matters is false do not change what Scan finds.
func TestMatters(t *testing.T) {
	const doc = "---\nname: NAME\ndescription: Does it.\n---\n"
	const tool = `{"name": "NAME", "description": "Does it.", "inputSchema": {"type": "object"}, "command": {"program": "true"}}`
	files := []string{
		"a/SKILL.md", "a/run.sh", "a/README.md", "a/references/guide.md", "a/references/deep/other.md", "a/inner/skill.md", "a/tools.json", "a/tools/x.tool.json", "a/data/x.json",
		"b/README.md", "b/notes.md", "b/docs/guide.md", "c/Skill.MD", "c/other.md", "d/page.md", "d/e/SKILL.md", "d/e/f/page.md", "tools/loose.tool.json",
		"plugin/.claude-plugin/other.txt", "plugin/agents/x.md", "plugin/skills/y/SKILL.md", "plugin2/plugin.json", "plugin2/commands/z.md", "g/broken/SKILL.md", "g/broken/h/page.md",
	}
	all, some := t.TempDir(), t.TempDir()
	left := 0
	for _, name := range files {
		text := strings.ReplaceAll(doc, "NAME", strings.ReplaceAll(strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name))), "/", "-"))
		switch {
		case strings.HasSuffix(name, ".json"):
			text = strings.ReplaceAll(tool, "NAME", "x")
		case strings.Contains(name, "broken/S"):
			text = "---\n:\n"
		}
		inPack := slices.ContainsFunc(files, func(other string) bool {
			dir := filepath.Dir(other)
			return byname.IsSkill(filepath.Base(other)) && strings.HasPrefix(filepath.Dir(name), dir+"/")
		})
		to := []string{all}
		if byname.Matters(name, inPack) {
			to = append(to, some)
		} else {
			left++
		}
		for _, root := range to {
			file := filepath.Join(root, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := func(dir string) (lines []string) {
		c, err := Scan(t.Context(), Options{Roots: []Root{{Dir: dir, Source: "test"}}, Patient: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.All() {
			line := strings.Join([]string{p.ID, p.Entry, p.Description, strings.Join(p.ToolFiles, " ")}, " | ")
			if !p.Valid {
				line += " | not valid"
			}
			lines = append(lines, line)
		}
		return lines
	}
	want, got := found(all), found(some)
	if len(want) < 6 || left < 5 {
		t.Fatalf("%d packs, and %d files that do not matter: the test tries too little: %q", len(want), left, want)
	}
	if !slices.Equal(got, want) {
		t.Errorf("without the files that do not matter: %q\nwith them: %q", got, want)
	}
}
