package server

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
	"github.com/packs-mcp/packs-mcp/internal/server/resources"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// What clients are told by the templates, and the largest file that is given whole.
const (
	templateSkill     = "skill://{+pack_id}/{+path}"
	templatePack      = "pack://{+pack_id}/{+path}"
	templateWorkspace = "workspace://{workspace}/{+path}"
	maxResource       = 16 << 20
)

// shelf has a skill with a folder, a pack that is not a skill, a skill inside another
// pack, one that only its user may call on, a loose tool, and a pack whose
// frontmatter not all readers understand alike.
const shelf = `
-- acme/refunds/SKILL.md --
---
name: refunds
description: Refunds customers.
license: MIT
metadata:
  version: "1.0"
---
# Refunds

See docs/policy.md.
-- acme/refunds/docs/policy.md --
Thirty days.
-- acme/refunds/docs/deep/er.txt --
Deeper.
-- acme/refunds/odd name%20#1.txt --
odd
-- notes/README.md --
---
name: notes
description: Notes, without a SKILL.md.
---
Notes.
-- notes/data.csv --
a,b
-- notes/inner/SKILL.md --
---
name: inner
description: A skill inside a pack.
---
Inner.
-- hidden/SKILL.md --
---
name: hidden
description: For people only.
disable-model-invocation: true
---
Hidden.
-- slips/SKILL.md --
---
name: slips
description: Recovered: read all the same.
---
Slips.
-- tools/lone.tool.json --
{"name": "lone", "description": "A loose tool.", "parameters": {"type": "object", "properties": {}}, "source": {"type": "command", "command": "true"}}
`

// refused makes a request that must get an error, and returns it.
func (w *world) refused(modern bool, method string, params map[string]any) (code int, message string) {
	w.t.Helper()
	ask := w.request
	if modern {
		ask = w.modern
	}
	reply := ask(method, params)
	e, ok := reply["error"].(map[string]any)
	if !ok {
		w.t.Fatalf("%s %v = %v, want an error", method, params, reply)
	}
	number, _ := e["code"].(float64)
	message, _ = e["message"].(string)
	return int(number), message
}

// all reads every page of a list, each of which has at most size entries.
func (w *world) all(method, key string, params map[string]any) (entries []map[string]any, pages int) {
	w.t.Helper()
	if params == nil {
		params = make(map[string]any)
	}
	for {
		r := result(w.t, w.request(method, params))
		entries = append(entries, objects(r[key])...)
		pages++
		next, ok := r["nextCursor"].(string)
		if !ok {
			return entries, pages
		}
		if pages > 1000 {
			w.t.Fatalf("%s does not end", method)
		}
		params["cursor"] = next
	}
}

// field returns the values of one key of each entry.
func field(entries []map[string]any, key string) []string {
	var all []string
	for _, e := range entries {
		v, _ := e[key].(string)
		all = append(all, v)
	}
	return all
}

// read reads a resource and returns its contents.
func (w *world) read(uri string) map[string]any {
	w.t.Helper()
	return contentsOf(w.t, w.request("resources/read", map[string]any{"uri": uri}))
}

func contentsOf(t *testing.T, reply map[string]any) map[string]any {
	t.Helper()
	all := objects(result(t, reply)["contents"])
	if len(all) != 1 {
		t.Fatalf("contents = %v, want one", reply)
	}
	return all[0]
}

