package call_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// TestCanonical: each value has one spelling. Arguments that are refused stay as they
// came.
func TestCanonical(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, ``},
		{`{}`, `{}`},
		{` { "b" : [ 1 , 2.50 , -0 , 1e3 ] , "a" : null }`, `{"a":null,"b":[1,2.50,-0,1e3]}`},
		{`{"a":12345678901234567890.10}`, `{"a":12345678901234567890.10}`},
		{`{"\u0061":"\u003c\u00e9\/"}`, `{"a":"<é/"}`},
		{`{"a":[],"b":{}}`, `{"a":[],"b":{}}`},
		{`[true,false,"x"]`, `[true,false,"x"]`},
		{`{"a":1,"a":1}`, `{"a":1,"a":1}`},
		{`{"a":`, `{"a":`},
		{`{} {}`, `{} {}`},
	} {
		if got := call.ParseArguments([]byte(c.in)).Canonical(); got != c.want {
			t.Errorf("ParseArguments(%s).Canonical() = %s, want %s", c.in, got, c.want)
		}
	}
}

// TestArguments: everything that is asked about arguments was computed when they were
// parsed.
func TestArguments(t *testing.T) {
	type result struct {
		Canonical, Problem string
		Object             bool
		Members            []call.Member
	}
	for in, want := range map[string]result{
		``:                            {},
		`null`:                        {Canonical: "null"},
		`{}`:                          {Canonical: "{}", Object: true, Members: []call.Member{}},
		`{"b":{"d":1,"c":2},"a":"<"}`: {Canonical: `{"a":"<","b":{"c":2,"d":1}}`, Object: true, Members: []call.Member{{Name: "a", Value: `"<"`}, {Name: "b", Value: `{"c":2,"d":1}`}}},
		`{"a":1,"a":2}`:               {Canonical: `{"a":1,"a":2}`, Problem: `the arguments cannot be read at byte 7: key "a" occurs twice`},
		`{"a":`:                       {Canonical: `{"a":`, Problem: "the arguments cannot be read at byte 5: the JSON ends in the middle"},
		`{} {}`:                       {Canonical: `{} {}`, Problem: "the arguments cannot be read at byte 3: there is more after the JSON value"},
		`["\ud800"]`:                  {Canonical: `["\ud800"]`, Problem: "the arguments cannot be read at byte 1: a \\u escape is half of a surrogate pair"},
		"[\"\xff\"]":                  {Canonical: "[\"\xff\"]", Problem: "the arguments cannot be read at byte 2: text is not UTF-8"},
		`[1e401]`:                     {Canonical: `[1e401]`, Problem: "the arguments cannot be read at byte 1: number is too large or too long"},
	} {
		raw := []byte(in)
		a := call.ParseArguments(raw)
		clear(raw) // the arguments have their own copy
		got := result{Canonical: a.Canonical(), Problem: a.Problem()}
		got.Members, got.Object = a.Members()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseArguments(%s) differs (-want +got):\n%s", in, diff)
		}
		if (a.Digest() == "") != (in == "") {
			t.Errorf("ParseArguments(%s) has the digest %q", in, a.Digest())
		}
	}
}

// FuzzArguments: a value has exactly one canonical form, which is its own canonical
// form.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":null}],"c":"\ud800"}`, `{"a":1,"a":2}`, `{"\u0061\ud800":{"b":1,"a":2}}`, `[[[]]]`, `"x"`, ` `, `{"":""}`, "{\"\xff\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a := call.ParseArguments(raw)
		if a.Problem() != "" || len(raw) == 0 {
			return
		}
		if tree, err := strictjson.Parse(raw); err != nil || string(strictjson.Canonical(tree.Value())) != a.Canonical() {
			t.Errorf("ParseArguments(%q).Canonical() = %q, want what is written of %v (%v)", raw, a.Canonical(), tree, err)
		}
		again := call.ParseArguments([]byte(a.Canonical()))
		if again.Canonical() != a.Canonical() || again.Digest() != a.Digest() {
			t.Errorf("ParseArguments(%q).Canonical() = %q, want it unchanged", a.Canonical(), again.Canonical())
		}
		members, _ := a.Members()
		for i, m := range members {
			if i > 0 && strings.Compare(members[i-1].Name, m.Name) >= 0 || !json.Valid([]byte(m.Value)) {
				t.Errorf("Members() of %q = %q", raw, members)
			}
		}
	})
}
