package change

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func pack(t *testing.T, files map[string]string) *Version {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "triage")
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestBetween(t *testing.T) {
	document := "---\nname: triage\ndescription: Sorts issues.\n---\n"
	old := pack(t, map[string]string{
		"SKILL.md": document, "gone.txt": "x", "same.txt": "x",
		"tools.json": `{"tools": [{"name": "sort", "description": "Sorts.", "command": ["sort", "{{file}}"], "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}},
			{"name": "old", "description": "Goes.", "command": ["true"]}]}`,
	})
	now := pack(t, map[string]string{
		"SKILL.md": "---\nname: triage\ndescription: Sorts all.\n---\n", "same.txt": "x", "new.txt": "x",
		"tools.json": `{"tools": [{"name": "sort", "description": "Sorts.", "command": ["sort", "-u", "{{file}}"], "policy": {"network": "full"}, "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}},
			{"name": "new", "description": "Comes.", "command": ["true"]}]}`,
	})
	want := &Change{
		Pack: []string{"description: Sorts issues. → Sorts all."},
		Files: []File{
			{Path: "SKILL.md", Kind: Changed}, {Path: "gone.txt", Kind: Removed}, {Path: "new.txt", Kind: Added}, {Path: "tools.json", Kind: Changed},
		},
		Tools: []Tool{
			{"new", Added, []string{"runs: true", "network: none", "folder: workspace", "writes: yes"}},
			{"sort", Changed, []string{"runs: sort {{file}} → sort -u {{file}}", "network: none → full"}},
			{"old", Removed, []string{}},
		},
	}
	if diff := cmp.Diff(want, Between(old, now)); diff != "" {
		t.Errorf("Between (-want +got):\n%s", diff)
	}
	if c := Between(now, now); !c.Empty() {
		t.Errorf("a version and itself differ: %+v", c)
	}
	if c := Between(nil, old); len(c.Files) != 4 || len(c.Tools) != 2 || c.Tools[0].Kind != Added {
		t.Errorf("a new pack: %+v", c)
	}
}
