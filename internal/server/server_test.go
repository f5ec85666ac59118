package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// The whole sequence over one connection: metadata, document, file, tools, run,
// artifact, and a log line for each.
func TestWholeWay(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage)
	w.answer = decide("once")
	if got := w.initialize()["instructions"].(string); !strings.Contains(got, "- pack_id: triage") || !strings.Contains(got, "has_tools_json: true") {
		t.Errorf("instructions = %q, want the pack in them", got)
	}
	opened := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	if got, want := opened["entry_doc"].(map[string]any)["content"], "# Triage\n\nRead docs/steps.md.\n"; got != want {
		t.Errorf("open_docs: content = %q, want %q", got, want)
	}
	read := w.ok("capability_packs_read_file", map[string]any{"pack_id": "triage", "path": "docs/steps.md"})
	if got, want := read["content"], "Step one.\n"; got != want {
		t.Errorf("read_file: content = %q, want %q", got, want)
	}
	w.enable("triage")
	if n := len(w.notes); n != 1 || w.notes[0]["method"] != "notifications/tools/list_changed" {
		t.Errorf("enable_tools sent %v, want one list_changed", w.notes)
	}
	if names := w.listed(); !slices.Contains(names, "triage__greet") {
		t.Errorf("tools/list = %q, want triage__greet in it", names)
	}
	ran := w.ok("triage__greet", map[string]any{"who": "Ada"})
	if got, want := ran["stdout"], "hello Ada\n"; got != want || ran["ok"] != true || ran["sandbox"] != "none" {
		t.Errorf("the run = %v, want stdout %q, ok and sandbox none", ran, want)
	}
	artifacts := objects(ran["artifacts"])
	if len(artifacts) != 1 || artifacts[0]["path"] != "made.txt" {
		t.Fatalf("artifacts = %v, want made.txt", artifacts)
	}
	made := w.ok("capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "made.txt", "workspace": ran["workspace"]})
	if made["content"] != "made\n" {
		t.Errorf("the artifact = %v, want the file that the run made", made)
	}
	if got := len(w.asked); got != 5 {
		t.Errorf("%d questions were asked, want 5: one for each call", got)
	}
	question := w.asked[3]
	for _, want := range []string{
		"greet", "triage", `argument 1: "Ada"`, filepath.Join("triage", "scripts", "greet.sh"),
		"sandbox: none; it can do everything you can do", "> Say hello.",
	} {
		if !says(question, want) {
			t.Errorf("the question does not have %q:\n%s", want, question)
		}
	}

	var got []string
	for _, e := range w.entries() {
		got = append(got, strings.TrimSpace(string(e.Event)+" "+e.Kind+" "+e.Decision))
	}
	want := []string{
		"decision open once", "decision read once", "decision enable once", "decision run once",
		"run.start run", "run.end run", "decision read once",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	if report, err := audit.Verify(w.audit); err != nil || !report.OK {
		t.Errorf("audit.Verify = %+v, %v, want a whole log", report, err)
	}
}

// AP-07: what was allowed or asked in one chat does not affect another, and neither
// do its tools and its workspace.
func TestChatsAreApart(t *testing.T) {
	needShell(t)
	a := newWorld(t, triage)
	a.answer = decide("chat")
	a.initialize()
	a.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	a.enable("triage")
	ran := a.ok("triage__greet", map[string]any{"who": "Ada"})

	b := &world{t: t, root: a.root, audit: a.audit, srv: a.srv}
	b.connect()
	b.answer = decide("deny")
	b.initialize()
	if names := b.listed(); slices.Contains(names, "triage__greet") {
		t.Errorf("the other chat lists %q", names)
	}
	b.fails("denied", "capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	b.fails("not_enabled", "triage__greet", map[string]any{"who": "Ada"})
	b.fails("not_found", "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "made.txt", "workspace": ran["workspace"]})
	if len(b.asked) != 1 {
		t.Errorf("the other chat was asked %d times, want once", len(b.asked))
	}

	call := map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage", "arguments": "x"}}
	a.answer = decide("once")
	state := result(t, b.modern("tools/call", call))["requestState"]
	call["requestState"] = state
	call["inputResponses"] = map[string]any{"approval": decide("once")("", nil)}
	got := a.modern("tools/call", call)
	if e, _ := got["error"].(map[string]any); e["code"] != -32602.0 || !strings.Contains(e["message"].(string), "another call") {
		t.Errorf("an approval of one chat, used in another = %v, want that it is another's", got)
	}
}

// A workspace stays if there is something in it, and is removed otherwise.
func TestWorkspaceAfterwards(t *testing.T) {
	needShell(t)
	for _, run := range []bool{true, false} {
		w := newWorld(t, triage)
		w.answer = decide("once")
		w.initialize()
		if run {
			w.enable("triage")
			w.ok("triage__greet", map[string]any{"who": "Ada"})
		}
		w.close()
		left, err := os.ReadDir(w.srv.opts.Workspaces)
		if err != nil {
			t.Fatal(err)
		}
		if (len(left) > 0) != run {
			t.Errorf("after a run %v, %d workspaces are left", run, len(left))
		}
	}
}
