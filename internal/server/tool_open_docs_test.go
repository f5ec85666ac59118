package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

const docsPacks = `
-- place/SKILL.md --
---
name: place
description: Has a place for arguments.
---
Do $ARGUMENTS, then $ARGUMENTS again.
-- plain/SKILL.md --
---
name: plain
description: Has none.
---
Do it.
-- plain/docs/one.md --
One.
-- plain/docs/two.md --
Two.
`

func TestOpenDocs(t *testing.T) {
	w := newWorld(t, docsPacks, func(s *setup) {
		s.packs.Roots[0].Docs = map[string][]string{"plain": {"docs/one.md", "docs/two.md"}}
	})
	w.answer = decide("once")
	w.initialize()
	base := func(pack string) string {
		dir, err := filepath.EvalSymlinks(filepath.Join(w.root, pack))
		if err != nil {
			t.Fatal(err)
		}
		return "Base directory for this skill: " + dir + "\n\n"
	}
	// specs/skillkit.md, user story 3.
	for _, c := range []struct {
		name string
		args map[string]any
		want string
	}{
		{"without arguments, as it is", map[string]any{"pack_id": "place"}, "Do $ARGUMENTS, then $ARGUMENTS again.\n"},
		{"every place is filled", map[string]any{"pack_id": "place", "arguments": "x.go"}, base("place") + "Do x.go, then x.go again.\n"},
		{"empty arguments fill too", map[string]any{"pack_id": "place", "arguments": ""}, base("place") + "Do , then  again.\n"},
		{"no place: at the end", map[string]any{"pack_id": "plain", "arguments": "x.go"}, base("plain") + "Do it.\n\n\nARGUMENTS: x.go"},
		{"no place, empty: nothing is added", map[string]any{"pack_id": "plain", "arguments": ""}, base("plain") + "Do it.\n"},
		{"what is filled in is not looked at again", map[string]any{"pack_id": "place", "arguments": "$ARGUMENTS"}, base("place") + "Do $ARGUMENTS, then $ARGUMENTS again.\n"},
		{"letter case of the id", map[string]any{"pack_id": "PLACE"}, "Do $ARGUMENTS, then $ARGUMENTS again.\n"},
		{"null is no argument", map[string]any{"pack_id": "place", "arguments": nil}, "Do $ARGUMENTS, then $ARGUMENTS again.\n"},
	} {
		doc := w.ok("capability_packs_open_docs", c.args)["entry_doc"].(map[string]any)
		if doc["content"] != c.want || doc["path"] != "SKILL.md" || doc["truncated"] != nil {
			t.Errorf("%s: open_docs %v = %q, want %q", c.name, c.args, doc, c.want)
		}
	}
	more := objects(w.ok("capability_packs_open_docs", map[string]any{"pack_id": "plain"})["additional_docs"])
	if len(more) != 2 || more[0]["path"] != "docs/one.md" || more[1]["content"] != "Two.\n" {
		t.Errorf("additional_docs = %v, want the two that the user configured, in order", more)
	}
}

// A person is told what is hidden in each document that is given.
func TestOpenDocsHidden(t *testing.T) {
	for hidden, files := range map[string]string{
		"2 invisible characters": strings.Replace(docsPacks, "Two.", "Tw\u200bo\U000e0041.", 1),
		"1 invisible character":  strings.Replace(docsPacks, "Do it.", "Do\u200b it.", 1),
		"3 invisible characters": strings.NewReplacer("One.", "\x1bOne.", "Two.", "Two\u202e.", "Do it.", "Do\u200b it.").Replace(docsPacks),
	} {
		w := newWorld(t, files, func(s *setup) {
			s.packs.Roots[0].Docs = map[string][]string{"plain": {"docs/one.md", "docs/two.md"}}
		})
		w.answer = decide("once")
		w.initialize()
		w.ok("capability_packs_open_docs", map[string]any{"pack_id": "plain"})
		if len(w.asked) != 1 || !strings.Contains(w.asked[0], hidden) {
			t.Errorf("the question is %q, want %q in it", w.asked, hidden)
		}
	}
}

// A document that has grown over the limit since it was found is not opened.
func TestOpenDocsTooLarge(t *testing.T) {
	for _, size := range []int{3000, 256<<10 + 1} { // small enough to be kept during the call, and too large
		w := newWorld(t, docsPacks, func(s *setup) { s.packs.Limits.EntryDoc = 2000 })
		w.answer = decide("once")
		w.initialize()
		w.put("plain/SKILL.md", "---\nname: plain\ndescription: Has none.\n---\n"+strings.Repeat("x", size), 0o644)
		w.fails("too_large", "capability_packs_open_docs", map[string]any{"pack_id": "plain"})
	}
}