func TestResourcesList(t *testing.T) {
	w := newWorld(t, shelf)
	w.initialize()
	entries, _ := w.all("resources/list", "resources", nil)
	want := []map[string]any{
		{"uri": "pack://lone/lone.tool.json", "name": "lone", "title": "lone", "description": "A loose tool.", "mimeType": "application/json"},
		{"uri": "pack://notes/README.md", "name": "notes", "title": "notes", "description": "Notes, without a SKILL.md.", "mimeType": "text/markdown"},
		{"uri": "pack://slips/SKILL.md", "name": "slips", "title": "slips", "description": "Recovered: read all the same.", "mimeType": "text/markdown"},
		{"uri": "skill://acme/refunds/SKILL.md", "name": "refunds", "title": "refunds", "description": "Refunds customers.", "mimeType": "text/markdown"},
		{"uri": "skill://index.json", "name": "index.json", "title": "Index of skills", "description": "The skills there are, for readers of the discovery index.", "mimeType": "application/json"},
		{"uri": "skill://notes/inner/SKILL.md", "name": "inner", "title": "inner", "description": "A skill inside a pack.", "mimeType": "text/markdown"},
	}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Errorf("resources/list (-want +got):\n%s", diff)
	}
	if len(w.asked) != 0 || len(w.entries()) != 0 {
		t.Errorf("a list asked %q and logged %v", w.asked, w.entries())
	}
	templates, _ := w.all("resources/templates/list", "resourceTemplates", nil)
	if got, want := field(templates, "uriTemplate"), []string{templatePack, templateSkill, templateWorkspace}; !slices.Equal(got, want) {
		t.Errorf("templates = %q, want %q", got, want)
	}
}

// Lists come in pages, in a fixed order, and a cursor is only valid for the list that
// it came from.
func TestPages(t *testing.T) {
	var tree strings.Builder
	const many = 2*pages.Size + 7
	for i := range many {
		fmt.Fprintf(&tree, "-- p%03d/SKILL.md --\n---\nname: p%03d\ndescription: Number %d.\n---\nText.\n", i, i, i)
	}
	w := newWorld(t, tree.String())
	w.initialize()
	cursors := make(map[string]string)
	for _, l := range []struct {
		method, key, sort string
		more              int
		params            map[string]any
	}{
		{"resources/list", "resources", "uri", 1, nil},
		{"prompts/list", "prompts", "name", 2, nil},
		{"skills/list", "skills", "uri", 0, nil},
	} {
		entries, pages := w.all(l.method, l.key, l.params)
		keys := field(entries, l.sort)
		if len(keys) != many+l.more || pages != 3 || !slices.IsSorted(keys) || len(slices.Compact(keys)) != len(keys) {
			t.Errorf("%s: %d entries on %d pages, sorted %v, want %d on 3", l.method, len(keys), pages, slices.IsSorted(keys), many+l.more)
		}
		cursors[l.method] = result(t, w.request(l.method, nil))["nextCursor"].(string)
	}
	for method := range cursors {
		for from, cursor := range cursors {
			if from != method {
				if code, _ := w.refused(false, method, map[string]any{"cursor": cursor}); code != -32602 {
					t.Errorf("%s with the cursor of %s: %d, want -32602", method, from, code)
				}
			}
		}
		for _, cursor := range []string{"x", "%", "AAAA", strings.Repeat("A", 10_000), base64.RawURLEncoding.EncodeToString([]byte(method + "\x00"))} {
			if code, _ := w.refused(true, method, map[string]any{"cursor": cursor}); code != -32602 {
				t.Errorf("%s with the cursor %.10q: %d, want -32602", method, cursor, code)
			}
		}
		if code, _ := w.refused(false, method, map[string]any{"cursor": 7}); code != -32602 {
			t.Errorf("%s with a number for a cursor: %d, want -32602", method, code)
		}
	}
	// A page begins after its cursor, whether or not that entry is still there.
	if err := os.RemoveAll(filepath.Join(w.root, fmt.Sprintf("p%03d", pages.Size-2))); err != nil {
		t.Fatal(err)
	}
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := objects(result(t, w.request("prompts/list", map[string]any{"cursor": cursors["prompts/list"]}))["prompts"])
	if got, want := next[0]["name"], fmt.Sprintf("p%03d", pages.Size-1); got != want {
		t.Errorf("the page begins with %q, want %q, the first that is left", got, want)
	}
}

