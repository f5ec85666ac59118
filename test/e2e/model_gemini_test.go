package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// A generateRequest is the part of a request to Gemini's POST
// /v1beta/models/MODEL:generateContent that a script uses.
type generateRequest struct {
	System   generateContent   `json:"systemInstruction"`
	Contents []generateContent `json:"contents"`
	Tools    []struct {
		Functions []json.RawMessage `json:"functionDeclarations"`
	} `json:"tools"`
}

type generateContent struct {
	Parts []struct {
		Text     string `json:"text"`
		Response *struct {
			Name     string          `json:"name"`
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
	} `json:"parts"`
}

// A generateTool is a tool in such a request.
type generateTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"parametersJsonSchema"`
}

func (q *generateRequest) turn() turn {
	var seen turn
	var all []string
	for _, content := range append([]generateContent{q.System}, q.Contents...) {
		for _, part := range content.Parts {
			if part.Response == nil {
				all = append(all, part.Text)
				continue
			}
			var out struct{ Output, Error string }
			text := string(part.Response.Response)
			if json.Unmarshal(part.Response.Response, &out) == nil && out.Output+out.Error != "" {
				text = out.Output + out.Error
			}
			seen.results = append(seen.results, result{tool: part.Response.Name, text: text})
		}
	}
	seen.text = strings.Join(all, "\n")
	for _, tools := range q.Tools {
		for _, raw := range tools.Functions {
			var tool generateTool
			if json.Unmarshal(raw, &tool) == nil {
				seen.tools = append(seen.tools, offered{name: tool.Name, description: tool.Description, schema: tool.Schema, bytes: len(raw)})
			}
		}
	}
	return seen
}

// generate answers requests to a Gemini model with one candidate.
func (m *model) generate(w http.ResponseWriter, r *http.Request) {
	name, verb, _ := strings.Cut(r.PathValue("call"), ":")
	if verb == "countTokens" {
		m.write(w, map[string]any{"totalTokens": 100})
		return
	}
	var q generateRequest
	if !m.read(w, r, &q) {
		return
	}
	seen := q.turn()
	next, tool := m.answer(seen)
	part := map[string]any{"text": next.words}
	if tool != nil {
		part = map[string]any{"functionCall": map[string]any{"name": tool.name, "args": json.RawMessage(m.arguments(next))}}
	}
	response := map[string]any{
		"candidates": []any{map[string]any{
			"index": 0, "finishReason": "STOP", "content": map[string]any{"role": "model", "parts": []any{part}},
		}},
		"usageMetadata": map[string]any{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
		"modelVersion":  name, "responseId": fmt.Sprint(len(seen.results) + 1),
	}
	if verb == "streamGenerateContent" {
		stream(w).data(response)
		return
	}
	m.write(w, response)
}
