package wire

import (
	"cmp"
	"encoding/json"
	"strings"
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
		m := members{b: []byte(text)}
		for m.next() {
			n++
			if value := m.skip(); string(value) != string(want[m.key]) {
				t.Errorf("members(%s): %q is %s, want %s", text, m.key, value, want[m.key])
			}
		}
		if n != len(want) || m.at != len(strings.TrimSpace(text)) {
			t.Errorf("members(%s) has %d up to %d, want %d up to %d", text, n, m.at, len(want), len(strings.TrimSpace(text)))
		}
	}
}

// Parameters are found as a decoder finds them. Too many are cut off, and refused.
func TestParams(t *testing.T) {
	many := strings.Repeat(`"a":1,`, maxParams)
	for _, c := range []struct {
		raw, name, want string
		refused         bool
	}{
		{``, "a", "", false},
		{`null`, "a", "", false},
		{`["a"]`, "a", "", false},
		{`{}`, "a", "", false},
		{`{"b":{"a":1},"a": [2] }`, "a", "[2]", false},
		{`{"A":1}`, "a", "1", false},
		{`{"\u0061":"}"}`, "a", `"}"`, false},
		{`{"a":1,"A":2}`, "a", "2", true},
		{`{"a":1,"a":2}`, "a", "2", true},
		{`{` + many + `"b":2,"c":3}`, "b", "2", true},
		{`{` + strings.ReplaceAll(many, "a", "") + `"b":2,"c":3}`, "c", "", true},
	} {
		e, problem := parse([]byte(`{"jsonrpc":"2.0","params":` + cmp.Or(c.raw, "0") + `,"id":7}`))
		if problem != nil || string(e.ID) != "7" {
			t.Fatalf("parse of the parameters %s = %+v, %v", c.raw, e, problem)
		}
		for _, p := range []Params{e.Params, ReadParams(json.RawMessage(c.raw))} {
			if got := p.Get(c.name); string(got) != c.want {
				t.Errorf("%s has %q: %s, want %s", c.raw, c.name, got, c.want)
			}
			if got := p.ambiguous() != nil; got != c.refused {
				t.Errorf("%s is refused: %t, want %t", c.raw, got, c.refused)
			}
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
		if string(e.ID) != string(want.ID) || string(e.Params.Raw()) != string(want.Params) || (e.Method == nil) != (want.Method == nil) {
			t.Errorf("parse(%q) = %+v, want %+v", text, e, want)
		}
		if !e.Params.IsObject() {
			return
		}
		var params map[string]json.RawMessage
		if err := json.Unmarshal(want.Params, &params); err != nil {
			t.Fatal(err)
		}
		if e.Params.ambiguous() != nil {
			return
		}
		if len(e.Params.members) != len(params) {
			t.Errorf("parse(%q) has %d parameters, want %d", text, len(e.Params.members), len(params))
		}
		for name, value := range params {
			if got := e.Params.Get(name); string(got) != string(value) {
				t.Errorf("parse(%q).Params.Get(%q) = %s, want %s", text, name, got, value)
			}
		}
	})
}
