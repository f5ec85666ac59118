package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

// notes is a pack whose tool adds a line to a file, and prints the file.
const notes = `
-- notes/SKILL.md --
---
name: notes
description: Keeps notes.
---
-- notes/tools.json --
{"tools": [{"name": "add", "description": "Adds a note.",
  "inputSchema": {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"], "additionalProperties": false},
  "command": {"program": "./add.sh", "args": ["{{note}}"]}}]}
-- notes/add.sh --
#!/bin/sh
echo "$1" >> notes.txt
cat notes.txt
`

// addNote adds a note in a workspace, and returns the workspace's handle and all
// notes.
func addNote(c *servertest.Client, note, workspace string) (handle, all string) {
	c.T.Helper()
	args := map[string]any{"pack_id": "notes", "tool": "add", "arguments": map[string]any{"note": note}}
	if workspace != "" {
		args["workspace"] = workspace
	}
	got := c.OK("capability_packs_call_tool", args)
	return got["workspace"].(string), got["stdout"].(string)
}

// Since 2026-07-28 one token is one chat. Its conversations keep their files apart by
// handles, with every way of asking a person and every transport.
func TestWorkspaceHandles(t *testing.T) {
	needShell(t)
	w := newWorld(t, notes)
	s := newSite(t, w)
	for era, c := range map[string]*servertest.Client{"modern": s.Newer(tokenAda, decide("once")), "legacy": s.Older(tokenAda, decide("once"))} {
		c.OK("capability_packs_enable_tools", map[string]any{"pack_id": "notes"})
		first, all := addNote(c, "a", "")
		if all != "a\n" {
			t.Errorf("%s: the first workspace has %q", era, all)
		}
		second, all := addNote(c, "b", "new")
		if second == first || len(second) != 32 || all != "b\n" {
			t.Errorf("%s: a new workspace is %q with %q, want another one than %q", era, second, all, first)
		}
		// The same call made again gets another workspace.
		third, all := addNote(c, "b", "new")
		if third == second || all != "b\n" {
			t.Errorf("%s: a new workspace is %q with %q again", era, third, all)
		}
		for _, step := range []struct{ workspace, note, want string }{{"", "c", "a\nc\n"}, {first, "d", "a\nc\nd\n"}, {second, "e", "b\ne\n"}, {third, "f", "b\nf\n"}} {
			if at, all := addNote(c, step.note, step.workspace); all != step.want || step.workspace != "" && at != step.workspace {
				t.Errorf("%s: in %q there is %q, want %q", era, at, all, step.want)
			}
		}
		// A tool that is called by its own name has no parameter for a handle, but
		// _meta has.
		asked := c.Ask("tools/call", map[string]any{"name": "notes__add", "arguments": map[string]any{"note": "g"}, "_meta": map[string]any{"packs-mcp/workspace": second}})
		if got, _ := result(t, asked)["structuredContent"].(map[string]any); got["workspace"] != second || got["stdout"] != "b\ne\ng\n" {
			t.Errorf("%s: with a handle in _meta, a tool ran with %v", era, got)
		}
		c.OK("capability_packs_exec_best_effort", map[string]any{"pack_id": "notes", "command": "./add.sh", "args": []string{"h"}, "workspace": third})
		for handle, want := range map[string]string{"": "a\nc\nd\n", first: "a\nc\nd\n", second: "b\ne\ng\n", third: "b\nf\nh\n"} {
			if got := c.OK("capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "notes.txt", "workspace": handle}); got["content"] != want {
				t.Errorf("%s: read_file in %q = %q, want %q", era, handle, got["content"], want)
			}
			if handle == "" {
				continue
			}
			uri := "workspace://" + handle
			if got := contentsOf(t, c.Ask("resources/read", map[string]any{"uri": uri + "/notes.txt"})); got["text"] != want {
				t.Errorf("%s: %s/notes.txt = %v, want %q", era, uri, got, want)
			}
		}
		values := func(name, value string, context map[string]any) []string {
			r := result(t, c.Ask("completion/complete", map[string]any{
				"ref": map[string]any{"type": "ref/resource", "uri": templateWorkspace}, "argument": map[string]any{"name": name, "value": value}, "context": map[string]any{"arguments": context},
			}))
			return texts(r["completion"].(map[string]any)["values"])
		}
		want := []string{first, second, third}
		slices.Sort(want)
		if got := values("workspace", "", nil); !slices.Equal(got, want) {
			t.Errorf("%s: the handles are %q, want %q", era, got, want)
		}
		if got := values("path", "", map[string]any{"workspace": second}); !slices.Equal(got, []string{"notes.txt"}) {
			t.Errorf("%s: the files of a workspace are %q", era, got)
		}
		// The page has the files of all of them.
		var files []string
		chat := ""
		for _, r := range w.srv.ChatViews(t.Context()) {
			if slices.ContainsFunc(r.Artifacts, func(f workspace.File) bool { return f.Path == second+"/notes.txt" }) {
				chat = r.Chat
				for _, f := range r.Artifacts {
					files = append(files, f.Path)
				}
			}
		}
		slices.Sort(files)
		if want := []string{second + "/notes.txt", third + "/notes.txt", "notes.txt"}; len(files) != 3 || files[2] != want[2] || !slices.Contains(files, want[1]) {
			t.Errorf("%s: the page has %q, want %q", era, files, want)
		}
		for _, name := range []string{second + "/notes.txt", first + "/notes.txt", second + "/../" + third + "/notes.txt", second + "/", second} {
			f, about, err := w.srv.OpenArtifact(chat, name)
			if (err == nil) != (name == second+"/notes.txt") || err == nil && about.Size != 6 {
				t.Errorf("%s: OpenArtifact(%q) = %+v, %v", era, name, about, err)
			}
			if err == nil {
				f.Close()
			}
		}
		// For another token they do not exist.
		grace := s.Newer(tokenGrace, decide("once"))
		grace.OK("capability_packs_enable_tools", map[string]any{"pack_id": "notes"})
		var words []string
		for _, handle := range []string{first, second, third, "0123456789abcdef0123456789abcdef", strings.ToUpper(second), "New", "../" + second} {
			call := map[string]any{"pack_id": "notes", "tool": "add", "arguments": map[string]any{"note": "x"}, "workspace": handle}
			for _, e := range []map[string]any{
				grace.Fails("not_found", "capability_packs_call_tool", call),
				grace.Fails("not_found", "capability_packs_exec_best_effort", map[string]any{"pack_id": "notes", "command": "./add.sh", "workspace": handle}),
				grace.Fails("not_found", "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "notes.txt", "workspace": handle}),
			} {
				words = append(words, fmt.Sprint(e["message"], e["hint"]))
			}
			if e, _ := grace.Ask("resources/read", map[string]any{"uri": "workspace://" + handle + "/notes.txt"})["error"].(map[string]any); e == nil || e["code"] == float64(toolerr.RPCNotGiven) {
				t.Errorf("%s: another's workspace %s = %v", era, handle, e)
			}
		}
		if slices.Sort(words); len(slices.Compact(words)) != 1 {
			t.Errorf("%s: handles that are not hers are refused in these words: %q", era, slices.Compact(words))
		}
		c.Fails("not_found", "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": ".", "workspace": "new"})
	}
}

