package server

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// prompted holds packs with prompts, and packs without.
const prompted = `
-- review/SKILL.md --
---
name: review
description: Reviews code.
argument-hint: "[file]"
---
Review $ARGUMENTS.
-- acme/deep/SKILL.md --
---
name: deep
description: Lies deeper.
disable-model-invocation: true
---
For people.
-- silent/SKILL.md --
---
name: silent
description: For models.
user-invocable: false
---
Silent.
-- attach/SKILL.md --
---
name: attach
description: Called like one of ours.
---
Impostor.
-- acme__deep/SKILL.md --
---
name: acme-deep
description: Nearly the same.
---
-- odd name/x/SKILL.md --
---
name: x
description: In a folder with a space.
---
`

// message returns the text of a prompt with one message.
func message(t *testing.T, reply map[string]any) string {
	t.Helper()
	all := objects(result(t, reply)["messages"])
	if len(all) != 1 || all[0]["role"] != "user" {
		t.Fatalf("the prompt is %v, want one message of the user's", reply)
	}
	content := all[0]["content"].(map[string]any)
	if content["type"] != "text" {
		t.Fatalf("the message is %v, want text", content)
	}
	return content["text"].(string)
}

func (w *world) prompt(name string, args map[string]any) map[string]any {
	w.t.Helper()
	return w.request("prompts/get", map[string]any{"name": name, "arguments": args})
}

// There is one prompt for each pack, under a unique name that every client can make a
// command of. A pack that is only for models has none.
func TestPromptsList(t *testing.T) {
	w := newWorld(t, prompted)
	w.initialize()
	all, _ := w.all("prompts/list", "prompts", nil)
	names := field(all, "name")
	want := []string{"acme-deep", "acme__deep", "attach", "attach_" + toolname.Hash("attach"), "detach", "odd-name__x", "review"}
	if !slices.Equal(names, want) {
		t.Errorf("prompts = %q, want %q", names, want)
	}
	for _, name := range names {
		if !listedName.MatchString(name) {
			t.Errorf("the name %q does not match %s", name, listedName)
		}
	}
	review := all[slices.Index(names, "review")]
	if diff := cmp.Diff(map[string]any{
		"name": "review", "title": "review", "description": "Reviews code.",
		"arguments": []any{map[string]any{"name": "arguments", "title": "Arguments", "description": "[file]"}},
	}, review); diff != "" {
		t.Errorf("the prompt (-want +got):\n%s", diff)
	}
	for _, name := range []string{"attach", "detach"} {
		args := objects(all[slices.Index(names, name)]["arguments"])
		if len(args) != 1 || args[0]["name"] != "pack_id" || args[0]["required"] != true {
			t.Errorf("%s has the arguments %v, want pack_id", name, args)
		}
	}
}

// A prompt is skillkit's invocation of the pack. The client that started this program
// says that a person chose it: nobody is asked, and it is recorded as opening.
func TestPromptOfAPack(t *testing.T) {
	for _, modern := range []bool{false, true} {
		w := newWorld(t, prompted) // a client that cannot ask
		get := func(name string, args map[string]any) map[string]any {
			params := map[string]any{"name": name, "arguments": args}
			if modern {
				return w.modern("prompts/get", params)
			}
			return w.request("prompts/get", params)
		}
		if !modern {
			w.initialize()
		}
		dir, err := filepath.EvalSymlinks(w.root)
		if err != nil {
			t.Fatal(err)
		}
		base := "Base directory for this skill: " + filepath.Join(dir, "review") + "\n\n"
		for _, c := range []struct {
			args map[string]any
			want string
		}{
			{map[string]any{"arguments": "main.go"}, base + "Review main.go.\n"},
			{map[string]any{"arguments": ""}, base + "Review .\n"},
			{nil, base + "Review .\n"},
			{map[string]any{"arguments": "$ARGUMENTS"}, base + "Review $ARGUMENTS.\n"},
		} {
			if got := message(t, get("review", c.args)); got != c.want {
				t.Errorf("review %v = %q, want %q", c.args, got, c.want)
			}
		}
		// A pack that is for people is opened by them.
		if got := message(t, get("acme__deep", map[string]any{"arguments": "x"})); !strings.HasSuffix(got, "For people.\n\n\nARGUMENTS: x") {
			t.Errorf("the prompt of a pack for people = %q", got)
		}
		for _, e := range w.entries() {
			if e.Kind != "open" || e.Tool != "prompts/get" || e.Decision != "once" || e.Channel != "prompt" || e.PackDigest == "" {
				t.Errorf("the log has %+v, want an opening by a prompt", e)
			}
		}
		if n := len(w.entries()); n != 5 {
			t.Errorf("%d lines in the log, want 5", n)
		}
	}
}

