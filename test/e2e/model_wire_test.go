package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Requests of agents, reduced to what a script uses, in each format, with and without a
// stream. make agents runs the agents themselves.
func TestModel(t *testing.T) {
	const (
		anthropic = `{"model": "m", "stream": STREAM, "system": [{"type": "text", "text": "Be kind."}],
			"messages": [
				{"role": "user", "content": "Note it."},
				{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "mcp__packs__list", "input": {}}]},
				{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [{"type": "text", "text": "{}"}]}]}
			],
			"tools": [{"name": "Bash", "input_schema": {}}, {"name": "mcp__packs__open", "description": "Opens.", "input_schema": {"type": "object"}}]}`
		openai = `{"model": "m", "stream": STREAM, "instructions": "Be kind.",
			"input": [
				{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Note it."}]},
				{"type": "function_call", "call_id": "a", "name": "list", "namespace": "mcp__packs", "arguments": "{}"},
				{"type": "function_call_output", "call_id": "a", "output": "{}"}
			],
			"tools": [
				{"type": "function", "name": "shell", "parameters": {}}, {"type": "web_search"},
				{"type": "namespace", "name": "mcp__packs", "description": "Packs.", "tools": [
					{"type": "function", "name": "open", "description": "Opens.", "parameters": {"type": "object"}}
				]}
			]}`
		chat = `{"model": "m", "stream": STREAM,
			"messages": [
				{"role": "system", "content": "Be kind."}, {"role": "user", "content": [{"type": "text", "text": "Note it."}]},
				{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "mcp__packs__list", "arguments": "{}"}}]},
				{"role": "tool", "tool_call_id": "a", "content": "{}"}
			],
			"tools": [
				{"type": "function", "function": {"name": "bash"}},
				{"type": "function", "function": {"name": "mcp__packs__open", "description": "Opens.", "parameters": {"type": "object"}}}
			]}`
		gemini = `{"systemInstruction": {"parts": [{"text": "Be kind."}]},
			"contents": [
				{"role": "user", "parts": [{"text": "Note it."}]},
				{"role": "model", "parts": [{"functionCall": {"name": "mcp__packs__list", "args": {}}}]},
				{"role": "user", "parts": [{"functionResponse": {"name": "mcp__packs__list", "response": {"output": "{}"}}}]}
			],
			"tools": [{"functionDeclarations": [
				{"name": "shell"}, {"name": "mcp__packs__open", "description": "Opens.", "parametersJsonSchema": {"type": "object"}}
			]}]}`
	)
	for _, tc := range []struct {
		name, path, body string
		text             string // what the model reads besides tools and results
		failed           bool
		want             []string // in the response, in order
	}{
		{"messages", "/v1/messages", anthropic, "Be kind.\nNote it.", true,
			[]string{`"mcp__packs__open"`, `"stop_reason":"tool_use"`}},
		{"responses", "/v1/responses", openai, "Be kind.\nNote it.\nPacks.", false,
			[]string{`"name":"open"`, `"namespace":"mcp__packs"`, `"status":"completed"`}},
		{"chat completions", "/v1/chat/completions", chat, "Be kind.\nNote it.\n", false,
			[]string{`"mcp__packs__open"`}},
		{"generateContent", "/v1beta/models/m:VERB", gemini, "Be kind.\nNote it.\n", false,
			[]string{`"finishReason":"STOP"`}},
	} {
		for _, streamed := range []string{"true", "false"} {
			t.Run(tc.name+" "+streamed, func(t *testing.T) {
				open := func(seen turn) move {
					want := turn{text: tc.text, results: []result{{tool: "mcp__packs__list", text: "{}", failed: tc.failed}}}
					got := turn{text: seen.text, results: seen.results}
					if diff := cmp.Diff(want, got, cmp.AllowUnexported(turn{}, result{})); diff != "" {
						t.Errorf("the script sees (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff([]string{"open"}, seen.names()); diff != "" {
						t.Errorf("names() (-want +got):\n%s", diff)
					}
					if tool := seen.tool("open"); tool == nil || tool.description != "Opens." || string(tool.schema) != `{"type": "object"}` {
						t.Errorf("tool(open) = %+v, want it with description and schema", tool)
					}
					return call("open", map[string]any{"pack_id": "p"})(seen)
				}
				m := newModel(t, "mcp__packs__", call("list", nil), open)
				verb := map[string]string{"true": "streamGenerateContent", "false": "generateContent"}[streamed]
				response, err := http.Post(m.url+strings.Replace(tc.path, "VERB", verb, 1), "application/json", strings.NewReader(strings.Replace(tc.body, "STREAM", streamed, 1)))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				raw, err := io.ReadAll(response.Body)
				if err != nil {
					t.Fatal(err)
				}
				rest := string(raw)
				for _, want := range tc.want {
					_, after, found := strings.Cut(rest, want)
					if !found {
						t.Errorf("the answer is\n%s\nwant %s in it, in this order: %q", raw, want, tc.want)
					}
					rest = after
				}
				if isStream := response.Header.Get("Content-Type") == "text/event-stream"; isStream != (streamed == "true") || !isStream && !json.Valid(raw) {
					t.Errorf("the answer is %s, asked for a stream: %s", response.Header.Get("Content-Type"), streamed)
				}
				if got := m.played(); got != 2 {
					t.Errorf("played() = %d, want 2: one result means the second play", got)
				}
			})
		}
	}
}
