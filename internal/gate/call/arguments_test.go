package call_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// TestCanonical: one value has one spelling. What is refused is as it came.
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

// TestArguments: what is asked of arguments was found out when they were parsed.
func TestArguments(t *testing.T) {
	type result struct {
		Canonical, Problem string
		Valid, Object      bool
		Members            []call.Member
	}
	for in, want := range map[string]result{
		``:                            {},
		`null`:                        {Canonical: "null", Valid: true},
		`{}`:                          {Canonical: "{}", Valid: true, Object: true, Members: []call.Member{}},
		`{"b":{"d":1,"c":2},"a":"<"}`: {Canonical: `{"a":"<","b":{"c":2,"d":1}}`, Valid: true, Object: true, Members: []call.Member{{Name: "a", Value: `"<"`}, {Name: "b", Value: `{"c":2,"d":1}`}}},
		`{"a":1,"a":2}`:               {Canonical: `{"a":1,"a":2}`, Problem: `the arguments name "a" twice`, Valid: true},
		`{"a":`:                       {Canonical: `{"a":`, Problem: "the arguments are not JSON"},
		`{} {}`:                       {Canonical: `{} {}`, Problem: "the arguments are not JSON"},
	} {
		raw := []byte(in)
		a := call.ParseArguments(raw)
		clear(raw) // nobody's bytes but its own
		got := result{Canonical: a.Canonical(), Problem: a.Problem(), Valid: a.Valid()}
		got.Members, got.Object = a.Members()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseArguments(%s) differs (-want +got):\n%s", in, diff)
		}
		if string(a.Raw()) != in || (a.Digest() == "") != (in == "") {
			t.Errorf("ParseArguments(%s) is %s with the digest %q", in, a.Raw(), a.Digest())
		}
	}
}

// FuzzArguments: the canonical form is a value's only one, and its own.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":null}],"c":"\ud800"}`, `{"a":1,"a":2}`, `{"\u0061\ud800":{"b":1,"a":2}}`, `[[[]]]`, `"x"`, ` `, `{"":""}`, "{\"\xff\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a := call.ParseArguments(raw)
		if a.Valid() && !json.Valid([]byte(a.Canonical())) {
			t.Errorf("ParseArguments(%q).Canonical() = %q, which is not JSON", raw, a.Canonical())
		}
		if a.Problem() != "" || len(raw) == 0 {
			return
		}
		if v, err := strictjson.Decode(raw); err != nil || strictjson.Format(v) != a.Canonical() {
			t.Errorf("ParseArguments(%q).Canonical() = %q, want %q (%v)", raw, a.Canonical(), strictjson.Format(v), err)
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
