//go:build unix

package seatbelt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRealPaths(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{"project/.git/hooks", "elsewhere"} {
		if err := os.MkdirAll(in(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(in("project/AGENTS.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"link": "project", "project/CLAUDE.md": "AGENTS.md", "project/.vscode": "../elsewhere", "project/.idea": "nowhere", "project/loop": "loop",
	} {
		if err := os.Symlink(to, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		path string
		real []string // none: it is left out
	}{
		{"project", []string{"project"}},
		{"link", []string{"project"}},
		{"link/.git/hooks", []string{"project/.git/hooks"}},
		{"link/.git/hooks/", []string{"project/.git/hooks"}},
		{"link/.envrc", nil},
		{"link/.github/a/b", nil},
		{"link/CLAUDE.md", []string{"project/AGENTS.md"}},
		{"link/.vscode", []string{"elsewhere"}},
		{"link/.vscode/tasks.json", nil},
		{"link/.idea", nil},
	} {
		abs := func(names []string) []string {
			var all []string
			for _, name := range names {
				all = append(all, in(name))
			}
			return all
		}
		twice := []string{root + "/" + tt.path, root + "/" + tt.path}
		got, err := Real(twice, filepath.EvalSymlinks)
		if diff := cmp.Diff(abs(tt.real), got); err != nil || diff != "" {
			t.Errorf("Real(%q) = %v (-want +got):\n%s", tt.path, err, diff)
		}
	}
	if got, err := Real([]string{in("project/loop")}, filepath.EvalSymlinks); err == nil {
		t.Errorf("Real of a loop = %q, want an error", got)
	}
}
