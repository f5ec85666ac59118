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
		path      string
		real      []string // none: it is left out
		protected []string
	}{
		{"project", []string{"project"}, []string{"project"}},
		{"link", []string{"project"}, []string{"project", "link"}},
		{"link/.git/hooks", []string{"project/.git/hooks"}, []string{"project/.git/hooks"}},
		{"link/.git/hooks/", []string{"project/.git/hooks"}, []string{"project/.git/hooks"}},
		{"link/.envrc", nil, []string{"project/.envrc"}},
		{"link/.github/a/b", nil, []string{"project/.github/a/b"}},
		{"link/CLAUDE.md", []string{"project/AGENTS.md"}, []string{"project/AGENTS.md", "project/CLAUDE.md"}},
		{"link/.vscode", []string{"elsewhere"}, []string{"elsewhere", "project/.vscode"}},
		{"link/.vscode/tasks.json", nil, []string{"elsewhere/tasks.json"}},
		{"link/.idea", nil, []string{"project/.idea"}},
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
		got, err = RealProtected(twice, filepath.EvalSymlinks)
		if diff := cmp.Diff(abs(tt.protected), got); err != nil || diff != "" {
			t.Errorf("RealProtected(%q) = %v (-want +got):\n%s", tt.path, err, diff)
		}
	}
	if got, err := Real([]string{in("project/loop")}, filepath.EvalSymlinks); err == nil {
		t.Errorf("Real of a loop = %q, want an error", got)
	}
	if got, err := RealProtected([]string{in("project/loop")}, filepath.EvalSymlinks); err != nil || len(got) != 1 || got[0] != in("project/loop") {
		t.Errorf("RealProtected of a loop = %q, %v, want the link itself", got, err)
	}
	if got, err := RealProtected([]string{in("project/loop/x")}, filepath.EvalSymlinks); err == nil {
		t.Errorf("RealProtected below a loop = %q, want an error", got)
	}
}
