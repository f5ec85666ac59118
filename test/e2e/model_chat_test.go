package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// A chatRequest is the part of a request to OpenAI's POST /v1/chat/completions that a script
// uses.
type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Call    string          `json:"tool_call_id"`
		Calls   []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []json.RawMessage `json:"tools"`
}

// A chatTool is a tool in such a request.
type chatTool struct {
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func (q *chatRequest) turn() turn {
	var seen turn
	called := make(map[string]result) // :: id of a call → the tool and the arguments
	for i, message := range q.Messages {
		for _, call := range message.Calls {
			called[call.ID] = result{tool: call.Function.Name, args: json.RawMessage(call.Function.Arguments)}
		}
		if message.Role == "tool" {
			result := called[message.Call]
			result.text = texts(message.Content)
			seen.results = append(seen.results, result)
			continue
		}
		if i > 0 {
			seen.text += "\n"
		}
		seen.text += texts(message.Content)
	}
	for _, raw := range q.Tools {
		var tool chatTool
		if json.Unmarshal(raw, &tool) == nil {
			f := tool.Function
			seen.tools = append(seen.tools, offered{name: f.Name, description: f.Description, schema: f.Parameters, bytes: len(raw)})
		}
	}
	return seen
}

// completions answers POST /v1/chat/completions with one choice.
func (m *model) completions(w http.ResponseWriter, r *http.Request) {
	var q chatRequest
	if !m.read(w, r, &q) {
		return
	}
	seen := q.turn()
	next, tool := m.answer(seen)
	id := len(seen.results) + 1
	message, finish := map[string]any{"role": "assistant", "content": next.words}, "stop"
	if tool != nil {
		finish = "tool_calls"
		message["content"] = nil
		message["tool_calls"] = []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("call_%d", id), "type": "function",
			"function": map[string]any{"name": tool.name, "arguments": m.arguments(next)},
		}}
	}
	usage := map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
	about := map[string]any{"id": fmt.Sprintf("chatcmpl-%d", id), "created": 1, "model": q.Model}
	if !q.Stream {
		about["object"], about["usage"] = "chat.completion", usage
		about["choices"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}}
		m.write(w, about)
		return
	}
	about["object"] = "chat.completion.chunk"
	e := stream(w)
	about["choices"] = []any{map[string]any{"index": 0, "delta": message, "finish_reason": nil}}
	e.data(about)
	about["choices"] = []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}
	e.data(about)
	about["choices"], about["usage"] = []any{}, usage
	e.data(about)
	fmt.Fprint(w, "data: [DONE]\n\n")
}
