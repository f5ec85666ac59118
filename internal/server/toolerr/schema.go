package toolerr

import (
	"bytes"
	"encoding/json"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// ReadableSchema escapes the prose in a schema (titles, descriptions, comments),
// which is metadata like a tool's own description. Values that a call is checked
// against stay as they are. It removes what would make clients copy an argument into
// an HTTP header, where proxies and their logs see it: a pack must not decide that.
func ReadableSchema(schema json.RawMessage) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, item := range v {
				text, ok := item.(string)
				if ok && k == "x-mcp-header" {
					delete(v, k)
					continue
				}
				if ok && (k == "title" || k == "description" || k == "$comment") {
					v[k] = safetext.Text(text)
				}
				walk(item)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return out
}
