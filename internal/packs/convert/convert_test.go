package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// declared lists files that declare tools, with the formats that can express all of their
// tools.
var declared = []struct { // never modified
	name, text string
	lossless   []Format
}{
	{"empty/SKILL.md", "---\nname: empty\ndescription: d\n---\n\n### nothing\n\nDoes nothing.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\ntrue\n```\n", Formats()},
	{"words/SKILL.md", "---\nname: words\nversion: 2.1.0\nauthor: a\ndescription: \"d: with a colon\"\nread_only: true\nalways_ask: true\nreview: all\ncache: go-build\nnetwork: true\ntimeout: 7\nmodes: [Dev, Global]\n---\n" +
		"\n### quoting\n\nQuotes *things*.\n\nIn two paragraphs.\n\n#### Parameters\n\n| Name | Type | Required | Description |\n|---|---|---|---|\n" +
		"| a | string | yes | has a \\| in it |\n| n | integer | no | how many (default: 3) |\n| b | boolean | no | on? |\n| l | array | no | |\n| f | number | no | |\n" +
		"\n#### Examples\n\n```\nUser: one\n```\n\n```\nUser: two\n```\n\n#### Command\n\n```bash\nprintf '%s\\n' \"two words\" 'it'\\''s' \"\" 'a\"b' \"c\\\\d\" '$HOME|*' {{b:--on}} --n={{n}} {{a}} {{l...}} {{f:1.5}} '{{{{'\n```\n", Formats()},
	{"tools.json", `{"tools": [{"name": "plain", "description": "d", "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": false},
		"command": {"program": "./run.sh", "args": ["{{x}}"], "cwd": "project", "skill_env": true}, "output": {"merged": true}}]}`, Formats()},
	{"tools.json", `{"tools": [{"name": "Full-1", "title": "t", "description": "d", "version": "3",
		"inputSchema": {"type": "object", "properties": {"required": {"type": "string", "enum": ["a", "b"], "default": "a"}, "o": {"type": "object"}}, "required": ["o"], "minProperties": 1},
		"outputSchema": {"type": "object"}, "command": {"program": "p", "args": ["{{required}}", "a\nb"], "env": {"A": "{{o}}"}, "stdin": "json", "cwd": "{{context.cwd}}"},
		"policy": {"network": "loopback", "timeout_secs": 3, "confirm_before_run": true, "cache": "npm", "allowed_exit_codes": [0, 3]},
		"output": {"format": "json", "extract_field": "a.b", "template": "<{{output}}>", "max_chars": 9, "speak": true}, "examples": ["e"], "modes": ["Dev"]},
		{"name": "later", "inputSchema": {"type": "object"}}]}`, []Format{ToolPack, ToolsJSON}},
	{"x.tool.json", `{"name": "sourced", "description": "d", "version": "1.0.0", "modes": ["Coding"], "examples": ["User: {{url}}"],
		"parameters": {"url": {"type": "string", "required": true, "source": "context.url"}, "q": {"type": "string", "required": true, "source": "transcript"},
			"fixed": {"type": "string", "default": "v", "source": "literal"}, "len": {"type": "string", "enum": ["a", "b"], "default": "a"}},
		"command": {"program": "p", "args": ["{{url}}", "{{q}}", "{{fixed}}", "{{len}}"], "env": {"A": "b"}},
		"policy": {"requires_network": true, "read_only": false, "confirm_before_run": true}, "output": {"format": "json", "extract_field": "x"}}`, []Format{ToolPack, ToolsJSON}},
	{"lists/SKILL.md", "---\nname: lists\ndescription: d\n---\n\n### look\n\nOne of\n\n- this,\n- that.\n\n1. And so\n2. on.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\nlook\n```\n", Formats()},
	{"tools.json", `{"tools": [{"name": "hosts", "description": "d", "command": ["p"], "policy": {"network": {"hosts": ["b.example.com:443", "a.example.com:80"]}}}]}`, []Format{ToolPack, ToolsJSON}},
	{"y.tool.json", `{"name": "defaults", "description": "d", "command": {"program": "p", "args": []}}`, []Format{ToolPack, ToolsJSON}},
}

