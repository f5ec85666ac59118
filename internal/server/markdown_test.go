package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const markdownPack = `
-- notes/SKILL.md --
---
name: notes
version: 1.0.0
description: Notes. Use for notes.
read_only: true
timeout: 20
---

# Notes

### show

Show how it was called.

#### Parameters

| Name | Type | Required | Description |
|------|------|----------|-------------|
| text | string | yes | Anything |
| loud | boolean | no | Shout |
| count | integer | no | How often (default: 2) |

#### Command

` + "```bash\n./show.sh {{text}} \\\n  {{loud:--loud}} -n {{count}} 'a  b' $HOME\n```" + `

### fail

Print much, then fail.

#### Parameters

None.

#### Command

` + "```bash\n./fail.sh\n```" + `

### json

Print JSON.

#### Parameters

None.

#### Command

` + "```bash\n./json.sh\n```" + `
-- notes/show.sh --
#!/bin/sh
for a in "$@"; do printf '[%s]' "$a"; done
echo
echo "to standard error" >&2
echo "$PWD"
echo "$GIBBERISH_SKILL_NAME|$GIBBERISH_SKILL_DIR|$GIBBERISH_MODE"
-- notes/fail.sh --
#!/bin/sh
i=0
while [ $i -lt 1000 ]; do echo "line $i"; i=$((i+1)); done
sleep 0.3
echo "the end" >&2
exit 3
-- notes/json.sh --
#!/bin/sh
echo '{"status": "ok", "count": 5}'
`

// A tool that is declared in Markdown runs as specs/skill-md-tools says, and
// its result has the shape of section 4 there.
func TestMarkdownToolRuns(t *testing.T) {
	needShell(t)
	project := t.TempDir()
	w := newWorld(t, markdownPack, func(s *setup) { s.server.Project, s.server.Mode = project, "Dev" })
	w.answer = decide("once")
	w.initialize()
	w.enable("notes")
	if want, got := []string{"notes__fail", "notes__json", "notes__show"}, w.listed(); !cmp.Equal(want, got[len(got)-3:]) {
		t.Errorf("tools/list = %q, want %q at its end", got, want)
	}

	got := w.ok("notes__show", map[string]any{"text": "a; $(id) `id`\n{{count}}", "loud": true})
	pack := filepath.Join(w.root, "notes")
	want := "[a; $(id) `id`\n{{count}}][--loud][-n][2][a  b][$HOME]\n" + project + "\nnotes|" + pack + "|Dev\n"
	// It is not defined where exactly standard error appears in the mixed output.
	text, both := got["output"].(string)
	both = both && strings.Contains(text, "to standard error\n")
	if strings.Replace(text, "to standard error\n", "", 1) != want || !both || got["success"] != true || got["ok"] != true || got["exit_code"] != 0.0 || got["stdout"] != nil || got["stderr"] != nil {
		t.Errorf("notes__show = %v, want the output %q", got, want)
	}

	failed, isError := w.tool("notes__fail", nil)
	output, _ := failed["output"].(string)
	if !isError || failed["success"] != false || failed["exit_code"] != 3.0 || failed["truncated"] != true {
		t.Errorf("notes__fail = %v (isError %v), want a failure with exit code 3", failed, isError)
	}
	// Section 4.2: the first and the last 2 KiB are shown, and what is between is
	// named.
	if !strings.HasPrefix(output, "line 0\n") || !strings.HasSuffix(output, "line 999\nthe end\n") || !strings.Contains(output, "truncated") || len(output) > 4096+100 {
		t.Errorf("notes__fail has the output %q (%d bytes), want its first and last 2 KiB", output, len(output))
	}

	parsed := w.ok("notes__json", nil)
	if diff := cmp.Diff(map[string]any{"status": "ok", "count": 5.0}, parsed["parsed"]); diff != "" {
		t.Errorf("notes__json: parsed: -want +got\n%s", diff)
	}

	w.fails("invalid_arguments", "notes__show", map[string]any{})
	w.fails("invalid_arguments", "notes__show", map[string]any{"text": "--help"})
	if len(w.asked) != 4 {
		t.Errorf("%d questions, want one for enabling and one for each of three runs", len(w.asked))
	}
}

// The real files run, if their programs are installed.
func TestMarkdownRealFilesRun(t *testing.T) {
	for _, tt := range []struct {
		file, tool, program string
		args                map[string]any
		want                string // in the output
	}{
		{"files", "list_directory", "ls", map[string]any{}, "hello.txt"},
		{"files", "list_directory", "ls", map[string]any{"all": true, "path": "sub dir"}, "inner"},
		{"files", "read_file", "head", map[string]any{"path": "hello.txt", "lines": 1}, "one"},
		{"files", "word_count", "wc", map[string]any{"path": "hello.txt"}, "2"},
		{"files", "file_info", "file", map[string]any{"path": "hello.txt"}, "ASCII text"},
		{"git", "git_status", "git", map[string]any{}, "?? hello.txt"},
		{"git", "git_diff", "git", map[string]any{"staged": true}, ""},
		{"git", "git_branch", "git", map[string]any{"all": true}, ""},
		{"git", "git_stash_list", "git", map[string]any{}, ""},
	} {
		t.Run(tt.file+"/"+tt.tool, func(t *testing.T) {
			src, err := os.ReadFile(filepath.FromSlash("../../../shared/data/markdown-tools/" + tt.file + ".SKILL.md"))
			if err != nil {
				if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
					t.Fatalf("corpora: %v", err)
				}
				t.Skipf("corpora: %v", err)
			}
			if _, err := os.Stat("/usr/bin/" + tt.program); err != nil {
				t.Skipf("%s: not in /usr/bin", tt.program)
			}
			project := t.TempDir()
			plant(t, project, "-- hello.txt --\none\ntwo\n-- sub dir/inner --\n")
			if tt.program == "git" {
				plant(t, project, "-- .git/HEAD --\nref: refs/heads/main\n-- .git/config --\n[core]\n\trepositoryformatversion = 0\n-- .git/objects/info/x --\n-- .git/refs/heads/x --\n")
				for _, name := range []string{"objects/info/x", "refs/heads/x"} {
					if err := os.Remove(filepath.Join(project, ".git", filepath.FromSlash(name))); err != nil {
						t.Fatal(err)
					}
				}
			}
			w := newWorld(t, "", func(s *setup) { s.server.Project = project })
			w.put(tt.file+"/SKILL.md", string(src), 0o644)
			if err := w.lib.Rescan(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.answer = decide("once")
			w.initialize()
			w.enable(tt.file)
			got := w.ok(tt.file+"__"+tt.tool, tt.args)
			output, _ := got["output"].(string)
			if got["success"] != true || !strings.Contains(output, tt.want) {
				b, _ := json.Marshal(got)
				t.Errorf("%s %v = %s, want %q in its output", tt.tool, tt.args, b, tt.want)
			}
		})
	}
}