// A call gets the same new workspace until its program runs, however its client
// spells the call. Two different calls get two.
func TestNewWorkspaceOfACall(t *testing.T) {
	w := newWorld(t, notes)
	w.initialize()
	ch := w.srv.chats.All()[0]
	in := func(args string) *workspace.Workspace {
		t.Helper()
		c := &calls.Call{Chat: ch, Method: w.srv.method(callTool()), Args: callargs.Read(json.RawMessage(args))}
		if err := c.RunsIn(workspace.New); err != nil {
			t.Fatal(err)
		}
		return c.Workspace()
	}
	a := in(`{"pack_id":"notes","arguments":{"note":"a","n":1.0}}`)
	if again := in(`{ "arguments": {"n": 1.0, "note": "\u0061"}, "pack_id": "notes" }`); again != a {
		t.Error("the same call in another spelling means another workspace")
	}
	if b := in(`{"pack_id":"notes","arguments":{"note":"b","n":1.0}}`); b == a {
		t.Error("another call means the same workspace")
	}
	const same = `{"pack_id":"notes","arguments":{"note":"a","n":1.0}}`
	c := &calls.Call{Chat: ch, Method: w.srv.method(callTool()), Args: callargs.Read(json.RawMessage(same))}
	if err := c.RunsIn(workspace.New); err != nil {
		t.Fatal(err)
	}
	done, ok := ch.Workspaces.Begin(c.Workspace())
	if !ok {
		t.Fatal("the program cannot have its workspace")
	}
	if again := in(same); again == a {
		t.Error("a workspace is given twice as a new one")
	}
	done()
	if ch.Workspaces.Named(a.Handle) != a {
		t.Error("the handle is not known after the run")
	}
}

