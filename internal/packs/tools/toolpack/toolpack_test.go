package toolpack_test

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolpack"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
	"github.com/packs-mcp/packs-mcp/schemas"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func parsePack(src string) (*tools.Set, []diag.Diagnostic) {
	return toolpack.Parse("x.tool.json", []byte(src), tools.Limits{})
}

// mustPack compiles a tool pack with these members besides name, description
// and command.
func mustPack(t testing.TB, members string) *tools.Tool {
	t.Helper()
	src := `{"name": "t", "description": "d", ` + members + `}`
	set, found := parsePack(src)
	if set == nil || len(set.Tools) != 1 {
		t.Fatalf("ParseToolPack(%s) = %v", src, found)
	}
	return set.Tools[0]
}

// One archive for each section of specs/tool-packs.md, named after it, and some for
// cases beyond it.
func TestToolPackGolden(t *testing.T) {
	tooltest.Goldens(t, *update, "testdata/*.txtar", func(files map[string]string) (*tools.Set, []diag.Diagnostic) {
		return parsePack(files["x.tool.json"])
	})
}

// The files of testdata/unread are not tools at all, so no schema covers them.
func TestToolPackGoldenUnread(t *testing.T) {
	tooltest.Goldens(t, *update, "testdata/unread/*.txtar", func(files map[string]string) (*tools.Set, []diag.Diagnostic) {
		return parsePack(files["x.tool.json"])
	})
}

// packFixtures returns the tool packs of the golden files.
func packFixtures(t testing.TB) []string {
	t.Helper()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	var out []string
	for _, file := range archives {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if f.Name == "x.tool.json" {
				out = append(out, string(f.Data))
			}
		}
	}
	return out
}