// A file's bytes come unchanged: as text if they are UTF-8, otherwise as base64.
func TestReadBytes(t *testing.T) {
	w := newWorld(t, shelf)
	w.answer = decide("chat")
	files := map[string]string{
		"crlf.txt": "one\r\ntwo\r\n", "bom.txt": "\ufeffmarked\n", "empty.txt": "", "long.txt": strings.Repeat("0123456789", 200_000),
		"binary.bin": "\x00\x01\xff\xfe", "latin.txt": "caf\xe9\n", "nul.txt": "a\x00b", "hidden.txt": "a\u202eb\u200bc", "html.html": "<b>&\u2028</b>",
		"ünïcode/日本.md": "# 日本\n", "with space.txt": "s", "100%.txt": "p", "a+b&c=d.txt": "q", "%2e%2e": "dots",
	}
	for name, data := range files {
		w.put("acme/refunds/more/"+name, data, 0o644)
	}
	w.initialize()
	for name, data := range files {
		uri := address.URI{Scheme: address.SchemeSkill, Path: "acme/refunds/more/" + name}.String()
		got := w.read(uri)
		if got["uri"] != uri {
			t.Errorf("%s: the contents are of %v", uri, got["uri"])
		}
		text, isText := got["text"].(string)
		if wantText := name != "binary.bin" && name != "latin.txt" && name != "nul.txt"; isText != wantText {
			t.Errorf("%s: text %v, want %v", name, isText, wantText)
		}
		if !isText {
			raw, err := base64.StdEncoding.DecodeString(got["blob"].(string))
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		if text != data {
			t.Errorf("%s: %.40q, want %.40q", name, text, data)
		}
	}
	if got := w.read("skill://acme/refunds/SKILL.md"); got["mimeType"] != "text/markdown" || !strings.HasPrefix(got["text"].(string), "---\nname: refunds") {
		t.Errorf("SKILL.md = %v, want the whole file", got)
	}
	if got := w.read("pack://lone/lone.tool.json"); got["mimeType"] != "application/json" {
		t.Errorf("a loose tool = %v, want its declaration", got)
	}
	// A pack inside another: under its own name, and as a folder of the other.
	if a, b := w.read("skill://notes/inner/SKILL.md"), w.read("pack://notes/inner/SKILL.md"); a["text"] != b["text"] || a["text"] == "" {
		t.Errorf("the inner pack reads %v and %v", a, b)
	}
}

// Reading is of kind read, and reading an entry document of kind open. An answer
// holds for tool calls and resources alike, and everything is recorded.
func TestReadIsDecided(t *testing.T) {
	w := newWorld(t, shelf)
	w.answer = decide("chat")
	w.initialize()
	w.read("skill://acme/refunds/docs/policy.md")
	w.read("skill://acme/refunds/docs/deep/er.txt")
	w.ok("capability_packs_read_file", map[string]any{"pack_id": "acme/refunds", "path": "docs/policy.md"})
	result(t, w.request("resources/directory/read", map[string]any{"uri": "skill://acme/refunds"}))
	if len(w.asked) != 1 || !says(w.asked[0], "Read docs/policy.md from pack acme/refunds?") {
		t.Errorf("%d questions, the first %q, want one about the file", len(w.asked), w.asked)
	}
	w.read("skill://acme/refunds/SKILL.md")
	w.ok("capability_packs_open_docs", map[string]any{"pack_id": "acme/refunds"})
	if len(w.asked) != 2 || !says(w.asked[1], "Open the documents of pack acme/refunds?") {
		t.Errorf("%d questions, the last %q, want one about the documents", len(w.asked), w.asked)
	}
	var got []string
	for _, e := range w.entries() {
		got = append(got, e.Kind+" "+e.Tool+" "+e.Decision+" "+e.Channel)
	}
	want := []string{
		"read resources/read chat elicitation", "read resources/read chat grant", "read capability_packs_read_file chat grant",
		"read resources/directory/read chat grant", "open resources/read chat elicitation", "open capability_packs_open_docs chat grant",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
	// A changed file ends the grant; what is given is what is asked about.
	w.put("acme/refunds/docs/policy.md", "Sixty \u202edays.\n", 0o644)
	if got := w.read("skill://acme/refunds/docs/policy.md"); got["text"] != "Sixty \u202edays.\n" || len(w.asked) != 3 || !says(w.asked[2], "CHANGED") || !says(w.asked[2], "CAUTION") {
		t.Errorf("a changed file = %v after the questions %q", got, w.asked[2:])
	}
}

// Any answer but yes gives nothing, in both eras, and says what else can be done.
func TestReadDenied(t *testing.T) {
	for _, modern := range []bool{false, true} {
		for name, c := range map[string]struct {
			answer func(string, map[string]any) map[string]any
			rule   rules.Effect
		}{
			"denied":           {answer: decide("deny")},
			"declined":         {answer: func(string, map[string]any) map[string]any { return map[string]any{"action": "decline"} }},
			"cannot ask":       {},
			"a rule":           {answer: decide("once"), rule: rules.Deny},
			"a rule that asks": {answer: decide("deny"), rule: rules.Ask},
		} {
			t.Run(fmt.Sprintf("%s, modern %v", name, modern), func(t *testing.T) {
				w := newWorld(t, shelf, func(s *setup) {
					if c.rule != 0 {
						s.gate.Rules = []rules.Rule{{Effect: c.rule, Where: "config.yaml:1"}}
					}
				})
				w.answer = c.answer
				if !modern {
					w.initialize()
				}
				for _, m := range []struct{ method, uri string }{
					{"resources/read", "skill://acme/refunds/docs/policy.md"}, {"resources/read", "skill://acme/refunds/SKILL.md"}, {"resources/directory/read", "skill://acme/refunds"},
				} {
					params := map[string]any{"uri": m.uri}
					if modern && c.answer != nil && c.rule != rules.Deny && m.method == "resources/read" {
						r := result(t, w.modern(m.method, params))
						if r["resultType"] != "input_required" || r["contents"] != nil {
							t.Fatalf("%v = %v, want a question", m, r)
						}
						params["requestState"] = r["requestState"]
						params["inputResponses"] = map[string]any{"approval": c.answer("", nil)}
					}
					code, message := w.refused(modern, m.method, params)
					// The error names another way if nobody decided, but not if a
					// person denied it.
					named := strings.Contains(message, "capability_packs_read_file")
					unasked := c.rule != rules.Deny && (c.answer == nil || modern && m.method == resources.MethodDirectoryRead)
					if code != toolerr.RPCNotGiven || !strings.HasPrefix(message, "denied: ") || named != unasked {
						t.Errorf("%v: %d %q, want a denial that names the tool: %v", m, code, message, unasked)
					}
				}
				for _, e := range w.entries() {
					if e.Decision != "deny" {
						t.Errorf("the log has %+v, want denials only", e)
					}
				}
			})
		}
	}
}

// AP-01 to AP-04 for resources: a state is for one resource, works once, and is
// accepted only if it is ours.
func TestReadRoundTrip(t *testing.T) {
	w := newWorld(t, shelf)
	w.answer = decide("once")
	ask := func(uri string) string {
		r := result(t, w.modern("resources/read", map[string]any{"uri": uri}))
		state, ok := r["requestState"].(string)
		if r["resultType"] != "input_required" || !ok {
			t.Fatalf("%s = %v, want a question", uri, r)
		}
		return state
	}
	answer := func(uri, state string) map[string]any {
		return w.modern("resources/read", map[string]any{
			"uri": uri, "requestState": state, "inputResponses": map[string]any{"approval": decide("once")("", nil)},
		})
	}
	const policy, deeper = "skill://acme/refunds/docs/policy.md", "skill://acme/refunds/docs/deep/er.txt"
	state := ask(policy)
	r := answer(policy, state)
	if got := contentsOf(t, r); got["text"] != "Thirty days.\n" {
		t.Errorf("after the answer: %v, want the file", got)
	}
	if m := result(t, r); m["resultType"] != "complete" || m["ttlMs"] != 0.0 || m["cacheScope"] != "private" {
		t.Errorf("the result = %v, want it complete, and not to be kept", m)
	}
	for name, reply := range map[string]map[string]any{
		"twice": answer(policy, state), "another file": answer(deeper, ask(policy)), "forged": answer(policy, "x.y"), "unasked": answer(policy, ""),
		"on a list": w.modern("skills/list", map[string]any{"requestState": "x.y"}),
		"on a file that is not there": func() map[string]any {
			params := map[string]any{"uri": policy + "x", "requestState": ask(policy), "inputResponses": map[string]any{"approval": decide("once")("", nil)}}
			return w.modern("resources/read", params)
		}(),
	} {
		if e, _ := reply["error"].(map[string]any); e == nil {
			t.Errorf("%s: %v, want an error", name, reply)
		}
	}
}

// A read that nobody answers waits, and leaves its question behind. The answer holds
// for the same read, made again.
func TestReadPending(t *testing.T) {
	for _, modern := range []bool{false, true} {
		w := newWorld(t, shelf, everywhere(50*time.Millisecond))
		if !modern {
			w.initialize()
		}
		const uri = "skill://acme/refunds/docs/policy.md"
		for method, uri := range map[string]string{"resources/read": uri, "resources/directory/read": "skill://acme/refunds/docs"} {
			code, message := w.refused(modern, method, map[string]any{"uri": uri})
			p := w.pending(1)[0]
			if code != toolerr.RPCNotGiven || !strings.HasPrefix(message, "approval_pending: ") || !strings.Contains(message, p.Code) || !strings.Contains(message, "capability_packs_read_file") {
				t.Errorf("modern %v: %d %q, want that it waits as %s, and the tool", modern, code, message, p.Code)
			}
			w.decide(p.Code, queue.Once)
			ask := w.request
			if modern {
				ask = w.modern
			}
			result(t, ask(method, map[string]any{"uri": uri}))
			w.pending(0)
		}
	}
}

// A URI that names nothing, or nothing that the client may know about, is not found,
// in the words of the era, and nobody is asked.
func TestHostileURIs(t *testing.T) {
	w := newWorld(t, shelf, func(s *setup) {
		s.store = attach.Open(filepath.Join(t.TempDir(), "attached.json"))
	})
	w.put("secret.txt", "outside", 0o644)
	plant(t, w.root, "-- loner/SKILL.md --\n---\nname: loner\ndescription: Detached.\n---\n")
	if err := os.Symlink("policy.md", filepath.Join(w.root, "acme", "refunds", "docs", "link.md")); err != nil {
		t.Skipf("symlinks: %v", err)
	}
	if err := os.Symlink(filepath.Join(w.root, "secret.txt"), filepath.Join(w.root, "acme", "refunds", "out.md")); err != nil {
		t.Fatal(err)
	}
	change(t, w.store, func(set *attach.Set) { set.Detach("loner", time.Now()) })
	w.answer = decide("deny")
	w.initialize()
	c := w.srv.chats.All()[0]
	if err := os.Symlink(filepath.Join(w.root, "secret.txt"), filepath.Join(c.Workspaces.First().Dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Workspaces.First().Dir, "made.txt"), []byte("made"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, uri := range servertest.HostileURIs(c.Workspaces.First().Handle) {
		params := map[string]any{"uri": uri}
		if code, _ := w.refused(false, "resources/read", params); code != -32002 {
			t.Errorf("resources/read %.80q: %d, want -32002", uri, code)
		}
		for _, method := range []string{"resources/read", "resources/directory/read", "skills/get"} {
			if uri == "workspace://"+c.Workspaces.First().Handle || method != "resources/read" && strings.HasSuffix(uri, "acme/refunds") {
				continue
			}
			if code, _ := w.refused(true, method, params); code != -32602 {
				t.Errorf("%s %.80q: %d, want -32602", method, uri, code)
			}
		}
		code, _ := w.refused(false, "resources/subscribe", params)
		if code != -32002 && uri != "" {
			t.Errorf("resources/subscribe %.80q: %d, want -32002", uri, code)
		}
	}
	for _, params := range []string{`{}`, `{"uri":7}`, `{"uri":null}`, `{"uri":["skill://acme/refunds/SKILL.md"]}`, `[]`, `"x"`} {
		w.next++
		w.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":%s}`, w.next, params))
		if e, _ := w.receive()["error"].(map[string]any); e == nil || e["code"] != -32602.0 && e["code"] != -32002.0 {
			t.Errorf("resources/read %s = %v, want an error", params, e)
		}
	}
	if len(w.asked) != 0 {
		t.Errorf("%d questions came of what is not there", len(w.asked))
	}
	for _, e := range w.entries() {
		if e.Event != audit.EventRefusal || e.Code == "" || e.Decision != "" {
			t.Errorf("the log has %+v, want refusals only", e)
		}
	}
}

// A file that is too large for one message is refused, with a hint how to read it in
// pages. If read_file would refuse it as well, there is no hint.
func TestReadTooLarge(t *testing.T) {
	for name, tc := range map[string]struct {
		limit    int64 // of read_file
		size     int
		readable bool
	}{
		"larger than a message":         {maxResource + 1, maxResource + 1, true},
		"larger than any that is read":  {maxResource + 1, maxResource + 2, false},
		"where less than that is read":  {1000, 1001, false},
		"where as much as that is read": {maxResource, maxResource + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shelf, limited(Limits{ReadFile: tc.limit}))
			w.answer = decide("once")
			w.put("acme/refunds/big.txt", strings.Repeat("x", tc.size), 0o644)
			w.initialize()
			code, message := w.refused(false, "resources/read", map[string]any{"uri": "skill://acme/refunds/big.txt"})
			if code != toolerr.RPCNotGiven || !strings.HasPrefix(message, "too_large: ") || len(w.asked) != 0 {
				t.Errorf("a large file: %d %q, %d questions, want too_large and none", code, message, len(w.asked))
			}
			if got := strings.Contains(message, "capability_packs_read_file"); got != tc.readable {
				t.Errorf("the hint names read_file: %v, want %v: %q", got, tc.readable, message)
			}
			args := map[string]any{"pack_id": "acme/refunds", "path": "big.txt"}
			if tc.readable {
				w.ok("capability_packs_read_file", args)
			} else {
				w.fails("too_large", "capability_packs_read_file", args)
			}
		})
	}
}

// Links to files that a run made lead to their bytes, in the chat that made them
// only. Clients of versions without links get none.
func TestArtifactLinks(t *testing.T) {
	needShell(t)
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		w := newWorld(t, triage)
		w.answer = decide("once")
		w.request("initialize", map[string]any{
			"protocolVersion": version, "capabilities": map[string]any{"elicitation": map[string]any{}}, "clientInfo": map[string]any{"name": "test", "version": "1"},
		})
		w.send(map[string]any{"method": "notifications/initialized"})
		w.enable("triage")
		r := result(t, w.request("tools/call", map[string]any{"name": "triage__greet", "arguments": map[string]any{"who": "Ada"}}))
		content := objects(r["content"])
		if version < "2025-06-18" {
			if len(content) != 1 {
				t.Errorf("%s: content = %v, want text only", version, content)
			}
			continue
		}
		if len(content) != 2 || content[1]["type"] != "resource_link" || content[1]["name"] != "made.txt" || content[1]["mimeType"] != "text/plain" {
			t.Fatalf("%s: content = %v, want a link to made.txt", version, content)
		}
		uri := content[1]["uri"].(string)
		if got := w.read(uri); got["text"] != "made\n" {
			t.Errorf("%s = %v, want what the run made", uri, got)
		}
		folder := strings.TrimSuffix(uri, "/made.txt")
		children := objects(result(t, w.request("resources/directory/read", map[string]any{"uri": folder}))["resources"])
		if len(children) != 1 || children[0]["uri"] != uri || children[0]["size"] != 5.0 {
			t.Errorf("the workspace = %v, want made.txt", children)
		}
		other := &world{t: t, root: w.root, srv: w.srv}
		other.connect()
		other.initialize()
		if code, _ := other.refused(false, "resources/read", map[string]any{"uri": uri}); code != -32002 {
			t.Errorf("another chat reads it: %d, want -32002", code)
		}
	}
}