// Handles cannot be used to exceed the limit of a workspace. The total is measured
// when a program is about to start, and not for a call that is denied.
func TestWorkspacesShareTheLimit(t *testing.T) {
	needShell(t)
	l := Limits{}
	l.Run.Workspace = 1000
	w := newWorld(t, notes, limited(l))
	w.answer = decide("once")
	w.initialize()
	w.enable("notes")
	n := 0
	in := func(handle string) map[string]any {
		n++ // makes this call different
		return map[string]any{"pack_id": "notes", "tool": "add", "arguments": map[string]any{"note": fmt.Sprint(n)}, "workspace": handle}
	}
	ch := w.srv.chats.All()[0]
	for _, size := range []int{400, 400, 300} {
		sp := ch.Workspaces.Named(w.ok("capability_packs_call_tool", in(workspace.New))["workspace"].(string))
		if err := os.WriteFile(filepath.Join(sp.Dir, "big"), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held := ch.Workspaces.All()[1].Handle
	for _, handle := range []string{workspace.New, held} {
		w.answer = decide("once")
		w.fails(toolerr.CodeWorkspaceLimit, "capability_packs_call_tool", in(handle))
		w.fails(toolerr.CodeWorkspaceLimit, "capability_packs_exec_best_effort", map[string]any{"pack_id": "notes", "command": "./add.sh", "workspace": handle})
		all := w.entries()
		if e := all[len(all)-1]; e.Decision != "deny" || !strings.Contains(e.Reason, "hold as much as they may") {
			t.Errorf("the log ends with %+v, want that the run was withheld", e)
		}
		w.answer = decide("deny")
		w.fails(toolerr.CodeDenied, "capability_packs_call_tool", in(handle))
	}
	// The first workspace has its own limit, which is checked at the end of each run.
	w.answer = decide("once")
	w.ok("capability_packs_call_tool", in(""))
}

// If the user named one folder for everything, there is no other workspace.
func TestNoNewWorkspace(t *testing.T) {
	needShell(t)
	w := newWorld(t, notes, func(s *setup) { s.server.Workspace = t.TempDir() })
	w.answer = decide("once")
	w.initialize()
	w.enable("notes")
	args := map[string]any{"pack_id": "notes", "tool": "add", "arguments": map[string]any{"note": "a"}, "workspace": "new"}
	w.fails("invalid_arguments", "capability_packs_call_tool", args)
	if len(w.asked) != 1 {
		t.Errorf("asked %d times, want once, to enable", len(w.asked))
	}
}

// Twenty conversations of one token at once, each in a workspace of its own.
func TestManyConversations(t *testing.T) {
	needShell(t)
	s := newSite(t, newWorld(t, notes))
	s.Newer(tokenAda, decide("once")).OK("capability_packs_enable_tools", map[string]any{"pack_id": "notes"})
	var mu sync.Mutex
	handles := make(map[string]bool)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			c := s.Newer(tokenAda, decide("chat"))
			mine := fmt.Sprintf("note-%d", i)
			handle, all := addNote(c, mine, "new")
			if all != mine+"\n" {
				t.Errorf("conversation %d begins with %q", i, all)
			}
			if _, all = addNote(c, "again", handle); all != mine+"\nagain\n" {
				t.Errorf("conversation %d goes on with %q", i, all)
			}
			mu.Lock()
			defer mu.Unlock()
			handles[handle] = true
		})
	}
	wg.Wait()
	if len(handles) != 20 {
		t.Errorf("%d workspaces, want 20", len(handles))
	}
}
