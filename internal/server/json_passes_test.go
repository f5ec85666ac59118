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
)

// TestJSONPasses counts how often our code reads or writes the arguments of one call
// that runs, as JSON, from the library's hands to the log. It needs an encoding/json
// that tells of each pass: see scripts/json-passes.sh. What reads whole messages is
// not counted, and neither is what the library does.
func TestJSONPasses(t *testing.T) {
	needShell(t)
	const most = 11
	const mark = "marked-argument"
	for name, answer := range map[string]string{"asked about": "once", "under an answer for the chat": "chat"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workbench)
			w.answer = decide(answer)
			w.initialize()
			w.enable("bench")
			args := map[string]any{"pack_id": "bench", "tool": "grep", "arguments": map[string]any{"text": "x"}}
			if answer == "chat" {
				w.ok(toolCall, args)
			}
			var mu sync.Mutex
			passes := make(map[string]int)
			json.PassHook = func(kind string, text []byte) {
				isMessage := bytes.Contains(text, []byte(toolCall)) || bytes.Contains(text, []byte(`"jsonrpc"`))
				if !bytes.Contains(text, []byte(mark)) || isMessage || kind == "encode" && string(text) != mark {
					return
				}
				if at := ours(); at != "" {
					mu.Lock()
					defer mu.Unlock()
					passes[kind+" "+at]++
				}
			}
			defer func() { json.PassHook = nil }()
			args["arguments"] = map[string]any{"text": mark}
			w.ok(toolCall, args)
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

// ours returns which of our functions called encoding/json; empty when it is another's
// or a test's.
func ours() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "encoding/json.") {
			if !strings.Contains(f.Function, "packs-mcp/internal/") || strings.HasSuffix(f.File, "_test.go") {
				return ""
			}
			return fmt.Sprintf("%s:%d", f.Function[strings.LastIndexByte(f.Function, '/')+1:], f.Line)
		}
		if !more {
			return ""
		}
	}
}
