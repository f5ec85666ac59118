package wire

import (
	"encoding/json"
	"testing"
)

// members finds the same members as a decoder.
func TestMembers(t *testing.T) {
	for _, text := range []string{
		`{}`, ` { } `[1:], `{"a":1}`, `{"a":-1.5e3,"b":true,"c":null}`, "{\t\"a\" :\r\n[ ] , \"b\"\n:{ } }",
		`{"a\"}":"}\\","b":"\\\"","\u0063":["]",{"d":"[{"}],"":{"":{"":[[],{}]}}}`,
	} {
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		n := 0
		for key, value := range members([]byte(text)) {
			n++
			if string(value) != string(want[key]) {
				t.Errorf("members(%s): %q is %s, want %s", text, key, value, want[key])
			}
		}
		if n != len(want) {
			t.Errorf("members(%s) has %d, want %d", text, n, len(want))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":["}\"",{}]}}`)
	f.Add(`{"jsonrpc":"2.0","id":"x","result":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		text = string(TrimLine([]byte(text)))
		if text == "" {
			return
		}
		e, refused := parse([]byte(text))
		if refused != nil {
			return
		}
		var want struct {
			ID     json.RawMessage `json:"id"`
			Method *string         `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("parse(%q) has no objection, but the decoder: %v", text, err)
		}
		if string(e.ID) != string(want.ID) || string(e.Params) != string(want.Params) || (e.Method == nil) != (want.Method == nil) {
			t.Errorf("parse(%q) = %+v, want %+v", text, e, want)
		}
	})
}