func TestRoundTrip(t *testing.T) {
	for _, d := range declared {
		src := read(t, d.name, d.text)
		for _, to := range d.lossless {
			files, problems := Write(src, to, Options{})
			if lost(problems) > 0 || files == nil {
				t.Errorf("Write(%s, %s) = %v, want nothing lost", d.name, to, problems)
				continue
			}
			if diff := cmp.Diff(definitions(src.Tools), definitions(readAll(t, files))); diff != "" {
				t.Errorf("Write(%s, %s) reads as other tools: -want +got\n%s", d.name, to, diff)
			}
		}
	}
}

// TestWritesNoWarning parses the output as validate does: it yields no more problems than
// the source does.
func TestWritesNoWarning(t *testing.T) {
	const open = `{"name": "open", "description": "d", "version": "1.0.0", %s, "command": {"program": "p", "args": ["{{x}}"], "stdin": "json"}}`
	all := declared
	for _, input := range []string{
		`"inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}}`,
		`"inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": true}`,
		`"inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}, "minProperties": 1, "additionalProperties": false}`,
		`"inputSchema": {"properties": {"x": {"type": "string"}}}`,
		`"inputSchema": {"$defs": {"t": {"type": "string"}}, "type": "object", "properties": {"x": {"$ref": "#/$defs/t"}}}`,
	} {
		all = append(slices.Clip(all), struct {
			name, text string
			lossless   []Format
		}{"tools.json", "[" + fmt.Sprintf(open, input) + "]", []Format{ToolPack, ToolsJSON}})
	}
	all = append(all, struct {
		name, text string
		lossless   []Format
	}{"tools.json", `[{"name": "any", "description": "d", "inputSchema": {}, "command": {"program": "p", "stdin": "json"}}]`, []Format{ToolPack, ToolsJSON}})
	for _, d := range all {
		src, before := Read(d.name, []byte(d.text))
		if src == nil {
			t.Fatalf("Read(%s) = %v", d.text, before)
		}
		declaredOnly := slices.ContainsFunc(src.Tools, func(t *tools.Tool) bool { return t.Command == nil })
		has := func(code string) bool {
			return code == tools.CodeCommandMissing && declaredOnly || slices.ContainsFunc(before, func(d diag.Diagnostic) bool { return d.Code == code })
		}
		for _, to := range d.lossless {
			files, problems := Write(src, to, Options{})
			if lost(problems) > 0 || files == nil {
				t.Errorf("Write(%s, %s) = %v, want nothing lost", d.text, to, problems)
			}
			for _, f := range files {
				_, after := Read(f.Name, f.Data)
				for _, p := range after {
					if p.Severity != diag.Info && !has(p.Code) {
						t.Errorf("Write(%s, %s) wrote what is read with %v\n%s", d.text, to, p, f.Data)
					}
				}
			}
		}
	}
}

// TestNothingIsDropped compares the reported losses with the actual differences, for every
// pair of formats.
func TestNothingIsDropped(t *testing.T) {
	for _, d := range declared {
		src := read(t, d.name, d.text)
		for _, to := range Formats() {
			files, problems := Write(src, to, Options{})
			if files == nil {
				if !diag.HasErrors(problems) {
					t.Errorf("Write(%s, %s) wrote nothing, and says nothing: %v", d.name, to, problems)
				}
				continue
			}
			same := cmp.Equal(definitions(src.Tools), definitions(readAll(t, files)))
			if same != (lost(problems) == 0) {
				t.Errorf("Write(%s, %s): the same: %v, and it says %v", d.name, to, same, problems)
			}
		}
	}
}

func TestWhatMarkdownCannotSay(t *testing.T) {
	src := read(t, "x.tool.json", declared[4].text)
	_, problems := Write(src, Markdown, Options{})
	var said []string
	for _, p := range problems {
		said = append(said, p.Code+" "+strings.TrimPrefix(p.Message, `tool "sourced": `))
		if p.Hint == "" || p.File != "x.tool.json" || p.Line == 0 {
			t.Errorf("a problem without file, line or hint: %+v", p)
		}
	}
	for _, want := range []string{
		"/command/args is [", "/sources is left out", "/inputSchema/properties/len/enum is left out", "/output/extract_field is left out", "/output/speak is left out", `/command/env is left out (it was {"A":"b"})`,
	} {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("Write(x.tool.json, markdown) says %q, want %q", said, want)
		}
	}
}

