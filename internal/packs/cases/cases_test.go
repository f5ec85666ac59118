package cases

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/schemas"
)

func TestParse(t *testing.T) {
	all, problems := parse("tests/a.yaml", []byte(`
cases:
  - tool: hello
  - name: everything
    tool: hello
    arguments: {who: Ada, count: 3, big: 123456789012345678901234567890, rate: 1.50, on: true, none: null, list: [a, {b: 2026-01-02}], yes: no}
    context: {url: https://example.com, line: 12}
    exit: 3
    output: {equals: 5, contains: [a, b], matches: "^a+$"}
    stderr: {contains: oh}
    files: {out/./a.txt: {contains: x}, b.txt: , c.txt: {}}
`))
	if len(problems) > 0 || len(all) != 2 {
		t.Fatalf("parse = %v, %v, want two cases", all, problems)
	}
	if c := all[0]; c.Name != "hello, case 1" || string(c.Arguments) != "{}" || c.Exit != 0 || c.Output != nil || c.Line != 3 {
		t.Errorf("the first case is %+v", c)
	}
	c := all[1]
	want := `{"big":123456789012345678901234567890,"count":3,"list":["a",{"b":"2026-01-02"}],"none":null,"on":true,"rate":1.50,"who":"Ada","yes":"no"}`
	if string(c.Arguments) != want {
		t.Errorf("the arguments are %s, want %s", c.Arguments, want)
	}
	if diff := cmp.Diff(map[string]string{"url": "https://example.com", "line": "12"}, c.Context); diff != "" {
		t.Errorf("the context (-want +got):\n%s", diff)
	}
	if c.Exit != 3 || *c.Output.Equals != "5" || len(c.Output.Contains) != 2 || !c.Output.Matches.MatchString("aa") || c.Stderr.Contains[0] != "oh" {
		t.Errorf("the checks are %+v, %+v", c.Output, c.Stderr)
	}
	var paths []string
	for _, f := range c.Files {
		paths = append(paths, f.Path)
	}
	if diff := cmp.Diff([]string{"out/a.txt", "b.txt", "c.txt"}, paths); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
}

// wrong lists invalid files, each with the code, a part of the message or the hint,
// and whether the schema refuses it as well: JSON Schema cannot express some rules of
// YAML.
var wrong = []struct {
	src, code, says string
	schema          bool
}{
	{"", CodeValue, "the file has no cases", false},
	{"cases: []", CodeValue, "the file has no cases", true},
	{"- a", CodeValue, "is not a mapping", true},
	{"cases: {}", CodeValue, "is not a list", true},
	{"case: [{tool: a}]", CodeKeyUnknown, `did you mean "cases"?`, true},
	{"cases: [{tol: a}]", CodeKeyUnknown, `did you mean "tool"?`, true},
	{"cases: [{name: a}]", CodeValue, `has no "tool"`, true},
	{"cases: [a]", CodeValue, "a case is not a mapping", true},
	{"cases: [{tool: }]", CodeValue, "tool is not a text", true},
	{"cases: [{tool: [a]}]", CodeValue, "tool is not a text", true},
	{"cases: [{tool: a, tool: b}]", CodeValue, `the key "tool" occurs twice`, false},
	{"cases: [{tool: a, name: x}, {tool: a, name: x}]", CodeValue, `the name "x" occurs twice`, false},
	{"cases: [{tool: a, arguments: [1]}]", CodeValue, "arguments is not a mapping", true},
	{"cases: [{tool: a, arguments: {n: .nan}}]", CodeValue, "nothing that JSON has", false},
	{"cases: [{tool: a, arguments: {n: 1, n: 2}}]", CodeValue, "occurs twice", false},
	{"cases: [{tool: a, arguments: {n: !!binary aGk=}}]", CodeValue, "nothing that JSON has", false},
	{"cases: [{tool: a, arguments: &x {n: 1}}, {tool: b, arguments: *x}]", CodeYAML, "aliases are not read", false},
	{"cases: [{tool: a, arguments: {x: &x {n: 1}, y: *x}}]", CodeValue, "aliases are not read", false},
	{"cases: [{tool: a, arguments: {<<: {n: 1}}}]", CodeValue, "a key is not a text", false},
	{"cases: [{tool: a, exit: 256}]", CodeValue, "not a number from 0 to 255", true},
	{"cases: [{tool: a, exit: -1}]", CodeValue, "not a number from 0 to 255", true},
	{"cases: [{tool: a, exit: zero}]", CodeValue, "not a number from 0 to 255", true},
	{"cases: [{tool: a, output: hi}]", CodeValue, "output is not a mapping", true},
	{"cases: [{tool: a, output: {}}]", CodeValue, "output checks nothing", true},
	{"cases: [{tool: a, output: {equal: hi}}]", CodeKeyUnknown, `did you mean "equals"?`, true},
	{"cases: [{tool: a, output: {matches: '('}}]", CodeValue, "not a regular expression", false},
	{"cases: [{tool: a, output: {contains: {}}}]", CodeValue, "is not a text", true},
	{"cases: [{tool: a, files: [a.txt]}]", CodeValue, "files is not a mapping", true},
	{"cases: [{tool: a, files: {../x: }}]", CodeValue, "does not stay in the workspace", false},
	{"cases: [{tool: a, files: {a/../../x: }}]", CodeValue, "does not stay in the workspace", false},
	{"cases: [{tool: a, files: {/etc/passwd: }}]", CodeValue, "does not stay in the workspace", false},
	{`cases: [{tool: a, files: {'..\x': }}]`, CodeValue, "does not stay in the workspace", false},
	{"cases: [{tool: a, files: {'.': }}]", CodeValue, "does not stay in the workspace", false},
	{"cases: [{tool: a, files: {x: , ./x: }}]", CodeValue, "occurs twice", false},
	{"cases: [{tool: a, network: full}]", CodeKeyUnknown, "it has: ", true},
	{"cases: [{tool: a, env: {A: b}}]", CodeKeyUnknown, "it has: ", true},
	{"cases: [{tool: a, cwd: /}]", CodeKeyUnknown, "it has: ", true},
	{"cases: [{tool: a}]\n---\ncases: [{tool: b}]", CodeYAML, "a second document", false},
	{"cases: [{tool: a", CodeYAML, "not YAML", false},
	{"cases: \xff", CodeYAML, "not UTF-8", false},
	{"cases: [{tool: a, arguments: {x: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}}]", CodeValue, "too deeply", false},
}