// A person's prompt does not allow any call of a model.
func TestPromptAllowsNothingElse(t *testing.T) {
	w := newWorld(t, prompted)
	w.answer = decide("deny")
	w.initialize()
	message(t, w.prompt("review", nil))
	w.fails("denied", "capability_packs_open_docs", map[string]any{"pack_id": "review"})
	if len(w.asked) != 1 {
		t.Errorf("%d questions, want one, about the model's call", len(w.asked))
	}
}

func TestPromptsThatGetNothing(t *testing.T) {
	deny := func(s *setup) {
		s.gate.Rules = []rules.Rule{{Effect: rules.Deny, Pack: "review", Where: "config.yaml:1"}}
	}
	w := newWorld(t, prompted, deny)
	w.answer = decide("once")
	w.initialize()
	for _, c := range []struct {
		params map[string]any
		code   int
		says   string
	}{
		{map[string]any{"name": "review"}, toolerr.RPCNotGiven, "a rule of the user's forbids it"},
		{map[string]any{"name": "attach", "arguments": map[string]any{"pack_id": "review"}}, toolerr.RPCNotGiven, "a rule of the user's forbids it"},
		{map[string]any{"name": "silent"}, -32602, "there is no prompt"},
		{map[string]any{"name": "nothing"}, -32602, "there is no prompt"},
		{map[string]any{"name": "Review"}, -32602, "there is no prompt"},
		{map[string]any{"name": ""}, -32602, "there is no prompt"},
		{map[string]any{}, -32602, "there is no prompt"},
		{map[string]any{"name": strings.Repeat("x", 100_000)}, -32602, "there is no prompt"},
		{map[string]any{"name": "x\u202e\x1b[2J"}, -32602, `there is no prompt`},
		{map[string]any{"name": 7}, -32602, "not as the protocol has them"},
		{map[string]any{"name": "attach"}, -32602, "no pack"},
		{map[string]any{"name": "attach", "arguments": map[string]any{"pack_id": "nothing"}}, -32602, "no pack"},
		{map[string]any{"name": "detach", "arguments": map[string]any{"pack_id": "../review"}}, -32602, "no pack"},
		{map[string]any{"name": "attach", "arguments": map[string]any{"pack": "x"}}, -32602, "no argument"},
		{map[string]any{"name": "attach_" + toolname.Hash("attach"), "arguments": map[string]any{"pack_id": "x"}}, -32602, "no argument"},
		{map[string]any{"name": "attach", "arguments": map[string]any{"pack_id": 7}}, -32602, "not as the protocol has them"},
		{map[string]any{"name": "attach_" + toolname.Hash("attach"), "arguments": map[string]any{"arguments": strings.Repeat("x", 2<<20)}}, toolerr.RPCNotGiven, "too_large"},
	} {
		code, message := w.refused(false, "prompts/get", c.params)
		if code != c.code || !strings.Contains(message, c.says) || len(message) > 2000 || strings.ContainsAny(message, "\x1b\u202e") {
			t.Errorf("prompts/get %.60v: %d %.200q, want %d and %q", c.params, code, message, c.code, c.says)
		}
	}
	// An answer to a question that nobody asked is refused, as for every call.
	reply := w.modern("prompts/get", map[string]any{
		"name": "odd-name__x", "requestState": "x.y", "inputResponses": map[string]any{"approval": decide("once")("", nil)},
	})
	if e, _ := reply["error"].(map[string]any); e == nil || e["code"] != -32602.0 {
		t.Errorf("a prompt with an answer nobody asked for = %v, want a denial", reply)
	}
	if len(w.asked) != 0 {
		t.Errorf("prompts asked %q", w.asked)
	}
}

