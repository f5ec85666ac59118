package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// A responsesTool is a tool in a request to OpenAI's POST /v1/responses: a function, a
// namespace with more of them, or something that the endpoint itself provides.
type responsesTool struct {
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Parameters  json.RawMessage   `json:"parameters"`
	Tools       []json.RawMessage `json:"tools"`
}

// A responsesRequest is the part of a request to POST /v1/responses that a script uses.
type responsesRequest struct {
	Model        string `json:"model"`
	Instructions string `json:"instructions"`
	Stream       bool   `json:"stream"`
	Input        []struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Call    string          `json:"call_id"`
		Space   string          `json:"namespace"`
		Name    string          `json:"name"`
		Output  json.RawMessage `json:"output"`
	} `json:"input"`
	Tools []json.RawMessage `json:"tools"`
}

func (q *responsesRequest) turn() turn {
	seen := turn{text: q.Instructions}
	called := make(map[string]string) // :: id of a call → the tool
	for _, item := range q.Input {
		switch item.Type {
		case "message":
			seen.text += "\n" + texts(item.Content)
		case "function_call":
			called[item.Call] = offered{space: item.Space, name: item.Name}.full()
		case "function_call_output":
			seen.results = append(seen.results, result{tool: called[item.Call], text: texts(item.Output)})
		}
	}
	var add func(space string, tools []json.RawMessage)
	add = func(space string, tools []json.RawMessage) {
		for _, raw := range tools {
			var tool responsesTool
			if json.Unmarshal(raw, &tool) != nil {
				continue
			}
			switch tool.Type {
			case "function":
				seen.tools = append(seen.tools, offered{space, tool.Name, tool.Description, tool.Parameters, len(raw)})
			case "namespace":
				seen.text += "\n" + tool.Description
				add(tool.Name, tool.Tools)
			}
		}
	}
	add("", q.Tools)
	return seen
}

// responses answers POST /v1/responses with one item of output.
func (m *model) responses(w http.ResponseWriter, r *http.Request) {
	var q responsesRequest
	if !m.read(w, r, &q) {
		return
	}
	seen := q.turn()
	next, tool := m.answer(seen)
	n := len(seen.results) + 1
	item := map[string]any{
		"type": "message", "id": fmt.Sprintf("msg_%d", n), "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": next.words, "annotations": []any{}}},
	}
	if tool != nil {
		item = map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_%d", n), "call_id": fmt.Sprintf("call_%d", n),
			"name": tool.name, "arguments": m.arguments(next), "status": "completed",
		}
		if tool.space != "" {
			item["namespace"] = tool.space
		}
	}
	response := map[string]any{
		"id": fmt.Sprintf("resp_%d", n), "object": "response", "status": "completed", "model": q.Model, "output": []any{item},
		"usage": map[string]any{
			"input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
			"input_tokens_details":  map[string]any{"cached_tokens": 0},
			"output_tokens_details": map[string]any{"reasoning_tokens": 0},
		},
	}
	if !q.Stream {
		m.write(w, response)
		return
	}
	e := stream(w)
	e.send("response.created", map[string]any{"response": map[string]any{"id": response["id"], "object": "response", "status": "in_progress", "output": []any{}}})
	e.send("response.output_item.added", map[string]any{"output_index": 0, "item": item})
	e.send("response.output_item.done", map[string]any{"output_index": 0, "item": item})
	e.send("response.completed", map[string]any{"response": response})
}
