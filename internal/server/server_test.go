package server

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A world is a server with packs, a real gate, a real runner and a real audit
// log, and one client on a pipe that speaks raw JSON.
type world struct {
	t     *testing.T
	root  string // of the packs
	audit string // the log's path
	srv   *Server
	in    *io.PipeWriter
	lines chan map[string]any
	done  chan error
	next  int
	// answer is what the client's user does with a question; nil: the client
	// cannot ask.
	answer func(message string, schema map[string]any) map[string]any
	asked  []string         // the questions that came
	notes  []map[string]any // the notifications that came
}

type option func(*Options, *gate.Options)

// newWorld starts a server over the packs of a txtar tree.
func newWorld(t *testing.T, tree string, options ...option) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir(), lines: make(chan map[string]any, 100), done: make(chan error, 1)}
	plant(t, w.root, tree)
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	lib, err := packs.NewLibrary(t.Context(), packs.Options{
		Roots:  []packs.Root{{Dir: w.root, Source: "flag", Trust: packs.TrustUser, AttachAll: true}},
		Logger: logger,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.audit = filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(w.audit, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	gateOptions := gate.Options{Runner: sandbox.New(sandbox.Options{Grace: 100 * time.Millisecond}), Log: log, Logger: logger}
	o := Options{
		Version: "test", Library: lib, Logger: logger, Workspaces: t.TempDir(),
		Environ: os.Environ(), Wait: 10 * time.Second,
	}
	for _, f := range options {
		f(&o, &gateOptions)
	}
	g, err := gate.New(gateOptions)
	if err != nil {
		t.Fatal(err)
	}
	o.Gate = g
	if w.srv, err = New(o); err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w.in = inW
	go func() {
		err := w.srv.ServeStdio(context.WithoutCancel(t.Context()), inR, outW)
		outW.Close()
		w.done <- err
	}()
	go func() {
		defer close(w.lines)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var m map[string]any
			if err := json.Unmarshal(line, &m); err != nil {
				t.Errorf("the server wrote a line that is not JSON: %q", line)
				return
			}
			w.lines <- m
		}
	}()
	t.Cleanup(w.close)
	return w
}

// plant writes the files of a txtar tree. A name that ends in "*" is made
// executable.
func plant(t *testing.T, root, tree string) {
	t.Helper()
	for _, f := range txtar.Parse([]byte(tree)).Files {
		name, exec := strings.CutSuffix(f.Name, "*")
		mode := os.FileMode(0o644)
		if exec {
			mode = 0o755
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) close() {
	w.in.Close()
	select {
	case <-w.done:
	case <-time.After(20 * time.Second):
		w.t.Error("the server did not end with its input")
	}
}

func (w *world) send(m map[string]any) {
	w.t.Helper()
	m["jsonrpc"] = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.raw(string(b))
}

func (w *world) raw(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// receive returns the next message that is no question and no notification.
func (w *world) receive() map[string]any {
	w.t.Helper()
	for {
		select {
		case m, ok := <-w.lines:
			if !ok {
				w.t.Fatal("the server closed the connection")
			}
			switch {
			case m["method"] == "elicitation/create":
				w.question(m)
			case m["method"] != nil:
				w.notes = append(w.notes, m)
			default:
				return m
			}
		case <-time.After(20 * time.Second):
			w.t.Fatal("the server does not answer")
		}
	}
}

func (w *world) question(m map[string]any) {
	params := m["params"].(map[string]any)
	message := params["message"].(string)
	w.asked = append(w.asked, message)
	if w.answer == nil {
		w.t.Fatalf("the server asked a client that cannot show questions: %s", message)
	}
	if result := w.answer(message, params["requestedSchema"].(map[string]any)); result != nil {
		w.send(map[string]any{"id": m["id"], "result": result})
	}
}

func (w *world) request(method string, params map[string]any) map[string]any {
	w.t.Helper()
	w.next++
	w.send(map[string]any{"id": w.next, "method": method, "params": params})
	return w.receive()
}

// initialize does the handshake of the older era; it declares elicitation when
// there is somebody to answer.
func (w *world) initialize() map[string]any {
	w.t.Helper()
	caps := map[string]any{}
	if w.answer != nil {
		caps["elicitation"] = map[string]any{}
	}
	reply := w.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": caps,
		"clientInfo": map[string]any{"name": "test", "version": "1"},
	})
	w.send(map[string]any{"method": "notifications/initialized"})
	return result(w.t, reply)
}

// tool calls a tool and returns its structured content.
func (w *world) tool(name string, args map[string]any) (content map[string]any, isError bool) {
	w.t.Helper()
	r := result(w.t, w.request("tools/call", map[string]any{"name": name, "arguments": args}))
	isError, _ = r["isError"].(bool)
	content, ok := r["structuredContent"].(map[string]any)
	if !ok {
		w.t.Fatalf("tools/call %s: no structured content in %v", name, r)
	}
	text := r["content"].([]any)[0].(map[string]any)["text"].(string)
	var same map[string]any
	if err := json.Unmarshal([]byte(text), &same); err != nil {
		w.t.Errorf("tools/call %s: the text is not the same JSON: %q", name, text)
	}
	return content, isError
}

func result(t *testing.T, reply map[string]any) map[string]any {
	t.Helper()
	r, ok := reply["result"].(map[string]any)
	if !ok {
		t.Fatalf("the reply has no result: %v", reply)
	}
	return r
}

// decide is a user who always chooses the same.
func decide(d string) func(string, map[string]any) map[string]any {
	return func(string, map[string]any) map[string]any {
		return map[string]any{"action": "accept", "content": map[string]any{"decision": d}}
	}
}

func must(t *testing.T, v any, isError bool) map[string]any {
	t.Helper()
	m := v.(map[string]any)
	if isError {
		t.Fatalf("the call failed: %v", m)
	}
	return m
}

const triage = `
-- triage/SKILL.md --
---
name: triage
description: Triage incidents.
tags: [ops]
---
# Triage

Read docs/steps.md.
-- triage/docs/steps.md --
Step one.
-- triage/tools.json --
{"tools": [{"name": "greet", "description": "Say hello.",
  "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"], "additionalProperties": false},
  "command": {"program": "./scripts/greet.sh", "args": ["{{who}}"]}}]}
-- triage/scripts/greet.sh* --
#!/bin/sh
echo "hello $1"
echo made > made.txt
`

func TestWholeWay(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = decide("once")
	init := w.initialize()
	if got := init["instructions"].(string); !strings.Contains(got, "- pack_id: triage") || !strings.Contains(got, "has_tools_json: true") {
		t.Errorf("instructions = %q, want the pack in them", got)
	}
	opened := must2(t)(w.tool("capability_packs_open_docs", map[string]any{"pack_id": "triage"}))
	t.Log(opened)
	read := must2(t)(w.tool("capability_packs_read_file", map[string]any{"pack_id": "triage", "path": "docs/steps.md"}))
	t.Log(read)
	enabled := must2(t)(w.tool("capability_packs_enable_tools", map[string]any{"pack_id": "triage"}))
	t.Log(enabled, w.notes)
	ran := must2(t)(w.tool("triage__greet", map[string]any{"who": "Ada"}))
	t.Log(ran)
	for _, q := range w.asked {
		t.Log(q)
	}
}

func must2(t *testing.T) func(map[string]any, bool) map[string]any {
	return func(m map[string]any, isError bool) map[string]any {
		t.Helper()
		return must(t, m, isError)
	}
}