// A pack that changes while a person thinks is not given on their answer, neither as
// it was nor as it is. An answer for the chat covers the pack as it was.
func TestPackChangesWhileAsked(t *testing.T) {
	for name, args := range map[string]map[string]any{
		"capability_packs_open_docs": {"pack_id": "plain"},
		"capability_packs_read_file": {"pack_id": "plain", "path": "SKILL.md"},
	} {
		w := newWorld(t, docsPacks)
		edits := 0
		answer := func(decision string, edit bool) {
			w.answer = func(message string, schema map[string]any) map[string]any {
				if edit {
					edits++
					w.put("plain/docs/one.md", fmt.Sprintf("One, edit %d.\n", edits), 0o644)
				}
				return decide(decision)(message, schema)
			}
		}
		answer("once", true)
		w.initialize()
		w.fails("denied", name, args)
		answer("chat", true)
		w.fails("denied", name, args)
		answer("chat", false)
		w.ok(name, args)
		asked := len(w.asked)
		w.ok(name, args)
		if len(w.asked) != asked {
			t.Errorf("%s: asked again under an answer for the chat", name)
		}
		w.put("plain/docs/two.md", "Another two.\n", 0o644)
		w.ok(name, args)
		if len(w.asked) != asked+1 {
			t.Errorf("%s: asked %d times about a pack that changed under an answer for the chat, want once", name, len(w.asked)-asked)
		}
	}
}

func TestOpenDocsRefuses(t *testing.T) {
	w := newWorld(t, triage+pack("a/lint", "A.")+pack("b/lint", "B."))
	w.answer = decide("once")
	w.initialize()
	for _, c := range []struct {
		name, code string
		args       map[string]any
		message    string // a part of the message
		near       string
	}{
		{"unknown", "not_found", map[string]any{"pack_id": "triaje"}, `no pack "triaje"`, "triage"},
		{"ambiguous", "not_found", map[string]any{"pack_id": "lint"}, "may be any of", "a/lint"},
		{"empty", "invalid_arguments", map[string]any{"pack_id": ""}, `"pack_id" is required`, ""},
		{"missing", "invalid_arguments", map[string]any{}, `"pack_id" is required`, ""},
		{"wrong type", "invalid_arguments", map[string]any{"pack_id": 5}, "pack_id", ""},
		{"wrong type of arguments", "invalid_arguments", map[string]any{"pack_id": "triage", "arguments": []string{"a"}}, "arguments", ""},
		{"unknown argument", "invalid_arguments", map[string]any{"pack_id": "triage", "packid": "x"}, `no argument "packid"`, ""},
		{"argument in capitals", "invalid_arguments", map[string]any{"pack_id": "triage", "ARGUMENTS": "x"}, `no argument "ARGUMENTS"`, ""},
		{"traversal", "not_found", map[string]any{"pack_id": "../triage"}, "", "triage"},
		{"workspace is no pack", "not_found", map[string]any{"pack_id": "workspace"}, "", ""},
	} {
		e := w.fails(c.code, "capability_packs_open_docs", c.args)
		if !strings.Contains(e["message"].(string), c.message) || e["hint"] == nil {
			t.Errorf("%s: open_docs %v = %v, want %q and a hint", c.name, c.args, e, c.message)
		}
		if c.near != "" && !strings.Contains(strings.Join(texts(e["near"]), " "), c.near) {
			t.Errorf("%s: near = %q, want %q in it", c.name, texts(e["near"]), c.near)
		}
		if c.code == "invalid_arguments" && e["schema"] == nil {
			t.Errorf("%s: the error has no schema: %v", c.name, e)
		}
	}
	if len(w.asked) != 0 {
		t.Errorf("%d questions were asked, want none", len(w.asked))
	}
}