func TestImpossible(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"declared only", `[{"name": "a", "inputSchema": {"type": "object"}}]`},
		{"a name with capitals", `[{"name": "Abc", "command": ["p"]}]`},
		{"a long name", `[{"name": "` + strings.Repeat("a", 40) + `", "command": ["p"]}]`},
	} {
		files, problems := Write(read(t, "tools.json", c.text), Markdown, Options{})
		if files != nil || len(problems) != 1 || problems[0].Code != CodeImpossible {
			t.Errorf("Write(%s, markdown) = %v, %v, want %s", c.name, files, problems, CodeImpossible)
		}
	}
}

func TestPoliciesGetFoldersOfTheirOwn(t *testing.T) {
	src := read(t, "tools.json", `[{"name": "a", "command": ["p"], "policy": {"read_only": true}}, {"name": "b", "command": ["p"]}, {"name": "c", "command": ["p"], "policy": {"read_only": true}}]`)
	files, problems := Write(src, Markdown, Options{})
	if files != nil || len(problems) != 1 || problems[0].Code != CodeImpossible || !strings.Contains(problems[0].Hint, "--split to write 2 packs") {
		t.Errorf("Write(…, markdown) = %v, %v, want to hear of --split", files, problems)
	}
	files, _ = Write(src, Markdown, Options{Split: true})
	var got []string
	for _, f := range files {
		got = append(got, fmt.Sprint(f.Name, strings.Count(string(f.Data), "\n### ")))
	}
	if want := []string{"a/SKILL.md2", "b/SKILL.md1"}; !slices.Equal(got, want) {
		t.Errorf("Write(…, markdown) = %v, want %v", got, want)
	}
}

// TestReadsAsServing compares Read with what a pack with the document serves.
func TestReadsAsServing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "words")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(declared[1].text), 0o644); err != nil {
		t.Fatal(err)
	}
	catalog, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: dir}}})
	if err != nil {
		t.Fatal(err)
	}
	set, problems, err := toolfiles.New(tools.Limits{}, "").Load(catalog.All()[0])
	if err != nil || set == nil {
		t.Fatalf("Load = %v, %v, %v", set, problems, err)
	}
	src := read(t, "SKILL.md", declared[1].text)
	if diff := cmp.Diff(definitions(set.Tools), definitions(src.Tools)); diff != "" {
		t.Errorf("Read reads other tools than serving: -serving +read\n%s", diff)
	}
}

// TestRealFiles converts files that people wrote to every format and back.
func TestRealFiles(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../../../shared/data/markdown-tools/*.md", "../../../../shared/data/tool-packs/*.tool.json", "../../../examples/packs/*/tools.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 && strings.Contains(pattern, "shared") && slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
			t.Fatalf("corpora: nothing at %s", pattern)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		src := read(t, file, string(text))
		for _, to := range []Format{ToolPack, ToolsJSON, FormatOf(file)} {
			written, problems := Write(src, to, Options{})
			if lost(problems) > 0 || written == nil {
				t.Errorf("Write(%s, %s) = %v", file, to, problems)
				continue
			}
			again := &Source{Name: src.Name, Description: src.Description, Version: src.Version, Author: src.Author, Tools: readAll(t, written)}
			back, problems := Write(again, FormatOf(file), Options{})
			if lost(problems) > 0 || back == nil {
				t.Errorf("Write(%s, %s) and back = %v", file, to, problems)
				continue
			}
			if diff := cmp.Diff(definitions(src.Tools), definitions(readAll(t, back))); diff != "" {
				t.Errorf("%s to %s and back: -want +got\n%s", file, to, diff)
			}
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("p", "a b", "it's", "{{x}}")
	f.Add("./p", `"`, `\`, "$(x) | y")
	f.Add("p", "", "`a`", "--x={{x}} z")
	f.Fuzz(func(t *testing.T, program, a, b, c string) {
		text := indented(object{{"tools", []object{{
			{"name", "t"}, {"inputSchema", object{{"type", "object"}, {"properties", object{{"x", object{{"type", "string"}}}}}, {"additionalProperties", false}}},
			{"command", object{{"program", program}, {"args", []string{a, b, c}}, {"cwd", "project"}, {"skill_env", true}}}, {"output", object{{"merged", true}}},
		}}}})
		src, _ := Read("tools.json", text)
		if src == nil {
			t.Skip("no tool")
		}
		files, problems := Write(src, Markdown, Options{})
		if files == nil {
			if !diag.HasErrors(problems) {
				t.Fatalf("nothing written, and nothing said")
			}
			return
		}
		if same := cmp.Equal(definitions(src.Tools), definitions(readAll(t, files))); same != (lost(problems) == 0) {
			t.Fatalf("the same: %v, and it says %v", same, problems)
		}
		if !strings.ContainsAny(program+a+b+c, "\n\r`") && lost(problems) > 0 {
			t.Fatalf("Write(%q %q %q %q) = %v\n%s", program, a, b, c, problems, files[0].Data)
		}
	})
}

