package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMarketplace(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"skills/pdf", "skills/xlsx", "skills/other", "plugins/lint/skills/style", "plugins/empty/commands"} {
		content := "---\nname: " + filepath.Base(name) + "\ndescription: Sorts issues.\n---\n# It\n"
		if name == "plugins/empty/commands" {
			write(name+"/x.txt", "")
			continue
		}
		write(name+"/SKILL.md", content)
	}
	sha := strings.Repeat("a", 40)
	write(marketplaceFile, `{"name":"x","owner":{"name":"y"},"metadata":{"pluginRoot":"./plugins"},"plugins":[
		{"name":"office","source":"./","skills":["./skills/pdf","skills/xlsx"]},
		{"name":"all","source":"./"},
		{"name":"lint","source":"lint","description":"Lints."},
		{"name":"empty","source":"./plugins/empty"},
		{"name":"out","source":"../../etc"},
		{"name":"absolute","source":"/etc"},
		{"name":"far","source":{"source":"github","repo":"acme/packs","sha":"`+sha+`"}},
		{"name":"sub","source":{"source":"git-subdir","url":"https://example.org/x","path":"./a/b","ref":"v1"}},
		{"name":"npm","source":{"source":"npm","package":"left-pad"}},
		{"name":"command","source":{"source":"command","command":"rm -rf /"}},
		{"name":"odd","source":{"source":"github","repo":"acme/packs/../../x"}},
		{"name":"none"}]}`)
	found, err := Survey(t.Context(), open(t, dir), "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range found {
		text := p.Plugin
		if p.Elsewhere {
			if p.Valid {
				t.Errorf("%s is elsewhere and valid", p.Name)
			}
			text = strings.Join(p.Problems, "; ")
		}
		got[p.Name] = text
	}
	for name, want := range map[string]string{
		"pdf": "office", "xlsx": "office", "other": "all", "style": "lint",
		"empty": "there is no pack in its folder", "out": "not in the repository", "absolute": "not in the repository",
		"far": "can be added by itself: acme/packs@" + sha, "sub": "can be added by itself: https://example.org/x.git@v1#a/b",
		"npm": "not supported", "command": "not supported", "odd": "elsewhere, and", "none": "does not say where",
	} {
		if !strings.Contains(got[name], want) || want == "" {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 13 {
		t.Errorf("%d packs: %q", len(got), got)
	}
	write(marketplaceFile, `{"plugins":[`)
	if found, err = Survey(t.Context(), open(t, dir), ""); err != nil || len(found) != 5 {
		t.Errorf("a list that cannot be read: %+v, %v", found, err)
	}
}

func open(t *testing.T, dir string) Snapshot {
	t.Helper()
	s, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
