package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

var shelves = triage + `
-- acme/refunds/SKILL.md --
---
name: refunds
description: Refunds money.
---
-- acme/refunds/docs/a.md --
a
-- plain/CAPABILITY.md --
---
name: plain
description: No skill.
---
`

// What a rule forbids altogether is in no list: neither a whole pack, nor what leads
// to its document, nor what describes its files. A request that names it is denied
// and recorded.
func TestListsLeaveOutWhatIsForbidden(t *testing.T) {
	const id, uri = "acme/refunds", "skill://acme/refunds/"
	deny := func(r rules.Rule) []rules.Rule {
		r.Effect, r.Where = rules.Deny, "config.yaml:1"
		return []rules.Rule{r}
	}
	for name, tc := range map[string]struct {
		rules                       []rules.Rule
		pack, document, files, path bool
		attach                      bool
	}{
		"nothing":        {nil, true, true, true, true, true},
		"everything":     {deny(rules.Rule{Pack: "acme/*"}), false, false, false, false, false},
		"open":           {deny(rules.Rule{Pack: "acme/*", Kinds: []string{"open"}}), true, false, false, true, true},
		"read":           {deny(rules.Rule{Pack: id, Kinds: []string{"read"}}), true, true, false, false, true},
		"attach":         {deny(rules.Rule{Pack: id, Kinds: []string{"attach"}}), true, true, true, true, false},
		"running a tool": {deny(rules.Rule{Pack: id, Tool: "*"}), true, true, true, true, true},
		"another pack":   {deny(rules.Rule{Pack: "other"}), true, true, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shelves, func(s *setup) { s.gate.Rules = tc.rules })
			w.answer = decide("once")
			hello := w.initialize()
			has := func(what string, got, want bool) {
				t.Helper()
				if got != want {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			listed := func(method, key, name string) []string {
				return field(objects(result(t, w.request(method, nil))[key]), name)
			}
			has("instructions", strings.Contains(hello["instructions"].(string), id), tc.pack)
			has("capability_packs_list", strings.Contains(fmt.Sprint(w.ok("capability_packs_list", nil)), id), tc.pack)
			has("a query", strings.Contains(fmt.Sprint(w.ok("capability_packs_list", map[string]any{"query": "refunds"})), id), tc.pack)
			has("tools/list", strings.Contains(fmt.Sprint(result(t, w.request("tools/list", nil))), id), tc.pack)
			has("prompts/list", slices.Contains(listed("prompts/list", "prompts", "name"), "acme__refunds"), tc.document)
			has("resources/list", slices.Contains(listed("resources/list", "resources", "uri"), uri+"SKILL.md"), tc.document)
			has("skills/list", slices.Contains(listed("skills/list", "skills", "uri"), uri+"SKILL.md"), tc.files)
			has("skills/get", w.request("skills/get", map[string]any{"uri": uri + "SKILL.md"})["error"] == nil, tc.files)
			has("index.json", strings.Contains(fmt.Sprint(w.request("resources/read", map[string]any{"uri": offer.IndexURI})), id), tc.files)
			has("_manifest", w.request("resources/read", map[string]any{"uri": uri + "_manifest"})["error"] == nil, tc.files)
			complete := func(ref map[string]any, name string, context map[string]any) []string {
				r := result(t, w.request("completion/complete", map[string]any{"ref": ref, "argument": map[string]any{"name": name, "value": ""}, "context": map[string]any{"arguments": context}}))
				return texts(r["completion"].(map[string]any)["values"])
			}
			template := map[string]any{"type": "ref/resource", "uri": templateSkill}
			has("completion of ids", slices.Contains(complete(template, "pack_id", nil), id), tc.pack)
			has("completion of paths", slices.Contains(complete(template, "path", map[string]any{"pack_id": id}), "docs/a.md"), tc.path)
			has("subscribing to the document", w.request("resources/subscribe", map[string]any{"uri": uri + "SKILL.md"})["error"] == nil, tc.document)
			has("subscribing to a file", w.request("resources/subscribe", map[string]any{"uri": uri + "docs/a.md"})["error"] == nil, tc.path)
			choose := func(prompt string) bool {
				return slices.Contains(complete(map[string]any{"type": "ref/prompt", "name": prompt}, "pack_id", nil), id)
			}
			hints := func(prompt string) bool {
				return strings.Contains(fmt.Sprint(w.request("prompts/get", map[string]any{"name": prompt, "arguments": map[string]any{"pack_id": "refundz"}})), id)
			}
			has("completion of detach", choose("detach"), tc.pack)
			has("hint of detach", hints("detach"), tc.pack)
			has("hint of attach", hints("attach"), false)
			has("hint of open_docs", strings.Contains(fmt.Sprint(w.fails("not_found", "capability_packs_open_docs", map[string]any{"pack_id": "refundz"})), id), tc.pack)
			// The others are still there.
			has("another's prompt", slices.Contains(listed("prompts/list", "prompts", "name"), "triage"), true)
			has("another skill", slices.Contains(listed("skills/list", "skills", "uri"), "skill://triage/SKILL.md"), true)
			// A request that names it is denied.
			before := len(w.entries())
			if !tc.document {
				w.fails("denied", "capability_packs_open_docs", map[string]any{"pack_id": id})
				for _, method := range []string{"prompts/get", "resources/read"} {
					params := map[string]any{"name": "acme__refunds"}
					if method == "resources/read" {
						params = map[string]any{"uri": uri + "SKILL.md"}
					}
					if e, _ := w.request(method, params)["error"].(map[string]any); e["code"] != float64(toolerr.RPCNotGiven) {
						t.Errorf("%s: %v, want that it is denied", method, e)
					}
				}
				if got := w.entries()[before:]; len(got) != 3 || got[2].Decision != "deny" || got[2].Channel != "rule" {
					t.Errorf("the log has %+v, want three denials", got)
				}
			}
			// A detached pack is offered for attaching, unless that is forbidden.
			if err := w.srv.SetAttached(t.Context(), w.srv.chats.All()[0].ID(), id, false); err != nil {
				t.Fatal(err)
			}
			has("completion of attach", choose("attach"), tc.attach)
			has("hint of attach when it is detached", hints("attach"), tc.attach)
			has("hint of detach when it is detached", hints("detach"), false)
		})
	}
}

