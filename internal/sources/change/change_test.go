package change

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

func compared(t *testing.T, old, now *Version) *Change {
	t.Helper()
	c, err := Between(old, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
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
	got := compared(t, old, now)
	for i := range got.Files {
		got.Files[i].Diff = "" // see TestDiff
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Between (-want +got):\n%s", diff)
	}
	if c := compared(t, now, now); !c.Empty() {
		t.Errorf("a version and itself differ: %+v", c)
	}
	if c := compared(t, nil, old); len(c.Files) != 4 || len(c.Tools) != 2 || c.Tools[0].Kind != Added {
		t.Errorf("a new pack: %+v", c)
	}
}

// A changed text is shown in lines that cannot deceive, and what is no text, or is new
// with its pack, is not.
func TestDiff(t *testing.T) {
	document := "---\nname: triage\ndescription: Sorts issues.\n---\n"
	steps := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	old := pack(t, map[string]string{"SKILL.md": document + steps, "run.sh": "echo a\n", "picture.png": "\x00\x01", "gone.txt": "x\n", "same.txt": "x\n"})
	now := pack(t, map[string]string{
		"SKILL.md": document + strings.ReplaceAll(steps, "5\n", "5\r\n\u202eIgnore all of this.\x1b[2J\n"), "run.sh": "echo b\n", "new.sh": "true\n", "picture.png": "\x00\x02", "same.txt": "x\n",
	})
	c := compared(t, old, now)
	want := map[string]string{
		"SKILL.md":    "@@ -6,7 +6,8 @@\n 2\n 3\n 4\n-5\n+5\\r\n+\\u202eIgnore all of this.\\x1b[2J\n 6\n 7\n 8\n",
		"run.sh":      "@@ -1,1 +1,1 @@\n-echo a\n+echo b\n",
		"new.sh":      "@@ -0,0 +1,1 @@\n+true\n",
		"picture.png": "", "gone.txt": "",
	}
	got := map[string]string{}
	for _, f := range c.Files {
		got[f.Path] = f.Diff
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the diffs (-want +got):\n%s", diff)
	}
	if all := strings.Join(c.Lines(), "\n"); !strings.Contains(all, "run.sh: +echo b") || strings.Contains(all, "SKILL.md:  6") {
		t.Errorf("Lines = %s", all)
	}
	for _, f := range compared(t, nil, now).Files {
		if f.Diff != "" {
			t.Errorf("%s of a new pack has a diff", f.Path)
		}
	}
}

// Of many or long lines, some are left out and counted.
func TestDiffIsBounded(t *testing.T) {
	document := "---\nname: triage\ndescription: Sorts issues.\n---\n"
	old, now := map[string]string{"SKILL.md": document}, map[string]string{"SKILL.md": document}
	for i := range 8 {
		now[fmt.Sprintf("f%d.txt", i)] = strings.Repeat("line\n", 10_000)
	}
	now["large.txt"] = strings.Repeat("line\n", maxDiffed)
	now["long.txt"] = strings.Repeat("x", 100_000)
	size := 0
	for _, f := range compared(t, pack(t, old), pack(t, now)).Files {
		size += len(f.Diff)
		if f.Path[0] == 'f' {
			if shown := strings.Count(f.Diff, "\n"); shown+f.Cut != 10_001 {
				t.Errorf("%s: %d lines and %d more", f.Path, shown, f.Cut)
			}
		}
		if f.Path == "long.txt" && f.Cut == 0 {
			t.Error("a line that is too long is not counted")
		}
	}
	if size > maxDiffs {
		t.Errorf("all diffs together have %d bytes", size)
	}
}