func TestToolPackReal(t *testing.T) {
	set, found := toolpack.Parse("summarize.tool.json", tooltest.Shared(t, "data/tool-packs/summarize.tool.json"), tools.Limits{})
	if set == nil || len(found) > 0 {
		t.Fatalf("ParseToolPack = %v, %v", set, found)
	}
	tool := set.Tools[0]
	inv, err := tool.Expand(tooltest.MustCheck(t, tool, `{}`), tools.Context{"url": "https://example.com/"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-y", "@steipete/summarize", "https://example.com/", "--length", "medium"}
	if diff := cmp.Diff(want, inv.Args); diff != "" || inv.Program != "npx" {
		t.Errorf("Expand: program %s, arguments -want +got\n%s", inv.Program, diff)
	}
	if tool.Policy.Timeout != 2*time.Minute || tool.Policy.Network != tools.NetworkFull || !tool.Policy.ReadOnly {
		t.Errorf("policy %+v", tool.Policy)
	}
}

// Every code that only tool packs get has a case that reports exactly it.
func TestToolPackDiagnostics(t *testing.T) {
	const head = `{"name": "t", "description": "d", `
	seen := make(map[string]bool)
	for _, tt := range []struct {
		name, src string
		want      string // codes
		at        string // line:col and pointer of the first one
	}{
		{"a list", `[]`, tools.CodeNotAToolPack, "1:1 "},
		{"a list of tools", `{"tools": []}`, tools.CodeNotAToolPack, "1:11 /tools"},
		{"no name", `{"description": "d"}`, tools.CodeNotAToolPack, "1:1 "},
		{"no command", `{"name": "t", "description": "d"}`, tools.CodeCommandMissing, "1:1 "},
		{"a string for a command", head + `"command": "npx t"}`, tools.CodeCommandNotUnderstood, "1:46 /command"},
		{"a JSON Schema", head + `"parameters": {"type": "object", "properties": {}}, "command": {"program": "p"}}`, tools.CodeNotFlat, "1:49 /parameters"},
		{"both", head + `"inputSchema": {"type": "object"}, "parameters": {}, "command": {"program": "p"}}`, tools.CodeSchemaTwice, "1:84 /parameters"},
		{"a JSON Schema of a list", head + `"parameters": {"type": "array"}, "command": {"program": "p"}}`, tools.CodeShape, "1:58 /parameters/type"},
		{"a long time", head + `"command": {"program": "p"}, "policy": {"timeout_secs": 1e300}}`, tools.CodeTimeoutLong, "1:91 /policy/timeout_secs"},
		{"not JSON", "{\n// x\n}", strictjson.CodeComment, "2:1 "},
		{"trailing comma", "{\"name\": \"t\",\n}", strictjson.CodeTrailingComma, "1:13 "},
		{"twice", "{\"name\": \"t\",\n\"name\": \"u\"}", strictjson.CodeDuplicateKey, "2:1 "},
		{"deep", tooltest.Nested(10_000), strictjson.CodeDepth, "1:102 "},
		{"large", strings.Repeat(" ", 1<<20+1), tools.CodeTooLarge, "0:0 "},
		{"an argv", head + `"command": ["p"]}`, tools.CodeShape, "1:46 /command"},
		{"null", head + `"modes": null, "command": {"program": "p"}}`, tools.CodeShape, "1:44 /modes"},
		{"reserved", `{"name": "mcp__x__y", "description": "d", "command": {"program": "p"}}`, tools.CodeNameReserved, "1:10 /name"},
		{"name", `{"name": 1, "description": "d", "command": {"program": "p"}}`, tools.CodeShape, "1:10 /name"},
		{"dotted name of what does not run", `{"name": "a.b", "description": "d", "command": "a"}`, tools.CodeNameInvalid + " " + tools.CodeCommandNotUnderstood, "1:10 /name"},
		{"goes nowhere", head + `"parameters": {"x": {"type": "string"}}, "command": {"program": "p"}}`, tools.CodeParameterUnused, "1:49 /parameters"},
		{"source", head + `"parameters": {"x": {"source": "literal", "default": null}}, "command": {"program": "p"}}`, tools.CodeSourceInvalid, "1:55 /parameters/x"},
		{"type of a fixed value", head + `"parameters": {"x": {"source": "literal", "default": 1, "pattern": "("}}, "command": {"program": "p"}}`, tools.CodeSchemaInvalid, "1:102 /parameters/x/pattern"},
		{"type of a parameter", head + `"parameters": {"x": {"type": "string", "items": {"type": "word"}}}, "command": {"program": "p"}}`, tools.CodeSchemaInvalid, "1:92 /parameters/x/items/type"},
		{"default", head + `"parameters": {"x": {"type": "integer", "default": "1"}}, "command": {"program": "p", "args": ["{{x}}"]}}`, tools.CodeDefaultInvalid, "1:86 /parameters/x/default"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set, found := parsePack(tt.src)
			if got := tooltest.Codes(found); got != tt.want {
				t.Fatalf("ParseToolPack(%.200s)\n  codes %s\n  want  %s\n%v", tt.src, got, tt.want, found)
			}
			if (set == nil) != diag.HasErrors(found) {
				t.Errorf("ParseToolPack(%.200s) = %v with %v", tt.src, set, found)
			}
			if got := fmt.Sprintf("%d:%d %s", found[0].Line, found[0].Column, found[0].Pointer); got != tt.at {
				t.Errorf("ParseToolPack(%.200s) reports at %q, want %q", tt.src, got, tt.at)
			}
			for _, d := range found {
				seen[d.Code] = true
				if d.Message == "" || d.File != "x.tool.json" || d.Hint == "" {
					t.Errorf("diagnostic %+v is not complete", d)
				}
			}
		})
	}
	tooltest.ReportsAll(t, seen, "../codes.go", "Codes of diagnostics that only *.tool.json files get")
}

// "Field Reference": the defaults of each table.
func TestToolPackDefaults(t *testing.T) {
	tool := mustPack(t, `"command": {"program": "p"}`)
	if want := (tools.Policy{ReadOnly: true, Network: tools.NetworkNone}); !cmp.Equal(tool.Policy, want) {
		t.Errorf("Policy = %+v, want %+v", tool.Policy, want)
	}
	if want := (tools.Output{Speak: true}); tool.Output != want {
		t.Errorf("Output = %+v, want %+v", tool.Output, want)
	}
	long := strings.Repeat("ä", 2000)
	if out, _ := tool.Output.Apply(long, true, true); utf8.RuneCountInString(out.Speak) != 1000 {
		t.Errorf("%d characters are spoken, want 1000", utf8.RuneCountInString(out.Speak))
	}
	if !tool.Policy.Allows(0) || tool.Policy.Allows(1) {
		t.Errorf("Allows(0) = %v, Allows(1) = %v, want only 0", tool.Policy.Allows(0), tool.Policy.Allows(1))
	}
	tool = mustPack(t, "\"command\": {\"program\": \"p\"}, \"policy\": {\"read_only\": false}, \"output\": {\"speak\": false}")
	if tool.Policy.ReadOnly || tool.Output.Speak {
		t.Errorf("what says no is read as yes: %+v, %+v", tool.Policy, tool.Output)
	}
	// The format's defaults do not count as the author's declarations.
	for policy, declared := range map[string]bool{`{}`: false, `{"timeout_secs": 1}`: false, `{"read_only": true}`: true, `{"read_only": false}`: false} {
		if tool = mustPack(t, `"command": {"program": "p"}, "policy": `+policy); tool.Policy.DeclaresReadOnly != declared {
			t.Errorf("%s: DeclaresReadOnly = %v, want %v", policy, tool.Policy.DeclaresReadOnly, declared)
		}
	}
}

// BOM and CRLF make no difference, and lines are still counted.
func TestToolPackBytes(t *testing.T) {
	set, found := parsePack("\xef\xbb\xbf{\r\n\"name\": \"t\",\r\n\"description\": \"d\",\r\n\"command\": {\"program\": \"p\"}, \"x\": 1\r\n}\r\n")
	if set == nil || tooltest.Codes(found) != tools.CodeUnknownKey || found[0].Line != 4 || set.Tools[0].Line != 1 {
		t.Errorf("ParseToolPack = %v, %v, want a tool and an unknown key in line 4", set, found)
	}
}

// The model can neither see nor set a fixed value.
func TestLiteralHidden(t *testing.T) {
	tool := mustPack(t, `"parameters": {
		"seen": {"type": "string"},
		"hidden": {"type": "string", "source": "literal", "default": "-v; $(id) {{seen}}", "description": "not to be seen"}
	}, "command": {"program": "p", "args": ["{{hidden}}", "{{seen}}"], "env": {"H": "<{{hidden}}>"}, "stdin": "json"}`)
	for name, text := range map[string]string{
		"InputSchema": string(tool.InputSchema), "PortableSchema": string(tool.PortableSchema()),
		"Signature": tool.Signature(), "DescriptionFor": tool.DescriptionFor(nil, 0),
	} {
		if strings.Contains(text, "hidden") || strings.Contains(text, "$(id)") {
			t.Errorf("%s shows the fixed value: %s", name, text)
		}
	}
	for _, args := range []string{`{"hidden": "x"}`, `{"hidden": "-v; $(id) {{seen}}"}`, `{"hidden": null}`, `{"seen": 1, "hidden": "x"}`} {
		_, err := tool.Check(tooltest.Arguments(t, args))
		if e, ok := errors.AsType[*tools.ArgumentError](err); !ok || !strings.Contains(e.Error(), "/hidden") {
			t.Errorf("Check(%s) = %v, want it refused", args, err)
		}
	}
	inv, err := tool.Expand(tooltest.MustCheck(t, tool, `{"seen": "s"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"-v; $(id) {{seen}}", "s"}, inv.Args); diff != "" {
		t.Errorf("Args: -want +got\n%s", diff)
	}
	if got, want := string(inv.Stdin), `{"hidden":"-v; $(id) {{seen}}","seen":"s"}`+"\n"; got != want {
		t.Errorf("Stdin = %s, want %s", got, want)
	}
}

// Values from the context are passed byte for byte, like any other.
func TestContextByteForByte(t *testing.T) {
	tool := mustPack(t, `"parameters": {"s": {"type": "string", "required": true, "source": "context.selection"}},
		"command": {"program": "p", "args": ["{{s}}", "x{{s}}y", "https://h/?q={{s}}"], "env": {"S": "{{s}}"}}`)
	v := tooltest.MustCheck(t, tool, ``)
	before := fmt.Sprint(v)
	for _, s := range []string{"a b", "{{s}} {{context.cwd}}", "`x` $(x) ; | > & \\ ' \"", "\n\t\r", "ü\u202e", "", "{\"a\":1}", "12"} {
		inv, err := tool.Expand(v, tools.Context{"selection": s, "cwd": "/p"})
		if err != nil {
			t.Errorf("Expand with %q = %v", s, err)
			continue
		}
		if want := []string{s, "x" + s + "y", "https://h/?q=" + template.PercentEncode(s)}; !cmp.Equal(inv.Args, want) || inv.Env[0] != "S="+s {
			t.Errorf("Expand with %q = %q %q, want %q", s, inv.Args, inv.Env, want)
		}
	}
	if after := fmt.Sprint(v); after != before {
		t.Errorf("Expand changed the values of the call: %v", after)
	}
	if _, err := tool.Expand(v, tools.Context{"selection": "-rf"}); !isA[*tools.LeadingDashError](err) {
		t.Errorf("Expand with -rf = %v, want it refused", err)
	}
	if _, err := tool.Expand(v, tools.Context{"selection": "a\x00b"}); !isA[*tools.NULError](err) {
		t.Errorf("Expand with NUL = %v, want it refused", err)
	}
	_, err := tool.Expand(v, tools.Context{"clipboard": "x"})
	e, ok := errors.AsType[*tools.MissingContextError](err)
	if !ok || !cmp.Equal(e, &tools.MissingContextError{Names: []string{"selection"}, Params: []string{"s"}}) {
		t.Errorf("Expand without it = %v, want the context and the parameter named", err)
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Secrets are secrets wherever they come from.
func TestContextSecret(t *testing.T) {
	tool := mustPack(t, `"examples": ["use {{key}} of {{where}}, {{context.clipboard}}"],
		"parameters": {
			"key": {"type": "string", "writeOnly": true, "required": true, "source": "context.clipboard"},
			"where": {"type": "string", "source": "context.file"},
			"n": {"type": "string", "maxLength": 3, "format": "password", "source": "context.selection"}
		}, "command": {"program": "p", "args": ["{{key}}", "{{where}}", "{{n}}"]}`)
	ctx := tools.Context{"clipboard": "sesame", "file": "f"}
	inv, err := tool.Expand(tooltest.MustCheck(t, tool, `{}`), ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sesame"}, tool.SecretValues(inv.Values)); diff != "" {
		t.Errorf("SecretValues: -want +got\n%s", diff)
	}
	if got := tool.DescriptionFor(ctx, 0); strings.Contains(got, "sesame") || !strings.Contains(got, "{{key}} of f") {
		t.Errorf("DescriptionFor = %q, want the secret left out", got)
	}
	ctx["selection"] = "too long a secret"
	if _, err := tool.Expand(tooltest.MustCheck(t, tool, `{}`), ctx); err == nil || strings.Contains(err.Error(), "too long") {
		t.Errorf("Expand = %v, want an error that does not show the value", err)
	}
}

func TestDescriptionFor(t *testing.T) {
	tool := mustPack(t, `"examples": ["one {{url}}", "two {{ context.url }} {{page}}", "three {{other}} {{url:x}} {{{{ {{", "four"],
		"parameters": {"page": {"source": "context.url"}, "url": {"source": "transcript"}},
		"command": {"program": "p", "args": ["{{page}}", "{{url}}"]}`)
	ctx := tools.Context{"url": "U{{page}}"}
	for _, tt := range []struct {
		limit int
		want  string
	}{
		{0, "d\n\nExamples:\none {{url}}\n\ntwo U{{page}} U{{page}}\n\nthree {{other}} {{url:x}} {{{{ {{\n\nfour"},
		{1, "d"},
		{23, "d"},
		{24, "d\n\nExamples:\none {{url}}"},
		{25, "d\n\nExamples:\none {{url}}"},
	} {
		if got := tool.DescriptionFor(ctx, tt.limit); got != tt.want {
			t.Errorf("DescriptionFor(%d) = %q, want %q", tt.limit, got, tt.want)
		}
	}
	long := &tools.Tool{Description: strings.Repeat("ä", 2000), Examples: []string{"x"}}
	if got := utf8.RuneCountInString(long.DescriptionFor(nil, 0)); got != 1024 {
		t.Errorf("a long description has %d characters, want 1024", got)
	}
}

// A compiled tool pack can be written as a tools.json that compiles to the same tool.
func TestToolPackDefinition(t *testing.T) {
	for _, src := range packFixtures(t) {
		set, _ := parsePack(src)
		if set == nil {
			continue
		}
		def := set.Tools[0].Definition()
		again, found := toolsjson.Parse("tools.json", []byte(`[`+string(def)+`]`), tools.Limits{})
		if again == nil && set.Tools[0].Command == nil {
			continue // a bare list is recognized by its commands
		}
		if again == nil || len(again.Tools) != 1 {
			t.Errorf("ParseToolsJSON([%s]) = %v", def, found)
			continue
		}
		if diff := cmp.Diff(string(def), string(again.Tools[0].Definition())); diff != "" {
			t.Errorf("Definition of what Definition gave: -first +second\n%s", diff)
		}
	}
}

// The published schema agrees with the loader about the shape of files.
func TestPublishedToolPackSchema(t *testing.T) {
	root, e := strictjson.Parse([]byte(schemas.ToolPackV1()))
	if e != nil {
		t.Fatal(e)
	}
	if got := root.StringAt("$id"); got != schemas.ToolPackV1ID {
		t.Errorf("$id %q, want %q", got, schemas.ToolPackV1ID)
	}
	whole, err := schema.Compile(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range packFixtures(t) {
		n, e := strictjson.Parse([]byte(src))
		if e != nil {
			t.Fatal(e)
		}
		_, found := parsePack(src)
		want := !strings.Contains(" "+tooltest.Codes(found)+" ", " "+tools.CodeShape+" ") &&
			!strings.Contains(tooltest.Codes(found), tools.CodeNameInvalid) && !strings.Contains(tooltest.Codes(found), tools.CodeNotFlat) && !strings.Contains(tooltest.Codes(found), tools.CodeCommandNotUnderstood)
		if got := whole.Validate(n.Value()) == nil; got != want {
			t.Errorf("schema accepts %s = %v, want %v", src, got, want)
		}
	}
}

func FuzzParseToolPack(f *testing.F) {
	for _, src := range packFixtures(f) {
		f.Add(src, `{"url": "u"}`, "c")
	}
	f.Fuzz(func(t *testing.T, src, args, context string) {
		set, found := toolpack.Parse("f", []byte(src), tools.Limits{})
		if (set == nil) != diag.HasErrors(found) {
			t.Fatalf("ParseToolPack(%q) = %v with %v", src, set, found)
		}
		if set == nil {
			return
		}
		tool := set.Tools[0]
		ctx := tools.Context{"url": context, "selection": context, "clipboard": context, "file": context, "cwd": context}
		if got := tool.DescriptionFor(ctx, 100); utf8.ValidString(context) && utf8.RuneCountInString(got) > 100 {
			t.Errorf("DescriptionFor(100) has %d characters", utf8.RuneCountInString(got))
		}
		if tool.Command == nil {
			return
		}
		def := tool.Definition()
		again, found := toolsjson.Parse("f", []byte(`{"tools": [`+string(def)+`]}`), tools.Limits{})
		if again == nil || string(again.Tools[0].Definition()) != string(def) {
			t.Errorf("ParseToolsJSON(%s) = %v, %v, want the same tool", def, again, found)
		}
		v, err := tool.Check(tooltest.Arguments(t, args))
		if err != nil {
			return
		}
		before := fmt.Sprint(v)
		inv, err := tool.Expand(v, ctx)
		if fmt.Sprint(v) != before {
			t.Errorf("Expand changed the values of the call")
		}
		if err != nil {
			return
		}
		for _, a := range append(inv.Args, inv.Env...) {
			if strings.IndexByte(a, 0) >= 0 {
				t.Errorf("NUL in %q", a)
			}
		}
	})
}
