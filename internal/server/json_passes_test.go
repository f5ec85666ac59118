//go:build jsonpasses

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// TestJSONPasses counts how often our code reads or writes the arguments of one call
// that runs, as JSON, from the arrival of its message to the log, alone or as part of
// something larger. It needs an encoding/json that reports each pass: see
// scripts/json-passes.sh. The library's passes do not count. The argument has
// characters that JSON escapes, so that no pass is skipped by luck.
func TestJSONPasses(t *testing.T) {
	needShell(t)
	const most = 5 // check the frame, read the arguments, write them once, write them for the log, give them to the program
	const mark = "marked \"argument\"\n"
	for name, of := range map[string]struct {
		tool string
		args func(text string) map[string]any
	}{
		"call_tool": {toolname.Call, func(text string) map[string]any {
			return map[string]any{"pack_id": "bench", "tool": "grep", "arguments": map[string]any{"text": text}}
		}},
		"a tool by its own name": {"bench__grep", func(text string) map[string]any { return map[string]any{"text": text} }},
		"a tool that reads them": {"reader__read", func(text string) map[string]any { return map[string]any{"text": text} }},
		"exec_best_effort": {toolname.Exec, func(text string) map[string]any {
			return map[string]any{"pack_id": "bench", "command": "echo", "args": []string{text}}
		}},
	} {
		for how, answer := range map[string]string{"asked about": "once", "under an answer for the chat": "chat"} {
			if of.tool == toolname.Exec && answer == "chat" {
				continue // such an answer covers only this exact command
			}
			t.Run(name+" "+how, func(t *testing.T) {
				w := newWorld(t, workbench+reader)
				w.answer = decide(answer)
				w.initialize()
				w.enable("bench")
				w.enable("reader")
				if answer == "chat" {
					w.ok(of.tool, of.args("x"))
				}
				var mu sync.Mutex
				passes := make(map[string]int)
				json.PassHook = func(kind string, text []byte) {
					if !bytes.Contains(text, []byte("marked ")) || kind == "encode" && string(text) != mark {
						return
					}
					if at := ours(); at != "" {
						mu.Lock()
						defer mu.Unlock()
						passes[kind+" "+at]++
					}
				}
				defer func() { json.PassHook = nil }()
				w.ok(of.tool, of.args(mark))
				w.close()
				all := 0
				for _, at := range slices.Sorted(maps.Keys(passes)) {
					t.Logf("%2d %s", passes[at], at)
					all += passes[at]
				}
				if all > most || all == 0 {
					t.Errorf("the arguments are read or written %d times, want at most %d", all, most)
				}
			})
		}
	}
}

// reader has a tool that gets its arguments as JSON.
const reader = `
-- reader/SKILL.md --
---
name: reader
description: Reads.
---
-- reader/tools.json --
{"tools": [{"name": "read", "inputSchema": {"type": "object"}, "command": {"program": "./read.sh", "stdin": "json"}}]}
-- reader/read.sh --
#!/bin/sh
exec cat >/dev/null
`

// ours returns which of our functions called encoding/json; empty if the caller is
// not ours, or is a test.
func ours() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	var at []string
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "encoding/json.") {
			if !strings.Contains(f.Function, "packs-mcp/internal/") || strings.HasSuffix(f.File, "_test.go") {
				return ""
			}
			at = append(at, fmt.Sprintf("%s:%d", f.Function[strings.LastIndexByte(f.Function, '/')+1:], f.Line))
			if !strings.Contains(f.Function, "/internal/strictjson.") {
				return strings.Join(at, " < ")
			}
		}
		if !more {
			return ""
		}
	}
}