// A long document comes in pages, and read_file continues exactly where a page ends,
// with offsets in the file, including frontmatter and CRLF.
func TestOpenDocsPages(t *testing.T) {
	for _, newline := range []string{"\n", "\r\n"} {
		front := "---\nname: long\ndescription: Long.\n---\n"
		body := strings.Repeat("naïve café ☕ 日本語 — 🎉\n", 3000)
		file := strings.ReplaceAll(front+body, "\n", newline)
		w := newWorld(t, "")
		w.put("long/SKILL.md", file, 0o644)
		if err := w.lib.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.answer = decide("chat")
		w.initialize()
		doc := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "long"})["entry_doc"].(map[string]any)
		if doc["truncated"] != true {
			t.Fatalf("open_docs of %d bytes is not truncated", len(file))
		}
		got := doc["content"].(string)
		if n := len(got); n > 32<<10 || n < 32<<10-4 {
			t.Errorf("the page has %d bytes, want 32 KiB or a character less", n)
		}
		next, more := doc["next_offset"], true
		for more {
			page := w.ok("capability_packs_read_file", map[string]any{"pack_id": "long", "path": "SKILL.md", "offset": next, "length": 20_000})
			if page["encoding"] != "utf-8" {
				t.Fatalf("a page at %v is %v, want utf-8", next, page["encoding"])
			}
			got += page["content"].(string)
			next, more = page["next_offset"]
		}
		if want := strings.ReplaceAll(body, "\n", newline); got != want {
			t.Errorf("newline %q: the pages join to %d bytes, want the %d of the body", newline, len(got), len(want))
		}
	}
}

// A pack that changes between the question and the answer is not what was approved.
func TestChangedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"capability_packs_open_docs", map[string]any{"pack_id": "triage"}},
		{"capability_packs_read_file", map[string]any{"pack_id": "triage", "path": "docs/steps.md"}},
		{"capability_packs_enable_tools", map[string]any{"pack_id": "triage"}},
		{"capability_packs_exec_best_effort", map[string]any{"pack_id": "triage", "command": "./scripts/greet.sh", "args": []string{"x"}}},
	} {
		w := newWorld(t, triage)
		w.answer = func(string, map[string]any) map[string]any {
			w.put("triage/docs/new.md", "swapped", 0o644)
			return decide("chat")("", nil)
		}
		w.initialize()
		e := w.fails("denied", c.tool, c.args)
		if !strings.Contains(e["message"].(string), "changed") {
			t.Errorf("%s: %v, want that something changed", c.tool, e)
		}
		w.answer = decide("once")
		before := len(w.asked)
		if _, isError := w.tool(c.tool, c.args); isError || len(w.asked) != before+1 {
			t.Errorf("%s: the next call was not asked about anew, or failed", c.tool)
		}
	}
}

// The same in the newer era: the question's state is not valid for what the call
// would do now.
func TestChangedMeanwhileModern(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = decide("once")
	call := map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}}
	ask := result(t, w.modern("tools/call", call))
	state, ok := ask["requestState"].(string)
	if !ok {
		t.Fatalf("tools/call = %v, want a question", ask)
	}
	w.put("triage/docs/new.md", "swapped", 0o644)
	call["requestState"] = state
	call["inputResponses"] = map[string]any{"approval": decide("once")("", nil)}
	got := result(t, w.modern("tools/call", call))["structuredContent"].(map[string]any)
	if e, _ := got["error"].(map[string]any); e["code"] != "denied" {
		t.Errorf("the retry = %v, want a denial", got)
	}
}