// Among packs whose ids end alike, hints treat those that a model may not know about
// as nonexistent.
func TestHintsLeaveOutWhatIsForbidden(t *testing.T) {
	tree := pack("a/lint", "A.") + pack("b/lint", "B.") + pack("c/lint", "C.") +
		"-- d/lint/SKILL.md --\n---\nname: lint\ndescription: For people.\ndisable-model-invocation: true\n---\n"
	for _, tc := range []struct {
		hidden string // pattern of hidden packs
		want   []string
	}{
		{"none", []string{"a/lint", "b/lint", "c/lint"}},
		{"b/*", []string{"a/lint", "c/lint"}},
		{"[bc]/*", []string{"a/lint"}},
		{"?/lint", []string{}},
	} {
		w := newWorld(t, tree, func(s *setup) {
			s.gate.Rules = []rules.Rule{{Effect: rules.Deny, Pack: tc.hidden, Where: "config.yaml:1"}}
		})
		w.initialize()
		e := w.fails("not_found", "capability_packs_open_docs", map[string]any{"pack_id": "lint"})
		if got := texts(e["near"]); !slices.Equal(got, tc.want) {
			t.Errorf("without %q: near = %q, want %q", tc.hidden, got, tc.want)
		}
		if several := strings.Contains(fmt.Sprint(e["message"]), "any of"); several != (len(tc.want) > 1) {
			t.Errorf("without %q: the message is %q, and there are %d", tc.hidden, e["message"], len(tc.want))
		}
		for _, id := range []string{"a/lint", "b/lint", "c/lint", "d/lint"} {
			if strings.Contains(fmt.Sprint(e["message"]), id) != slices.Contains(tc.want, id) {
				t.Errorf("without %q: the message is %q, want %q in it", tc.hidden, e["message"], tc.want)
			}
		}
	}
}