// attach and detach change the chat's own set and are recorded. They do not change
// other chats.
func TestAttachByPrompt(t *testing.T) {
	store := attach.Open(filepath.Join(t.TempDir(), "attached.json"))
	change(t, store, func(set *attach.Set) { set.Detach("review", time.Now()) })
	w := newWorld(t, prompted, func(s *setup) { s.store = store })
	w.answer = decide("chat")
	w.initialize()
	other := &world{t: t, root: w.root, audit: w.audit, srv: w.srv}
	other.connect()
	other.initialize()
	open := map[string]any{"pack_id": "review"}
	w.fails("not_attached", "capability_packs_open_docs", open)
	w.notes = nil

	text := message(t, w.prompt("attach", map[string]any{"pack_id": "REVIEW"}))
	for _, want := range []string{"pack_id: review", "description: Reviews code.", "capability_packs_open_docs"} {
		if !strings.Contains(text, want) {
			t.Errorf("attach says %q, want %q in it", text, want)
		}
	}
	if got := w.noted(); !slices.Equal(got, everyList) {
		t.Errorf("attaching made the notifications %q, want one for each list", got)
	}
	w.ok("capability_packs_open_docs", open)
	other.fails("not_attached", "capability_packs_open_docs", open)
	if len(other.notes) != 0 {
		t.Errorf("the other chat heard %v", other.noted())
	}
	// The same again: nothing changes, so no notification is sent.
	w.notes = nil
	message(t, w.prompt("attach", map[string]any{"pack_id": "review"}))
	if got := w.noted(); len(got) != 0 {
		t.Errorf("attaching what is attached made the notifications %q", got)
	}
	message(t, w.prompt("detach", map[string]any{"pack_id": "review"}))
	if got := w.noted(); !slices.Equal(got, everyList) {
		t.Errorf("detaching made the notifications %q, want one for each list", got)
	}
	w.fails("not_attached", "capability_packs_open_docs", open)
	if code, _ := w.refused(false, "resources/read", map[string]any{"uri": "skill://review/SKILL.md"}); code != -32002 {
		t.Errorf("a detached pack's file: %d, want -32002", code)
	}
	var got []string
	for _, e := range w.entries() {
		if e.Tool == "prompts/get" {
			got = append(got, fmt.Sprintf("%s %s %s %s", e.Kind, e.Pack, e.Decision, e.Channel))
		}
	}
	want := []string{"attach review once prompt", "attach review once prompt", "detach review once prompt"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// Completions are names: what can be attached or detached, and what a template can
// refer to.
func TestComplete(t *testing.T) {
	store := attach.Open(filepath.Join(t.TempDir(), "attached.json"))
	change(t, store, func(set *attach.Set) { set.Detach("review", time.Now()) })
	w := newWorld(t, prompted+strings.ReplaceAll(shelf, "-- hidden/", "-- unseen/"), func(s *setup) { s.store = store })
	w.initialize()
	handle := w.srv.chats.All()[0].Workspaces.First().Handle
	prompt := func(name string) map[string]any { return map[string]any{"type": "ref/prompt", "name": name} }
	resource := func(uri string) map[string]any { return map[string]any{"type": "ref/resource", "uri": uri} }
	for _, c := range []struct {
		ref             map[string]any
		argument, value string
		context         map[string]any
		want            []string
	}{
		{prompt("attach"), "pack_id", "", nil, []string{"review"}},
		{prompt("attach"), "pack_id", "RE", nil, []string{"review"}},
		{prompt("attach"), "pack_id", "x", nil, []string{}},
		{prompt("detach"), "pack_id", "re", nil, []string{"acme/refunds"}},
		{prompt("silent"), "arguments", "", nil, nil},
		{prompt("odd-name__x"), "arguments", "a", nil, []string{}},
		{prompt("odd-name__x"), "pack_id", "a", nil, nil},
		{prompt("attach"), "other", "", nil, nil},
		{resource(templateSkill), "pack_id", "", nil, []string{"acme-deep", "acme/refunds", "attach", "notes/inner", "odd-name/x", "silent"}},
		{resource(templateSkill), "path", "", map[string]any{"pack_id": "acme/refunds"}, []string{"SKILL.md", "docs/deep/er.txt", "docs/policy.md", "odd name%20#1.txt"}},
		{resource(templateSkill), "path", "pol", map[string]any{"pack_id": "acme/refunds"}, []string{"docs/policy.md"}},
		{resource(templateSkill), "path", "", map[string]any{"pack_id": "unseen"}, []string{}},
		{resource(templateSkill), "path", "", map[string]any{"pack_id": "notes"}, []string{}},
		{resource(templateSkill), "path", "", nil, []string{}},
		{resource(templatePack), "pack_id", "no", nil, []string{"notes"}},
		{resource(templatePack), "path", "d", map[string]any{"pack_id": "notes"}, []string{"data.csv"}},
		{resource(templateWorkspace), "workspace", "", nil, []string{handle}},
		{resource(templateWorkspace), "path", "", map[string]any{"workspace": handle}, []string{}},
		{resource(templateWorkspace), "path", "", map[string]any{"workspace": "../.."}, []string{}},
		{resource("file:///{path}"), "path", "", nil, nil},
		{map[string]any{"type": "ref/else"}, "x", "", nil, nil},
		{nil, "x", "", nil, nil},
	} {
		params := map[string]any{"ref": c.ref, "argument": map[string]any{"name": c.argument, "value": c.value}}
		if c.context != nil {
			params["context"] = map[string]any{"arguments": c.context}
		}
		if c.want == nil {
			if code, _ := w.refused(false, "completion/complete", params); code != -32602 {
				t.Errorf("%v: %d, want -32602", params, code)
			}
			continue
		}
		got := result(t, w.request("completion/complete", params))["completion"].(map[string]any)
		if values := texts(got["values"]); !slices.Equal(values, c.want) || got["hasMore"] != false {
			t.Errorf("%v = %q, want %q", params, values, c.want)
		}
	}
	if len(w.entries()) != 0 {
		t.Errorf("completions are in the log: %v", w.entries())
	}
}

// opencode asks for every prompt with a placeholder when it starts. Nobody chose one,
// so nothing is opened, and nobody is asked.
func TestPromptForLater(t *testing.T) {
	named := func(w *world, client string) {
		w.request("initialize", map[string]any{
			"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": client, "version": "1"},
		})
		w.send(map[string]any{"method": "notifications/initialized"})
	}
	w := newWorld(t, prompted, everywhere(20*time.Second), func(s *setup) { s.gate.Prompts = gate.PromptsAsk })
	named(w, "opencode")
	for _, c := range []struct{ name, argument, want string }{
		{"review", "arguments", "open it with capability_packs_open_docs, and apply it to what follows.\n\n$1"},
		{"acme__deep", "arguments", "cannot be used here"},
		{"attach", "pack_id", "approval page"},
		{"detach", "pack_id", "approval page"},
	} {
		if got := message(t, w.prompt(c.name, map[string]any{c.argument: "$1"})); !strings.Contains(got, c.want) || strings.Contains(got, "For people.") {
			t.Errorf("%s = %q, want %q", c.name, got, c.want)
		}
	}
	if reply := w.prompt("nowhere", map[string]any{"arguments": "$1"}); reply["error"] == nil {
		t.Errorf("a prompt that is not there = %v, want an error", reply)
	}
	for _, e := range w.entries() {
		if e.Event == audit.EventDecision {
			t.Errorf("the log has %+v, want no decision", e)
		}
	}
	w.pending(0)

	// From any other client the same words are ordinary words, and so are other words
	// from opencode.
	for _, c := range []struct{ client, words string }{{"claude-code", "$1"}, {"opencode", "$10"}, {"opencode", "main.go"}} {
		w := newWorld(t, prompted)
		named(w, c.client)
		if got := message(t, w.prompt("review", map[string]any{"arguments": c.words})); !strings.HasSuffix(got, "\n\nReview "+c.words+".\n") {
			t.Errorf("%s: review %s = %q", c.client, c.words, got)
		}
	}
}