func read(t *testing.T, name, text string) *Source {
	t.Helper()
	s, problems := Read(name, []byte(text))
	if s == nil {
		t.Fatalf("Read(%q) = %v", name, problems)
	}
	return s
}

func readAll(t *testing.T, files []File) []*tools.Tool {
	t.Helper()
	var all []*tools.Tool
	for _, f := range files {
		all = append(all, read(t, f.Name, string(f.Data)).Tools...)
	}
	return all
}

// definitions are what tools are, but for what TestVersionAndFolder is about.
func definitions(list []*tools.Tool) []string {
	var all []string
	for _, t := range list {
		own := *t
		own.Version = ""
		all = append(all, strings.ReplaceAll(string(own.Definition()), `"cwd":"{{context.cwd}}"`, `"cwd":"project"`))
	}
	slices.Sort(all)
	return all
}

func lost(problems []diag.Diagnostic) int {
	n := 0
	for _, p := range problems {
		if p.Severity != diag.Info {
			n++
		}
	}
	return n
}

// What a document says of its version, a tool says, and the other way round; the
// project folder has the specification's name in a tool pack.
func TestVersionAndFolder(t *testing.T) {
	src := read(t, "SKILL.md", "---\nname: x\nversion: 2.1.0\ndescription: d\n---\n\n### a\n\nd\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\np\n```\n")
	for _, to := range []Format{ToolPack, ToolsJSON} {
		files, problems := Write(src, to, Options{})
		if len(problems) > 0 || len(files) != 1 || !strings.Contains(string(files[0].Data), `"version": "2.1.0"`) {
			t.Fatalf("Write(SKILL.md, %s) = %s, %v, want the version", to, files, problems)
		}
		if to == ToolPack && !strings.Contains(string(files[0].Data), `"cwd": "{{context.cwd}}"`) {
			t.Errorf("Write(SKILL.md, %s) = %s, want the folder as the specification has it", to, files[0].Data)
		}
		back, problems := Write(read(t, files[0].Name, string(files[0].Data)), Markdown, Options{})
		if len(problems) > 0 || !strings.Contains(string(back[0].Data), "version: 2.1.0\n") {
			t.Errorf("from %s and back = %s, %v, want the version and nothing lost", to, back, problems)
		}
	}
}

// Losses of a kind are one line, and the hint names the formats that can express them, if any.
func TestLossesAreFolded(t *testing.T) {
	var all []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all = append(all, `{"name": "`+name+`", "description": "d", "inputSchema": {"type": "object", "properties": {"p_`+name+`": {"type": "string", "enum": ["x"]}}, "additionalProperties": false}, "command": ["p", "{{p_`+name+`}}"]}`)
	}
	_, problems := Write(read(t, "tools.json", "["+strings.Join(all, ",")+"]"), Markdown, Options{})
	enums := slices.DeleteFunc(problems, func(d diag.Diagnostic) bool { return !strings.Contains(d.Message, "enum") })
	if len(enums) != 1 || enums[0].Message != `tool "a": /inputSchema/properties/p_a/enum is left out (it was ["x"]); and 5 more like this, in "b", "c", "d", 2 more` {
		t.Errorf("the losses are %v, want one line", enums)
	}
	if len(enums) == 1 && enums[0].Hint != "check whether the tool works without it; tool-pack can express it" {
		t.Errorf("the hint is %q, want another format than the original one", enums[0].Hint)
	}
}
