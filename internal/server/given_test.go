package server

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
)

// A meddler is a log that calls a function right before it writes the next decision:
// after the call was prepared, and before it is done.
type meddler struct {
	gate.Recorder
	do func()
}

func (m *meddler) AppendLazy(e audit.Entry) error {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return m.Recorder.AppendLazy(e)
}

// Under an answer for the chat, exactly what was digested is given: bytes that were
// compared with the digest are given unchanged, whatever happens to the files, and
// nothing else is given if the pack has changed at the end.
func TestGivenUnderAGrant(t *testing.T) {
	const tree = `
-- given/SKILL.md --
---
name: given
description: G.
---
Entry.
-- given/docs/one.md --
One.
-- given/real.txt --
Real.
-- tools/loose.tool.json --
{"name": "loose", "description": "L.", "parameters": {}, "command": {"program": "true"}}
`
	big := strings.Repeat("x", 8<<20+1) // too large to compare each page
	for name, c := range map[string]struct {
		tool string
		args map[string]any
		do   func(w *world)
		want string // a part of the answer; empty: denied
		docs string // the additional document; link.txt
	}{
		"the entry document":                {"open_docs", map[string]any{"pack_id": "given"}, func(w *world) { w.put("given/SKILL.md", "---\nname: given\ndescription: G.\n---\nOther.\n", 0o644) }, "Entry.", ""},
		"a document that is a link":         {"open_docs", map[string]any{"pack_id": "given"}, func(w *world) { w.put("given/real.txt", "Other.\n", 0o644) }, "Real.", ""},
		"a file":                            {"read_file", map[string]any{"pack_id": "given", "path": "docs/one.md"}, func(w *world) { w.put("given/docs/one.md", "Other.\n", 0o644) }, "One.", ""},
		"a link":                            {"read_file", map[string]any{"pack_id": "given", "path": "link.txt"}, func(w *world) { w.put("given/real.txt", "Other.\n", 0o644) }, "Real.", ""},
		"a folder":                          {"read_file", map[string]any{"pack_id": "given", "path": "docs"}, func(w *world) { w.put("given/docs/two.md", "Two.\n", 0o644) }, "", ""},
		"a large file":                      {"read_file", map[string]any{"pack_id": "given", "path": "big.txt"}, func(w *world) { w.put("given/big.txt", "y"+big[1:], 0o644) }, "", ""},
		"a large document beside the entry": {"open_docs", map[string]any{"pack_id": "given"}, func(w *world) { w.put("given/big.txt", "y"+big[1:], 0o644) }, "", "big.txt"},
		"a loose tool": {"open_docs", map[string]any{"pack_id": "loose"}, func(w *world) {
			w.put("tools/loose.tool.json", `{"name": "loose", "description": "L.", "parameters": {}, "command": {"program": "false"}}`, 0o644)
		}, "", ""},
		"a pack that is detached": {"open_docs", map[string]any{"pack_id": "given"}, func(w *world) {
			change(w.t, w.store, func(s *attach.Set) { s.Detach("given", time.Now()) })
		}, "", ""},
		"a pack that is detached and attached": {"read_file", map[string]any{"pack_id": "given", "path": "docs/one.md"}, func(w *world) {
			change(w.t, w.store, func(s *attach.Set) { s.Detach("given", time.Now()) })
			w.lib.Catalog(w.t.Context())
			dir, err := filepath.EvalSymlinks(filepath.Join(w.root, "given"))
			if err != nil {
				w.t.Fatal(err)
			}
			change(w.t, w.store, func(s *attach.Set) { s.Attach("given", attach.Entry{Dir: dir, Since: time.Now()}) })
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := attach.Open(filepath.Join(t.TempDir(), "attached.json"))
			var log *meddler
			w := newWorld(t, tree, func(s *setup) {
				s.store = store
				s.packs.Roots[0].Docs = map[string][]string{"given": {cmp.Or(c.docs, "link.txt")}}
				log = &meddler{Recorder: s.gate.Log}
				s.gate.Log = log
			})
			w.put("given/big.txt", big, 0o644)
			if err := os.Symlink("real.txt", filepath.Join(w.root, "given", "link.txt")); err != nil {
				t.Skipf("symlinks: %v", err)
			}
			w.answer = decide("chat")
			w.initialize()
			name := "capability_packs_" + c.tool
			w.ok(name, c.args)
			asked := len(w.asked)

			log.do = func() { c.do(w) }
			out, isError := w.tool(name, c.args)
			if log.do != nil || len(w.asked) != asked {
				t.Fatalf("nothing happened in between, or a person was asked: %q", w.asked[asked:])
			}
			if c.want != "" {
				if isError || !strings.Contains(fmt.Sprint(out), c.want) {
					t.Errorf("%s %v = %v, want what was digested, %q", c.tool, c.args, out, c.want)
				}
				return
			}
			e, _ := out["error"].(map[string]any)
			if e["code"] != "denied" || !strings.Contains(e["message"].(string), "changed after it was allowed") {
				t.Errorf("%s %v = %v, want that it is withheld", c.tool, c.args, out)
			}
		})
	}
}
