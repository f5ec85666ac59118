package server

import (
	"path/filepath"
	"strings"
	"testing"
)

// FR-021, FR-027, FR-028 and the edge cases of open_docs: the same skill with and
// without arguments, and one that does not exist.
func TestSkillkitOpenDocs(t *testing.T) {
	const document = "---\nname: Code Reviewer\ndescription: Reviews.\nallowed-tools: Read, Grep\n---\nReview $ARGUMENTS."
	w := newWorld(t, "-- code-reviewer/SKILL.md --\n"+document)
	w.put("code-reviewer/SKILL.md", document, 0o444)
	w.answer = decide("once")
	w.initialize()
	content := func(args map[string]any) string {
		return w.ok("capability_packs_open_docs", args)["entry_doc"].(map[string]any)["content"].(string)
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(w.root, "code-reviewer"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		arguments any
		want      string
	}{
		{nil, "Review $ARGUMENTS."},
		{"", "Base directory for this skill: " + dir + "\n\nReview ."},
		{"main.py", "Base directory for this skill: " + dir + "\n\nReview main.py."},
	} {
		args := map[string]any{"pack_id": "CODE-reviewer"}
		if tt.arguments != nil {
			args["arguments"] = tt.arguments
		}
		if got := content(args); got != tt.want {
			t.Errorf("open_docs with arguments %v = %q, want %q", tt.arguments, got, tt.want)
		}
	}
	if got := content(map[string]any{"pack_id": "code-reviewer"}); got != "Review $ARGUMENTS." {
		t.Errorf("open_docs = %q, want the document as it was", got)
	}
	if e := w.fails("not_found", "capability_packs_open_docs", map[string]any{"pack_id": "code-writer"}); !strings.Contains(e["message"].(string), `"code-writer"`) {
		t.Errorf("open_docs = %v, want the name of the skill that is not there", e)
	}
	// allowed-tools grants nothing: reading still asks.
	asked := len(w.asked)
	w.ok("capability_packs_read_file", map[string]any{"pack_id": "code-reviewer", "path": "SKILL.md"})
	if len(w.asked) != asked+1 {
		t.Errorf("read_file asked %d times, want once", len(w.asked)-asked)
	}
}

// FR-023 and FR-025 for a document of several pages: every placeholder is filled in,
// even where a page would end inside one, and the tail appears once, at the end.
func TestSkillkitPages(t *testing.T) {
	const line = "Much to read about $ARGUMENTS.\n"
	for name, body := range map[string]string{
		"a place on every page":    strings.Repeat(line, 5000),
		"a place at the beginning": line + strings.Repeat("Nothing here.\n", 8000),
		"a place at the end":       strings.Repeat("Nothing here.\n", 8000) + line,
		"no place":                 strings.Repeat("Nothing here.\n", 8000),
		"almost a place":           strings.Repeat("$ARGUMENT $ARG", 8000),
	} {
		w := newWorld(t, "")
		w.put("long/SKILL.md", "---\nname: long\ndescription: Long.\n---\n"+body, 0o644)
		if err := w.lib.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.answer = decide("chat")
		w.initialize()
		var got strings.Builder
		offset, pages := any(0), 0
		for offset != nil {
			doc := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "long", "arguments": "a.go", "offset": offset})["entry_doc"].(map[string]any)
			got.WriteString(doc["content"].(string))
			offset, pages = doc["next_offset"], pages+1
		}
		dir, err := filepath.EvalSymlinks(filepath.Join(w.root, "long"))
		if err != nil {
			t.Fatal(err)
		}
		want := "Base directory for this skill: " + dir + "\n\n" + strings.ReplaceAll(body, "$ARGUMENTS", "a.go")
		if !strings.Contains(body, "$ARGUMENTS") {
			want += "\n\nARGUMENTS: a.go"
		}
		if pages < 3 || got.String() != want {
			t.Errorf("%s: %d pages of %d bytes together, want at least 3 of %d; the end is %q", name, pages, got.Len(), len(want), got.String()[max(0, got.Len()-60):])
		}
		w.fails("invalid_arguments", "capability_packs_open_docs", map[string]any{"pack_id": "long", "offset": 10_000_000})
		w.fails("invalid_arguments", "capability_packs_open_docs", map[string]any{"pack_id": "long", "offset": -1})
	}
}
