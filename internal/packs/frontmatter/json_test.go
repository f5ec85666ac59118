package frontmatter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

func TestJSON(t *testing.T) {
	const head = "name: x\ndescription: y\n"
	const begin = `{"name":"x","description":"y"`
	for _, tt := range []struct{ yaml, want string }{
		{"", ""},
		{"license: MIT\nz: 1\na: 2\n", `,"license":"MIT","z":1,"a":2`},
		{"allowed-tools: [Read, 'Grep']\n", `,"allowed-tools":["Read","Grep"]`},
		{"metadata:\n  version: \"1.0\"\n  n: {}\n  l: []\n", `,"metadata":{"version":"1.0","n":{},"l":[]}`},
		{"a: true\nb: False\nc: yes\nd: on\ne: 'true'\n", `,"a":true,"b":false,"c":"yes","d":"on","e":"true"`},
		{"a: null\nb: ~\nc:\nd: ''\ne: nil\n", `,"a":null,"b":null,"c":null,"d":"","e":"nil"`},
		{"a: 12\nb: +7\nc: -3\nd: 010\ne: 0o10\nf: 0x1F\ng: 1_000\nh: 0b11\n", `,"a":12,"b":7,"c":-3,"d":10,"e":8,"f":31,"g":"1_000","h":"0b11"`},
		{"a: 123456789012345678901234567890\n", `,"a":123456789012345678901234567890`},
		{"a: 1.5\nb: 1.0\nc: .5\nd: 1e3\ne: .inf\nf: .NaN\ng: 1e999\n", `,"a":1.5,"b":1,"c":0.5,"d":1000,"e":".inf","f":".NaN","g":"1e999"`},
		{"a: 2026-07-28\nb: 2026-07-28T10:00:00Z\nc: 1.2.3\n", `,"a":"2026-07-28","b":"2026-07-28T10:00:00Z","c":"1.2.3"`},
		{"a: |\n  two\n  lines\nb: >\n  one\n  line\n", `,"a":"two\nlines\n","b":"one line\n"`},
		{"a: &x [1]\nb: *x\n", `,"a":[1],"b":[1]`},
		{"a: 1\na: 2\n", `,"a":2`},
		{"1: one\ntrue: two\n", `,"1":"one","true":"two"`},
		{"a: \"<b>&\\u2028\"\n", `,"a":"<b>&\u2028"`},
		{"a: !!str 12\n", `,"a":"12"`},
	} {
		doc, problems := Parse("SKILL.md", []byte("---\n"+head+tt.yaml+"---\n"))
		if doc == nil {
			t.Errorf("Parse(%q): %v", tt.yaml, problems)
			continue
		}
		got := doc.JSON()
		if want := begin + tt.want + "}"; string(got) != want {
			t.Errorf("JSON(%q) = %s, want %s", tt.yaml, got, want)
		}
	}
}

// Recovered values are strings, as the parser took them.
func TestJSONRecovered(t *testing.T) {
	doc, problems := Parse("SKILL.md", []byte("---\nname: x\ndescription: Use when: always\n---\n"))
	if doc == nil || len(problems) == 0 {
		t.Fatalf("Parse() = %v, %v, want a document and a warning", doc, problems)
	}
	got := doc.JSON()
	if want := `{"name":"x","description":"Use when: always"}`; string(got) != want {
		t.Errorf("JSON() = %s, want %s", got, want)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("name: x\ndescription: y\na: [1, {b: c}]\n")
	f.Add("name: 0x10\ndescription: \"\\ud800\"\n")
	f.Fuzz(func(t *testing.T, block string) {
		doc, problems := Inspect("SKILL.md", []byte("---\n"+block+"\n---\n"), MaxSize)
		if doc == nil || diag.HasErrors(problems) {
			return
		}
		got := doc.JSON()
		if !json.Valid(got) || !strings.HasPrefix(string(got), "{") {
			t.Errorf("JSON() = %s", got)
		}
	})
}