func TestWrong(t *testing.T) {
	for _, tt := range wrong {
		_, problems := parse("tests/a.yaml", []byte(tt.src))
		if len(problems) == 0 {
			t.Errorf("parse(%.60q) finds nothing wrong, want %s", tt.src, tt.code)
			continue
		}
		d := problems[0]
		if d.Code != tt.code || !strings.Contains(d.Message+" "+d.Hint, tt.says) || d.Severity != diag.Error || d.File != "tests/a.yaml" || d.Hint == "" {
			t.Errorf("parse(%.60q) = %+v, want %s with %q", tt.src, d, tt.code, tt.says)
		}
	}
}

// The published schema accepts what parse accepts, and refuses what it can recognize
// as wrong.
func TestSchemaAgrees(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	published, err := os.Open("../../../schemas/tests.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	defer published.Close()
	doc, err := jsonschema.UnmarshalJSON(published)
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource(schemas.TestsV1ID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := compiler.Compile(schemas.TestsV1ID)
	if err != nil {
		t.Fatal(err)
	}
	fits := func(src string) error {
		var v any
		if err := yaml.Unmarshal([]byte(src), &v); err != nil {
			t.Fatalf("%q: %v", src, err)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%q: %v", src, err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(value)
	}
	for _, tt := range wrong {
		if tt.schema && fits(tt.src) == nil {
			t.Errorf("the schema takes %.60q, and parse does not", tt.src)
		}
	}
	for _, src := range []string{
		"cases: [{tool: a}]",
		"cases: [{tool: a, name: 1, arguments: {x: [1]}, context: {url: x}, exit: 255, output: {equals: 5}, stderr: {contains: [a]}, files: {a: , b: {}, c: {matches: x}}}]",
	} {
		if err := fits(src); err != nil {
			t.Errorf("the schema refuses %q: %v", src, err)
		}
		if _, problems := parse("a", []byte(src)); len(problems) > 0 {
			t.Errorf("parse(%q) = %v", src, problems)
		}
	}
}

func pack(t *testing.T, files map[string]string) *packfs.Dir {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := packfs.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func TestRead(t *testing.T) {
	const one = "cases: [{tool: a}]"
	for name, tt := range map[string]struct {
		files map[string]string
		cases int
		code  string // of the first problem
	}{
		"no folder":         {map[string]string{"SKILL.md": ""}, 0, ""},
		"a file for folder": {map[string]string{"tests": ""}, 0, ""},
		"other files":       {map[string]string{"tests/a.sh": "", "tests/.b.yaml": "", "tests/deep/c.yaml": "x"}, 0, ""},
		"two":               {map[string]string{"tests/a.yaml": one, "tests/b.yml": one}, 2, ""},
		"one is wrong":      {map[string]string{"tests/a.yaml": one, "tests/b.yml": "x"}, 1, CodeValue},
		"too large":         {map[string]string{"tests/a.yaml": one + strings.Repeat("\n", MaxSize)}, 0, CodeFile},
		"too many cases":    {map[string]string{"tests/a.yaml": "cases:\n" + strings.Repeat("- {tool: a}\n", MaxCases), "tests/b.yaml": one}, 0, CodeLimit},
	} {
		t.Run(name, func(t *testing.T) {
			all, problems := Read(pack(t, tt.files))
			code := ""
			if len(problems) > 0 {
				code = problems[0].Code
			}
			if len(all) != tt.cases || code != tt.code {
				t.Errorf("Read = %d cases, %v, want %d and the code %q", len(all), problems, tt.cases, tt.code)
			}
		})
	}
	many := make(map[string]string)
	for i := range MaxFiles + 1 {
		many[fmt.Sprintf("tests/%d.yaml", i)] = one
	}
	if all, problems := Read(pack(t, many)); len(all) != 0 || len(problems) != 1 || problems[0].Code != CodeLimit {
		t.Errorf("Read of %d files = %d cases, %v", len(many), len(all), problems)
	}
}

// A link that leads out of the pack is not followed, whether it is the folder or a
// file.
func TestReadLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a right on Windows")
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "a.yaml"), []byte("cases: [{tool: stolen}]"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"tests", "tests/a.yaml"} {
		root := t.TempDir()
		target := outside
		if link != "tests" {
			target = filepath.Join(outside, "a.yaml")
			if err := os.Mkdir(filepath.Join(root, "tests"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
		dir, err := packfs.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		all, problems := Read(dir)
		if len(all) != 0 || len(problems) != 1 || problems[0].Code != CodeFile {
			t.Errorf("Read with a link at %s = %v, %v, want a problem", link, all, problems)
		}
		dir.Close()
	}
}

func TestCompare(t *testing.T) {
	parse := func(t *testing.T, src string) Case {
		t.Helper()
		all, problems := parse("a", []byte("cases: [{tool: a, "+src+"}]"))
		if len(all) != 1 {
			t.Fatalf("parse(%q) = %v", src, problems)
		}
		return all[0]
	}
	file := func(path string) (string, error) {
		if path == "out.txt" {
			return "made\n", nil
		}
		return "", os.ErrNotExist
	}
	got := Got{Output: "one\ntwo\nthree\n", Stderr: "oh"}
	for _, tt := range []struct {
		src  string
		got  Got
		want string // what and how of the differences
	}{
		{"exit: 0", got, ""},
		{"exit: 1", got, "exit equals"},
		{"exit: 0", Got{Exit: 0, Signal: "SIGKILL"}, "exit equals"},
		{`output: {equals: "one\ntwo\nthree"}`, got, ""},
		{`output: {equals: "one\ntwo"}`, got, "output equals"},
		{`output: {equals: ""}`, got, "output equals"},
		{`output: {equals: ""}`, Got{}, ""},
		{"output: {contains: [two, four, five]}", got, "output contains, output contains"},
		{"output: {matches: '(?m)^two$'}", got, ""},
		{"output: {matches: '^two$'}", got, "output matches"},
		{"stderr: {contains: no}", got, "stderr contains"},
		{"files: {out.txt: {equals: made}}", got, ""},
		{"files: {out.txt: }", got, ""},
		{"files: {out.txt: {contains: x}, gone: }", got, "out.txt contains, gone exists"},
	} {
		c := parse(t, tt.src)
		var all []string
		for _, d := range c.Compare(tt.got, file) {
			all = append(all, d.What+" "+d.How)
		}
		if have := strings.Join(all, ", "); have != tt.want {
			t.Errorf("Compare(%s) = %q, want %q", tt.src, have, tt.want)
		}
	}
}

func TestDifferenceText(t *testing.T) {
	for _, tt := range []struct {
		d    Difference
		want string
	}{
		{Difference{"output", "equals", "a\nb\nc\nd\n", "a\nb\nc\nx"}, "output is not as expected:\n  b\n  c\n- d\n+ x\n"},
		{Difference{"output", "equals", "a", ""}, "output is not as expected:\n- a\n+ (nothing)\n"},
		{Difference{"stderr", "contains", "a", "b\nc"}, "stderr does not contain:\n- a\n+ b\n+ c\n"},
		{Difference{"output", "matches", "^a", "b"}, "output does not match:\n- ^a\n+ b\n"},
		{Difference{"x.txt", "exists", "a file", "it is not there"}, "the file x.txt was not made: it is not there\n"},
	} {
		if got := tt.d.Text(); got != tt.want {
			t.Errorf("Text(%v) = %q, want %q", tt.d, got, tt.want)
		}
	}
	long := Difference{"output", "contains", "x", strings.Repeat("y\n", 100)}
	if got := long.Text(); strings.Count(got, "\n") > maxShown+4 || !strings.Contains(got, "60 more lines") {
		t.Errorf("Text of 100 lines = %s", got)
	}
}

// parse accepts any input, and a case without a problem has a tool, and an object as
// its arguments.
func FuzzParse(f *testing.F) {
	for _, tt := range wrong {
		f.Add([]byte(tt.src))
	}
	f.Add([]byte("cases: [{tool: a, arguments: {x: 0x1F, y: 1e3, z: 0o7}, files: {a: {equals: b}}}]"))
	f.Fuzz(func(t *testing.T, src []byte) {
		all, problems := parse("f", src)
		if len(all) == 0 && len(problems) == 0 {
			t.Error("no case, and nothing is wrong")
		}
		for _, c := range all {
			var args map[string]any
			if err := json.Unmarshal(c.Arguments, &args); err != nil {
				t.Errorf("the arguments %q: %v", c.Arguments, err)
			}
		}
	})
}
