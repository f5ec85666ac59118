package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// Documents that are not UTF-8 are given as text, with a note, page by page, without
// the frontmatter.
func TestOtherCharsets(t *testing.T) {
	const document = "---\r\nname: old\r\ndescription: Gr\u00f6\u00dfe.\r\n---\r\nSt\u00fcck f\u00fcr St\u00fcck.\r\n"
	var wide, latin []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + document)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for _, r := range document {
		latin = append(latin, byte(r))
	}
	for name, data := range map[string][]byte{"UTF-16": wide, "Latin-1": latin} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "-- old/x --\n")
			w.answer = decide("once")
			if err := os.WriteFile(filepath.Join(w.root, "old", "SKILL.md"), data, 0o644); err != nil {
				t.Fatal(err)
			}
			w.refresh()
			w.initialize()
			listed := objects(w.ok("capability_packs_list", nil)["packs"])
			if len(listed) != 1 || listed[0]["description"] != "Gr\u00f6\u00dfe." {
				t.Fatalf("list = %v, want the description as text", listed)
			}
			doc := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "old"})["entry_doc"].(map[string]any)
			if doc["content"] != "St\u00fcck f\u00fcr St\u00fcck.\r\n" || !strings.Contains(doc["note"].(string), name) {
				t.Errorf("open_docs = %v, want the body and a note about %s", doc, name)
			}
			var all strings.Builder
			for offset, more := 0.0, true; more; {
				page := w.ok("capability_packs_read_file", map[string]any{"pack_id": "old", "path": "SKILL.md", "offset": offset, "length": 7})
				if page["encoding"] != "utf-8" || !strings.Contains(page["note"].(string), name) {
					t.Fatalf("read_file = %v, want text and a note", page)
				}
				all.WriteString(page["content"].(string))
				offset, _ = page["next_offset"].(float64)
				more = page["truncated"].(bool)
			}
			if got := strings.TrimPrefix(all.String(), "\ufeff"); got != document {
				t.Errorf("all pages are %q, want %q", got, document)
			}
		})
	}
}
