package tools_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

const expandSchema = `{"type": "object", "properties": {
	"s": {"type": "string"}, "u": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"},
	"b": {"type": "boolean"}, "a": {"type": "array"}, "o": {"type": "object"}, "any": {},
	"d": {"type": "string", "default": "def"}, "neg": {"type": "integer", "default": -1},
	"free": {"type": "string", "allow_leading_dash": true},
	"frees": {"type": "array", "allow_leading_dash": true}
}}`

func TestExpandArgs(t *testing.T) {
	ctx := tools.Context{"cwd": "/w d", "url": "https://a b/", "clipboard": "-rf"}
	for _, tt := range []struct {
		name string
		args string // templates, JSON
		in   string // arguments, JSON
		want []string
	}{
		{"no placeholders", `["a", "", "b c"]`, `{}`, []string{"a", "", "b c"}},
		{"value", `["{{s}}"]`, `{"s": "x y"}`, []string{"x y"}},
		{"value with text", `["<{{s}}>"]`, `{"s": "x"}`, []string{"<x>"}},
		{"empty value is a value", `["{{s}}", "--s={{s}}"]`, `{"s": ""}`, []string{"", "--s="}},
		{"boolean", `["{{b}}"]`, `{"b": false}`, []string{"false"}},
		{"integer as float", `["{{i}}"]`, `{"i": 1.0}`, []string{"1"}},
		{"exponent", `["{{n}}"]`, `{"n": 1e3}`, []string{"1000"}},
		{"large integer", `["{{i}}"]`, `{"i": 123456789012345678901234567890}`, []string{"123456789012345678901234567890"}},
		{"array", `["{{a}}"]`, `{"a": ["x", "y z", 1.50, true]}`, []string{"x y z 1.5 true"}},
		{"object", `["{{o}}"]`, `{"o": {"b": "<", "a": [1]}}`, []string{`{"a":[1],"b":"<"}`}},
		{"object in an array", `["{{a...}}"]`, `{"a": [{"b": 1}, null]}`, []string{`{"b":1}`, "null"}},
		{"spread", `["-l", "{{a...}}", "z"]`, `{"a": ["x", "y z", ""]}`, []string{"-l", "x", "y z", "", "z"}},
		{"spread of nothing", `["{{a...}}"]`, `{}`, []string{}},
		{"spread of an empty list", `["{{a...}}"]`, `{"a": []}`, []string{}},
		{"spread of one value", `["{{s...}}"]`, `{"s": "x y"}`, []string{"x y"}},
		{"an empty list is no value", `["{{a}}", "{{a:none}}"]`, `{"a": []}`, []string{"none"}},
		{"null is no value", `["{{any}}", "{{any:none}}"]`, `{"any": null}`, []string{"none"}},
		{"fallback unused", `["{{s:text}}"]`, `{"s": "x"}`, []string{"x"}},
		{"fallback used", `["{{s:text}}"]`, `{}`, []string{"text"}},
		{"a number is no option", `["{{i}}", "{{i:3}}", "{{i:--count}}", "{{i}},{{i}}", "{{i}}px"]`, `{"i": -5}`, []string{"-5", "-5", "--count", "-5", "-5,-5", "-5px"}},
		{"fallback of the template may dash", `["{{s:-}}"]`, `{}`, []string{"-"}},
		{"empty fallback", `["{{s:}}"]`, `{}`, []string{""}},
		{"default of the schema first", `["{{d:text}}"]`, `{}`, []string{"def"}},
		{"flag true", `["{{b:--flag}}"]`, `{"b": true}`, []string{"--flag"}},
		{"flag false", `["{{b:--flag}}"]`, `{"b": false}`, []string{}},
		{"flag absent", `["{{b:--flag}}"]`, `{}`, []string{}},
		{"flag with a value", `["{{s:-f}}"]`, `{"s": "x y"}`, []string{"-f", "x y"}},
		{"flag with a list", `["{{a:-f}}"]`, `{"a": ["x", "y"]}`, []string{"-f", "x y"}},
		{"flag without a value", `["{{s:-f}}"]`, `{}`, []string{}},
		{"context", `["{{context.cwd}}"]`, `{}`, []string{"/w d"}},
		{"context with fallback", `["{{context.file:none}}"]`, `{}`, []string{"none"}},
		{"literal braces", `["{{{{.Names}}", "{{{{{{s}}"]`, `{"s": "x"}`, []string{"{{.Names}}", "{{x"}},
		{"absent alone disappears", `["a", "{{s}}", "b"]`, `{}`, []string{"a", "b"}},
		{"absent with text disappears", `["a", "--s={{s}}"]`, `{}`, []string{"a"}},
		{"one of two has a value", `["{{s}}-{{u}}"]`, `{"u": "y"}`, []string{"-y"}},
		{"none of two has a value", `["{{s}}-{{u}}"]`, `{}`, []string{}},
		{"url", `["https://h/{{s}}?q={{u}}"]`, `{"s": "a/b c", "u": "ä&=~-._"}`, []string{"https://h/a%2Fb%20c?q=%C3%A4%26%3D~-._"}},
		{"url, one absent", `["http://h/?q={{s}}&n={{i}}"]`, `{"s": "rust lang"}`, []string{"http://h/?q=rust%20lang&n="}},
		{"url, list", `["http://h/?q={{a}}"]`, `{"a": ["x", "y"]}`, []string{"http://h/?q=x%20y"}},
		{"url only at the start", `["--url=http://h/{{s}}", "{{s}}http://"]`, `{"s": "a b"}`, []string{"--url=http://h/a b", "a bhttp://"}},
		{"AR-06 not expanded again", `["{{s}}", "{{u}}"]`, `{"s": "{{u}}", "u": "{{{{s}}"}`, []string{"{{u}}", "{{{{s}}"}},
		{"AR-01 after --", `["--", "{{s}}"]`, `{"s": "--exec=evil"}`, []string{"--", "--exec=evil"}},
		{"AR-01 with text before", `["--name={{s}}"]`, `{"s": "--x"}`, []string{"--name=--x"}},
		{"AR-01 allowed", `["{{free}}", "{{frees...}}", "{{frees}}"]`, `{"free": "-x", "frees": ["-a", "b"]}`, []string{"-x", "-a", "b", "-a b"}},
		{"AR-01 the pack's own default", `["{{neg}}"]`, `{}`, []string{"-1"}},
		{"AR-01 an element inside text", `["x {{a}}"]`, `{"a": ["-x"]}`, []string{"x -x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool := tooltest.Compile(t, expandSchema, `{"program": "p", "args": `+tt.args+`}`)
			inv, err := tool.Expand(tooltest.MustCheck(t, tool, tt.in), ctx)
			if err != nil {
				t.Fatalf("Expand(%s) of %s = %v, want no error", tt.in, tt.args, err)
			}
			if diff := cmp.Diff(tt.want, inv.Args); diff != "" {
				t.Errorf("Expand(%s) of %s: -want +got\n%s", tt.in, tt.args, diff)
			}
		})
	}
}

