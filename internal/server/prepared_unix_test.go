//go:build unix

package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/copies"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// copied starts runs from private copies of packs, as the program does.
func copied(t *testing.T) option {
	return func(s *setup) { s.gate.Copies = copies.Open(filepath.Join(t.TempDir(), "copies"), copies.Options{}) }
}

// countPreparations counts how often calls of one of our tools are prepared.
func countPreparations(w *world, tool string) *atomic.Int32 {
	n := new(atomic.Int32)
	base := w.srv.base[tool]
	prepare := base.prepare
	base.prepare = func(s *Server, ctx context.Context, c *calls.Call) (*calls.Action, error) {
		n.Add(1)
		return prepare(s, ctx, c)
	}
	return n
}

// A call is prepared once, and again only if it waited for a person or for another
// run.
func TestPreparedOnce(t *testing.T) {
	needShell(t)
	w := newWorld(t, deploy, copied(t), limited(Limits{Runs: 1}))
	w.answer = decide("once")
	runs, execs, lists := countPreparations(w, toolname.Call), countPreparations(w, execMethod), countPreparations(w, "capability_packs_list")
	w.initialize()
	w.enable("acme/deploy")
	is := func(about string, n *atomic.Int32, want int32) {
		t.Helper()
		if got := n.Swap(0); got != want {
			t.Errorf("%s: prepared %d times, want %d", about, got, want)
		}
	}
	echo := map[string]any{"script": "echo x"}
	exec := map[string]any{"pack_id": "acme/deploy", "command": "echo"}
	w.ok("capability_packs_list", nil)
	is("what nobody is asked about", lists, 1)
	w.ok("deploy__sh", echo)
	is("a run that a person allows", runs, 2)
	w.ok(execMethod, exec)
	is("a command that a person allows", execs, 2)
	w.answer = decide("chat")
	w.ok("deploy__sh", echo)
	w.ok(execMethod, exec)
	is("a run that a person allows for the chat", runs, 2)
	is("a command that a person allows for the chat", execs, 2)
	w.ok("deploy__sh", echo)
	is("a run under an answer for the chat", runs, 1)
	w.ok(execMethod, exec)
	is("a command under an answer for the chat", execs, 1)

	// A call that has to wait for its place.
	call := func(id, name string, args map[string]any) {
		w.send(map[string]any{"id": id, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	}
	replies := make(map[any]map[string]any)
	call("first", "deploy__sh", map[string]any{"script": `: >"$PACKS_WORKSPACE/begun"; while [ ! -e "$PACKS_WORKSPACE/go" ]; do sleep 0.01; done`})
	waitUntil(t, w, replies, func() bool { _, err := os.Stat(filepath.Join(w.space(), "begun")); return err == nil })
	before := countRuns(w)
	call("second", execMethod, exec)
	waitUntil(t, w, replies, func() bool { return countRuns(w).entries > before.entries })
	if err := os.WriteFile(filepath.Join(w.space(), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, w, replies, func() bool { return len(replies) == 2 })
	is("the run that was waited for", runs, 1)
	is("the command that waited", execs, 2)
}

// What was allowed and then changed does not run, although the call is not prepared
// again. Here it changes after the call was prepared, and before the decision is
// logged.
func TestChangedAfterItWasPrepared(t *testing.T) {
	needShell(t)
	const tree = deploy + `
-- bound/SKILL.md --
---
name: bound
description: B.
---
-- bound/tools.json --
{"tools": [{"name": "run", "inputSchema": {"type": "object"}, "command": {"program": "sh", "args": ["r.sh"], "cwd": "project"}}]}
`
	exec := func(args ...string) map[string]any {
		return map[string]any{"pack_id": "acme/deploy", "command": "sh", "args": args}
	}
	put := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		tool   string
		args   map[string]any
		change func(t *testing.T, w *world, project string)
		says   string // in the denial; empty: what was approved runs, from its copy
	}{
		"a file that a command names": {execMethod, exec("r.sh"), func(t *testing.T, w *world, _ string) {
			put(t, filepath.Join(w.space(), "r.sh"), "echo evil")
		}, "changed after it was allowed"},
		"a file beside it": {execMethod, exec("r.sh"), func(t *testing.T, w *world, _ string) {
			put(t, filepath.Join(w.space(), "other"), "")
		}, "changed after it was allowed"},
		"where a link leads": {execMethod, exec("link.sh"), func(t *testing.T, w *world, project string) {
			link := filepath.Join(w.space(), "link.sh")
			if err := os.Remove(link); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(project, "evil.sh"), link); err != nil {
				t.Fatal(err)
			}
		}, "changed after it was allowed"},
		"a file that a tool names": {"bound__run", nil, func(t *testing.T, _ *world, project string) {
			put(t, filepath.Join(project, "r.sh"), "echo evil")
		}, "changed after it was allowed"},
		"a file of the pack": {"deploy__sh", map[string]any{"script": "echo x"}, func(t *testing.T, w *world, _ string) {
			put(t, filepath.Join(w.root, "acme/deploy/sh"), "#!/bin/sh\necho evil\n")
		}, ""},
		"the pack is detached": {"deploy__sh", map[string]any{"script": "echo x"}, func(t *testing.T, w *world, _ string) {
			change(t, w.store, func(s *attach.Set) { s.Detach("acme/deploy", time.Now()) })
		}, "changed after it was allowed"},
		"the workspace": {execMethod, map[string]any{"pack_id": "acme/deploy", "command": "echo"}, func(t *testing.T, w *world, _ string) {
			if err := os.Rename(w.space(), w.space()+"-before"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(w.space(), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "is not the folder it was"},
	} {
		t.Run(name, func(t *testing.T) {
			var log *meddler
			project := t.TempDir()
			w := newWorld(t, tree, copied(t), func(s *setup) {
				s.store = attach.Open(filepath.Join(t.TempDir(), "attached.json"))
				s.server.Project = project
				log = &meddler{Recorder: s.gate.Log}
				s.gate.Log = log
			})
			w.answer = decide("chat")
			w.initialize()
			w.enable("acme/deploy")
			w.enable("bound")
			for _, path := range []string{filepath.Join(w.space(), "r.sh"), filepath.Join(project, "r.sh"), filepath.Join(project, "link.sh")} {
				put(t, path, "echo good")
			}
			put(t, filepath.Join(project, "evil.sh"), "echo evil")
			if err := os.Symlink(filepath.Join(project, "link.sh"), filepath.Join(w.space(), "link.sh")); err != nil {
				t.Fatal(err)
			}
			w.ok(c.tool, c.args)
			w.ok(c.tool, c.args)
			asked, runs := len(w.asked), countRuns(w)
			log.do = func() { c.change(t, w, project) }
			out, isError := w.tool(c.tool, c.args)
			if log.do != nil || len(w.asked) != asked {
				t.Fatalf("nothing happened in between, or a person was asked: %q", w.asked[asked:])
			}
			if c.says == "" {
				if out["stdout"] != "x\n" {
					t.Errorf("%s %v = %v, want what was approved", c.tool, c.args, out)
				}
				return
			}
			e, _ := out["error"].(map[string]any)
			if message, _ := e["message"].(string); !isError || !strings.Contains(message, c.says) {
				t.Errorf("%s %v = %v, want that it is withheld: %s", c.tool, c.args, out, c.says)
			}
			if now := countRuns(w); e["code"] == "denied" && now.starts != runs.starts {
				t.Errorf("%d programs were started, want none", now.starts-runs.starts)
			}
		})
	}
}

// startMeddler calls a function once, right before the log line about the start of a
// run.
type startMeddler struct {
	gate.Recorder
	do func()
}

func (m *startMeddler) Append(e audit.Entry) error {
	m.meddle(e)
	return m.Recorder.Append(e)
}

func (m *startMeddler) AppendLazy(e audit.Entry) error {
	m.meddle(e)
	return m.Recorder.AppendLazy(e)
}

func (m *startMeddler) meddle(e audit.Entry) {
	if do := m.do; do != nil && e.Event == audit.EventRunStart {
		m.do = nil
		do()
	}
}

// A file that changes after the run has its place, and before it has its turn in the
// folder, is noticed even if the run did not have to wait for the turn.
func TestChangedBeforeItsTurn(t *testing.T) {
	const tree = `
-- bound/SKILL.md --
---
name: bound
description: B.
---
-- bound/tools.json --
{"tools": [{"name": "run", "inputSchema": {"type": "object"}, "command": {"program": "sh", "args": ["r.sh"], "cwd": "project"}}]}
`
	box := confined(t, sandbox.LevelFull)
	h := servertest.NewHouse(t)
	script := filepath.Join(h.Project, "r.sh")
	if err := os.WriteFile(script, []byte("echo good\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var log *startMeddler
	w := newWorld(t, tree, box, copied(t), lives(h), func(s *setup) {
		log = &startMeddler{Recorder: s.gate.Log}
		s.gate.Log = log
	})
	w.answer = decide("chat")
	w.initialize()
	w.enable("bound")
	if got := w.ok("bound__run", nil); got["stdout"] != "good\n" {
		t.Fatalf("the first run = %v", got)
	}
	log.do = func() {
		if err := os.WriteFile(script, []byte("echo evil\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
	out, isError := w.tool("bound__run", nil)
	e, _ := out["error"].(map[string]any)
	if message, _ := e["message"].(string); log.do != nil || !isError || !strings.Contains(message, "changed after it was allowed") {
		t.Errorf("bound__run = %v, want that it is withheld", out)
	}
}

// A run does not start if it waited for its turn in a folder behind a run that
// changed what its answer is bound to.
func TestChangedWhileItWaitedForItsTurn(t *testing.T) {
	const tree = deploy + `
-- bound/SKILL.md --
---
name: bound
description: B.
---
-- bound/tools.json --
{"tools": [{"name": "run", "inputSchema": {"type": "object"}, "command": {"program": "sh", "args": ["r.sh"], "cwd": "project"}}]}
`
	box := confined(t, sandbox.LevelFull)
	for name, c := range map[string]struct{ script, out string }{
		"what it is bound to": {"echo 'echo evil' >r.sh", ""},
		"another file":        {"echo x >other", "good\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := servertest.NewHouse(t)
			script := filepath.Join(h.Project, "r.sh")
			if err := os.WriteFile(script, []byte("echo good\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, tree, box, copied(t), lives(h))
			w.answer = decide("chat")
			w.initialize()
			w.enable("acme/deploy")
			w.enable("bound")
			if got := w.ok("bound__run", nil); got["stdout"] != "good\n" {
				t.Fatalf("the first run = %v", got)
			}
			call := func(id, name string, args map[string]any) {
				w.send(map[string]any{"id": id, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
			}
			replies := make(map[any]map[string]any)
			call("writer", "deploy__in_project", map[string]any{"script": `: >"$PACKS_WORKSPACE/begun"; while [ ! -e "$PACKS_WORKSPACE/go" ]; do sleep 0.01; done; ` + c.script})
			waitUntil(t, w, replies, func() bool { _, err := os.Stat(filepath.Join(w.space(), "begun")); return err == nil })
			call("bound", "bound__run", map[string]any{})
			waitUntil(t, w, replies, func() bool { return strings.Contains(w.log.String(), "a run waits for its turn in a folder") })
			if err := os.WriteFile(filepath.Join(w.space(), "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			waitUntil(t, w, replies, func() bool { return len(replies) == 2 })
			got := result(t, replies["bound"])
			content, _ := got["structuredContent"].(map[string]any)
			if c.out != "" {
				if content["stdout"] != c.out {
					t.Errorf("the run that waited = %v, want %q", got, c.out)
				}
				return
			}
			e, _ := content["error"].(map[string]any)
			if message, _ := e["message"].(string); got["isError"] != true || !strings.Contains(message, "changed after it was allowed") {
				t.Errorf("the run that waited = %v, want that it is withheld", got)
			}
			// The next call asks about the file as it is now.
			asked := len(w.asked)
			w.ok("bound__run", nil)
			if len(w.asked) != asked+1 {
				t.Errorf("%d questions after that, want one", len(w.asked)-asked)
			}
		})
	}
}