// "For this chat" ends with any change.
func TestGrantEndsWithChange(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = decide("chat")
	w.initialize()
	args := map[string]any{"pack_id": "triage"}
	w.ok("capability_packs_open_docs", args)
	w.ok("capability_packs_open_docs", args)
	if len(w.asked) != 1 {
		t.Errorf("%d questions for two calls, want 1", len(w.asked))
	}
	w.put("triage/docs/steps.md", "Step 0ne.\n", 0o644)
	w.ok("capability_packs_open_docs", args)
	if len(w.asked) != 2 {
		t.Errorf("%d questions after a change, want 2", len(w.asked))
	}
	if err := os.Chmod(filepath.Join(w.root, "triage", "scripts", "greet.sh"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.ok("capability_packs_open_docs", args)
	if len(w.asked) != 3 {
		t.Errorf("%d questions after a change of mode, want 3", len(w.asked))
	}
}

// Packs that are not trusted are only ever allowed once, and the question
// begins with a warning.
func TestUntrusted(t *testing.T) {
	w := newWorld(t, triage, func(s *setup) { s.packs.Roots[0].Trust = packs.TrustUntrusted })
	var offered []string
	w.answer = func(_ string, schema map[string]any) map[string]any {
		offered = texts(schema["properties"].(map[string]any)["decision"].(map[string]any)["enum"])
		return decide("once")("", nil)
	}
	w.initialize()
	args := map[string]any{"pack_id": "triage"}
	w.ok("capability_packs_open_docs", args)
	if got := strings.Join(offered, " "); got != "once deny" {
		t.Errorf("the choices are %q, want once and deny", got)
	}
	if !says(w.asked[0], "NOT TRUSTED") {
		t.Errorf("the question has no warning:\n%s", w.asked[0])
	}
	w.answer = decide("chat")
	w.fails("denied", "capability_packs_open_docs", args)
}

// Invisible characters are counted in the question, and given unchanged.
func TestHiddenCharacters(t *testing.T) {
	w := newWorld(t, "")
	body := "Plain\u200b and \u202e turned\U000e0041.\n"
	w.put("odd/SKILL.md", "---\nname: odd\ndescription: \"Nice\\u202e\\u200b one.\"\n---\n"+body, 0o644)
	w.put("odd/odd.md", body, 0o644)
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.answer = decide("once")
	init := w.initialize()["instructions"].(string)
	if strings.ContainsAny(init, "\u202e\u200b") {
		t.Errorf("the instructions have a deceiving character: %q", init)
	}
	if doc := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "odd"})["entry_doc"].(map[string]any); doc["content"] != body {
		t.Errorf("open_docs = %q, want %q", doc["content"], body)
	}
	if file := w.ok("capability_packs_read_file", map[string]any{"pack_id": "odd", "path": "odd.md"}); file["content"] != body {
		t.Errorf("read_file = %q, want %q", file["content"], body)
	}
	for _, q := range w.asked {
		if !says(q, "3 invisible characters") || strings.ContainsAny(q, "\u202e\u200b\U000e0041") {
			t.Errorf("the question does not say that there are hidden characters, or has them: %q", q)
		}
	}
}

// A person is shown what a pack says about itself now, next to the digest of its
// current files, even if no event has reported the change.
func TestEditedSinceTheScan(t *testing.T) {
	w := newWorld(t, docsPacks)
	w.answer = decide("once")
	w.initialize()
	args := map[string]any{"pack_id": "plain"}
	edit := func(front, body string) {
		t.Helper()
		w.put("plain/SKILL.md", "---\nname: plain\n"+front+"\n---\n"+body, 0o644)
	}
	edit("description: Wipes the disk.", "Do it.\n")
	for tool, args := range map[string]map[string]any{
		"capability_packs_open_docs": args,
		"capability_packs_read_file": {"pack_id": "plain", "path": "docs/one.md"},
	} {
		w.asked = nil
		w.ok(tool, args)
		if len(w.asked) != 1 || !strings.Contains(w.asked[0], "Wipes the disk.") || strings.Contains(w.asked[0], "Has none.") {
			t.Errorf("%s: the question is %q, want what the pack says now", tool, w.asked)
		}
	}
	w.asked = nil
	edit("description: Wipes the disk.", "Do it well.\n")
	if doc := w.ok("capability_packs_open_docs", args)["entry_doc"].(map[string]any); doc["content"] != "Do it well.\n" {
		t.Errorf("open_docs = %v, want the new text", doc)
	}
	for _, c := range []struct {
		code   string
		change func()
	}{
		{"not_attached", func() { edit("description: Wipes the disk.\ndisable-model-invocation: true", "Do it.\n") }},
		{"not_attached", func() { edit("description:", "Do it.\n") }},
		{"not_found", func() {
			if err := os.RemoveAll(filepath.Join(w.root, "plain")); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		edit("description: Has none.", "Do it.\n")
		if err := w.lib.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.change()
		w.fails(c.code, "capability_packs_open_docs", args)
	}
	if len(w.asked) != 1 {
		t.Errorf("%d questions were asked, want the one about what could be opened: %q", len(w.asked), w.asked)
	}
}

// A configured document that is missing causes a note, and does not keep the others
// from being given.
func TestOpenDocsMissing(t *testing.T) {
	w := newWorld(t, docsPacks, func(s *setup) {
		s.packs.Roots[0].Docs = map[string][]string{"plain": {"docs/gone.md", "docs/two.md"}}
	})
	w.answer = decide("once")
	w.initialize()
	got := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "plain"})
	more := objects(got["additional_docs"])
	if len(more) != 2 || more[0]["path"] != "docs/gone.md" || more[0]["content"] != "" || more[0]["note"] == nil || more[1]["content"] != "Two.\n" {
		t.Errorf("additional_docs = %v, want a note about the first, and the second", more)
	}
	if doc := got["entry_doc"].(map[string]any); doc["content"] == "" {
		t.Errorf("entry_doc = %v, want the document", doc)
	}
}