// AR-02: nothing in a value means anything to anybody on the way.
func TestExpandByteForByte(t *testing.T) {
	tool := tooltest.Compile(t, expandSchema, `["p", "{{s}}", "x={{s}}"]`)
	for _, s := range []string{
		"$(id)", "`id`", ";id", "&&id", "| id", "a\nb", "%COMSPEC%", "!x!", "^&", `"`, `\`, "'", "a  b\t", "\r\n", "\u202e", "é", "e\u0301", "<&>",
		strings.Repeat("x", 200_000),
	} {
		inv, err := tool.Expand(tooltest.MustCheck(t, tool, `{"s": `+tooltest.Quote(s)+`}`), nil)
		if err != nil {
			t.Fatalf("Expand(%.40q) = %v", s, err)
		}
		if diff := cmp.Diff([]string{s, "x=" + s}, inv.Args); diff != "" {
			t.Errorf("Expand(%.40q): -want +got\n%s", s, diff)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	dash := func(param string) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*tools.LeadingDashError](err)
			return ok && e.Param == param
		}
	}
	nul := func(err error) bool { _, ok := errors.AsType[*tools.NULError](err); return ok }
	missing := func(names ...string) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*tools.MissingContextError](err)
			return ok && cmp.Equal(e.Names, names)
		}
	}
	for _, tt := range []struct {
		args, in string
		ok       func(error) bool
	}{
		{`["{{s}}"]`, `{"s": "--output=/tmp/evil"}`, dash("s")},
		{`["{{s}}"]`, `{"s": "-p"}`, dash("s")},
		{`["{{s}}"]`, `{"s": "-"}`, dash("s")},
		{`["{{s}}"]`, `{"s": "-oProxyCommand=x"}`, dash("s")},
		{`["--title", "{{s}}"]`, `{"s": "--help"}`, dash("s")},
		{`["{{s}}", "--"]`, `{"s": "--help"}`, dash("s")},
		{`["x--", "{{s}}"]`, `{"s": "--help"}`, dash("s")},
		{`["{{i}}{{s}}"]`, `{"i": -5, "s": "rf"}`, dash("i")},
		{`["{{a}}"]`, `{"a": ["-5"]}`, dash("a")},
		{`["{{d}}"]`, `{"d": "-x"}`, dash("d")},
		{`["{{s:text}}"]`, `{"s": "-x"}`, dash("s")},
		{`["{{s:--flag}}"]`, `{"s": "-x"}`, dash("s")},
		{`["{{a:--flag}}"]`, `{"a": ["x", "-x"]}`, dash("a")},
		{`["{{a...}}"]`, `{"a": ["x", "--exec=evil"]}`, dash("a")},
		{`["{{a}}"]`, `{"a": ["x", "-x"]}`, dash("a")},
		{`["{{s}}.txt"]`, `{"s": "-rf"}`, dash("s")},
		{`["{{s}}{{u}}"]`, `{"s": "", "u": "-rf"}`, dash("u")},
		{`["{{s}}{{u}}"]`, `{"u": "-rf"}`, dash("u")},
		{`["{{context.clipboard}}"]`, `{}`, dash("context.clipboard")},
		{`["{{s}}"]`, `{"s": "a\u0000b"}`, nul},
		{`["x{{a}}"]`, `{"a": ["a\u0000b"]}`, nul},
		{`["{{a...}}"]`, `{"a": ["a\u0000b"]}`, nul},
		{`["{{s:--flag}}"]`, `{"s": "a\u0000b"}`, nul},
		{`["{{context.url}}", "{{context.file}}", "x{{context.url}}"]`, `{}`, missing("file", "url")},
	} {
		tool := tooltest.Compile(t, expandSchema, `{"program": "p", "args": `+tt.args+`}`)
		inv, err := tool.Expand(tooltest.MustCheck(t, tool, tt.in), tools.Context{"clipboard": "-rf"})
		if inv != nil || !tt.ok(err) {
			t.Errorf("Expand(%s) of %s = %v, %v", tt.in, tt.args, inv, err)
		}
	}
}

func TestExpandTheRest(t *testing.T) {
	tool := tooltest.Compile(t, expandSchema, `{"program": "./bin/p", "stdin": "json", "cwd": "{{context.cwd}}",
		"env": {"B": "{{s}}", "A": "x{{u}}y", "C": "{{any}}", "D": "https://h/{{s}}", "E": "-{{s}}", "F": ""}}`)
	values := tooltest.MustCheck(t, tool, `{"s": "-a b", "n": 1.50}`)
	inv, err := tool.Expand(values, tools.Context{"cwd": "/p"})
	if err != nil {
		t.Fatal(err)
	}
	want := &tools.Invocation{
		Program: "./bin/p", Args: []string{}, Cwd: "/p",
		Env:    []string{"B=-a b", "D=https://h/-a b", "E=--a b", "F="},
		Stdin:  []byte(`{"d":"def","n":1.50,"neg":-1,"s":"-a b"}` + "\n"),
		Values: values,
	}
	same := cmp.Comparer(func(a, b tools.Values) bool { return a.JSON() == b.JSON() })
	if diff := cmp.Diff(want, inv, same); diff != "" {
		t.Errorf("Expand: -want +got\n%s", diff)
	}

	optional := tooltest.Compile(t, expandSchema, `{"program": "p", "cwd": "{{s}}"}`)
	if inv, err := optional.Expand(tools.Values{}, nil); err != nil || inv.Cwd != tools.CwdWorkspace {
		t.Errorf("Expand without cwd = %v, %v, want the workspace", inv, err)
	}
	declared := tooltest.CompileTool(t, `{"name": "t"}`)
	if _, err := declared.Expand(tools.Values{}, nil); !errors.Is(err, tools.ErrDeclaredOnly) {
		t.Errorf("Expand of a declared tool = %v, want %v", err, tools.ErrDeclaredOnly)
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "x", "-x", "{{s}}", "$(id)", "a\nb", "\u202e", "a b"} {
		f.Add(s, "pre", "post")
	}
	schema := `{"type": "object", "properties": {"s": {"type": "string"}}}`
	f.Fuzz(func(t *testing.T, s, pre, post string) {
		if !utf8.ValidString(s) || strings.ContainsAny(pre+post, "{\x00") || !utf8.ValidString(pre) || !utf8.ValidString(post) || template.IsURL(pre) {
			return
		}
		if strings.Contains(s, "\x00") {
			return
		}
		command, _ := json.Marshal([]string{"p", "--", "{{s}}", pre + "{{s}}" + post})
		tool := tooltest.Compile(t, schema, string(command))
		args, _ := json.Marshal(map[string]string{"s": s})
		inv, err := tool.Expand(tooltest.MustCheck(t, tool, string(args)), nil)
		if err != nil {
			t.Fatalf("Expand(%q) = %v", s, err)
		}
		if diff := cmp.Diff([]string{"--", s, pre + s + post}, inv.Args); diff != "" {
			t.Errorf("Expand(%q): -want +got\n%s", s, diff)
		}
	})
}
