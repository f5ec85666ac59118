package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// A messagesRequest is the part of a request to Anthropic's POST /v1/messages that a script
// uses.
type messagesRequest struct {
	Model    string          `json:"model"`
	System   json.RawMessage `json:"system"`
	Stream   bool            `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []json.RawMessage `json:"tools"`
}

// A messagesTool is a tool in such a request.
type messagesTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func (q *messagesRequest) turn() turn {
	var seen turn
	seen.text = texts(q.System)
	called := make(map[string]string) // :: id of a call → the tool
	for _, message := range q.Messages {
		var blocks []struct {
			Type    string          `json:"type"`
			Text    string          `json:"text"`
			ID      string          `json:"id"`
			Name    string          `json:"name"`
			Call    string          `json:"tool_use_id"`
			Content json.RawMessage `json:"content"`
			IsError bool            `json:"is_error"`
		}
		if json.Unmarshal(message.Content, &blocks) != nil {
			seen.text += "\n" + texts(message.Content)
			continue
		}
		for _, block := range blocks {
			switch block.Type {
			case "text":
				seen.text += "\n" + block.Text
			case "tool_use":
				called[block.ID] = block.Name
			case "tool_result":
				seen.results = append(seen.results, result{tool: called[block.Call], text: texts(block.Content), failed: block.IsError})
			}
		}
	}
	for _, raw := range q.Tools {
		var tool messagesTool
		if json.Unmarshal(raw, &tool) == nil {
			seen.tools = append(seen.tools, offered{name: tool.Name, description: tool.Description, schema: tool.InputSchema, bytes: len(raw)})
		}
	}
	return seen
}

// messages answers POST /v1/messages with one block of content.
func (m *model) messages(w http.ResponseWriter, r *http.Request) {
	var q messagesRequest
	if !m.read(w, r, &q) {
		return
	}
	seen := q.turn()
	next, tool := m.answer(seen)
	id := len(seen.results) + 1
	stop, block := "end_turn", map[string]any{"type": "text", "text": next.words}
	delta := map[string]any{"type": "text_delta", "text": next.words}
	begun := map[string]any{"type": "text", "text": ""}
	if tool != nil {
		args := m.arguments(next)
		stop, block = "tool_use", map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", id), "name": tool.name, "input": json.RawMessage(args)}
		delta = map[string]any{"type": "input_json_delta", "partial_json": args}
		begun = map[string]any{"type": "tool_use", "id": block["id"], "name": tool.name, "input": map[string]any{}}
	}
	usage := map[string]any{"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	message := map[string]any{
		"id": fmt.Sprintf("msg_%d", id), "type": "message", "role": "assistant", "model": q.Model,
		"content": []any{block}, "stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
	if !q.Stream {
		m.write(w, message)
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	e := stream(w)
	e.send("message_start", map[string]any{"message": message})
	e.send("content_block_start", map[string]any{"index": 0, "content_block": begun})
	e.send("content_block_delta", map[string]any{"index": 0, "delta": delta})
	e.send("content_block_stop", map[string]any{"index": 0})
	e.send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	e.send("message_stop", map[string]any{})
}