// If files of workspaces may not be read, nothing names or watches them.
func TestWorkspacesLeaveOutWhatIsForbidden(t *testing.T) {
	for name, rule := range map[string]rules.Rule{
		"no rule about it": {Effect: rules.Deny, Pack: "triage", Where: "config.yaml:1"},
		"reading":          {Effect: rules.Deny, Kinds: []string{"read"}, Where: "config.yaml:1"},
		"the workspace":    {Effect: rules.Deny, Pack: "workspace", Where: "config.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, triage, func(s *setup) { s.gate.Rules = []rules.Rule{rule} })
			w.initialize()
			want := name == "no rule about it"
			sp := w.srv.chats.All()[0].Workspaces.First()
			if err := os.WriteFile(filepath.Join(sp.Dir, "notes.txt"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := result(t, w.request("completion/complete", map[string]any{
				"ref": map[string]any{"type": "ref/resource", "uri": templateWorkspace}, "argument": map[string]any{"name": "path", "value": ""},
			}))
			if got := len(texts(r["completion"].(map[string]any)["values"])) > 0; got != want {
				t.Errorf("completion names a file: %v, want %v", got, want)
			}
			subscribed := w.request("resources/subscribe", map[string]any{"uri": sp.URI("notes.txt")})
			if got := subscribed["error"] == nil; got != want {
				t.Errorf("subscribed: %v, want %v", got, want)
			}
		})
	}
}

// Models get a frontmatter verbatim and without a question. If it would have to be
// escaped, it is not given, but the pack is still served.
func TestHarmlessFrontmatter(t *testing.T) {
	for name, tc := range map[string]struct {
		matter string
		want   bool
	}{
		"plain":                  {"license: MIT\nmetadata: {a: [b, 1, true]}", true},
		"other scripts, emoji":   {"note: \"é 漢字 👍 мир\"", true},
		"lines":                  {"note: |\n  one\n  two", true},
		"turned around":          {`note: "a\u202eb"`, false},
		"invisible":              {`note: "a\u200bb"`, false},
		"tags":                   {`note: "a\U000E0041b"`, false},
		"a terminal's":           {`note: "a\eb"`, false},
		"in a list":              {`metadata: {a: [b, "c\u2066"]}`, false},
		"in a key":               {`"k\u200b": v`, false},
		"in a key of a key":      {`metadata: {"k\u200b": v}`, false},
		"in the description too": {`description: "Does.\u202e"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			matter := tc.matter
			if !strings.HasPrefix(matter, "description") {
				matter = "description: Does.\n" + matter
			}
			w := newWorld(t, "-- odd/SKILL.md --\n---\nname: odd\n"+matter+"\n---\nBody.\n")
			w.answer = decide("once")
			w.initialize()
			if got := len(objects(result(t, w.request("skills/list", nil))["skills"])) == 1; got != tc.want {
				t.Errorf("skills/list has it: %v, want %v", got, tc.want)
			}
			if got := w.request("skills/get", map[string]any{"uri": "skill://odd/SKILL.md"})["error"] == nil; got != tc.want {
				t.Errorf("skills/get gives it: %v, want %v", got, tc.want)
			}
			if n := strings.Count(w.log.String(), "left out of the list of skills"); (n == 0) != tc.want || n > 1 {
				t.Errorf("the log says %d times that it is left out:\n%s", n, w.log.String())
			}
			w.ok("capability_packs_open_docs", map[string]any{"pack_id": "odd"})
		})
	}
}
