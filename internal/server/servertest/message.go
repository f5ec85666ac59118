package servertest

import (
	"maps"
	"strings"
	"testing"
)

// WithMeta adds what a request of 2026-07-28 declares about its client.
func WithMeta(params map[string]any, elicits bool) map[string]any {
	caps := map[string]any{}
	if elicits {
		caps["elicitation"] = map[string]any{"form": map[string]any{}}
	}
	out := maps.Clone(params)
	if out == nil {
		out = make(map[string]any)
	}
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "modern", "version": "2"},
		"io.modelcontextprotocol/clientCapabilities": caps,
	}
	if more, ok := out["_meta"].(map[string]any); ok {
		maps.Copy(meta, more)
	}
	out["_meta"] = meta
	return out
}

// Result returns the result of a reply.
func Result(t *testing.T, reply map[string]any) map[string]any {
	t.Helper()
	r, ok := reply["result"].(map[string]any)
	if !ok {
		t.Fatalf("the reply has no result: %v", reply)
	}
	return r
}

// Texts returns the strings of a JSON list.
func Texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		s, _ := item.(string)
		out = append(out, s)
	}
	return out
}

// Objects returns the objects of a JSON list.
func Objects(v any) []map[string]any {
	list, _ := v.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		m, _ := item.(map[string]any)
		out = append(out, m)
	}
	return out
}

// Decide returns a user who always makes the same choice.
func Decide(d string) func(string, map[string]any) map[string]any {
	return func(string, map[string]any) map[string]any {
		return map[string]any{"action": "accept", "content": map[string]any{"decision": d}}
	}
}

// Says reports whether a question contains words, ignoring line breaks and
// indentation.
func Says(question, words string) bool {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	return strings.Contains(squeeze(question), squeeze(words))
}
