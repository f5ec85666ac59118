package markdown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

// oneTool returns a document with one tool.
func oneTool(table, command string) string {
	return "### t\n\nDoes it.\n\n#### Parameters\n\n" + table + "\n\n#### Command\n\n```\n" + command + "\n```\n"
}

const oneParameter = "| Name | Type | Required | Description |\n|---|---|---|---|\n| x | string | yes | X |"

func parseMarkdown(src string, limits tools.Limits) (*tools.Set, []diag.Diagnostic) {
	return Parse("SKILL.md", []byte(src), Defaults{}, limits)
}

func TestMentionsCommand(t *testing.T) {
	for src, want := range map[string]bool{
		"":                           false,
		"#### Command":               true,
		"####\tcOMMAND \t##\r\nx":    true,
		"x\n  ####   Command\n":      true,
		"#### Commands":              false,
		"#### Command line":          false,
		"####Command":                false,
		"### Command":                false,
		"##### Command":              false,
		"####\nCommand":              false,
		"#### x\n#### Command":       true,
		"#### #### Command":          true, // more than there are
		"########\n#### Command\n":   true,
		"#### \u00a0Command":         false,
		"a #### Command":             true,
		"#### Comman\xff\n#### Comm": false,
	} {
		if got := MentionsCommand([]byte(src)); got != want {
			t.Errorf("MentionsCommand(%q) = %v, want %v", src, got, want)
		}
	}
}

func TestMarkdownLimits(t *testing.T) {
	rows := func(n int) string {
		var b strings.Builder
		b.WriteString("| Name | Type | Required |\n|---|---|---|")
		for i := range n {
			fmt.Fprintf(&b, "\n| x%d | string | no |", i)
		}
		return b.String()
	}
	one := oneTool(oneParameter, "p {{x}}")
	for _, tt := range []struct {
		name   string
		src    string
		limits tools.Limits
		want   string // code of the first error, or "" for a tool
		at     string
	}{
		{"size", one, tools.Limits{Size: len(one)}, "", ""},
		{"too large", one, tools.Limits{Size: len(one) - 1}, tools.CodeTooLarge, ""},
		{"count", one, tools.Limits{Count: 1}, "", ""},
		{"too many", one + "\n" + strings.Replace(one, "### t", "### u", 1), tools.Limits{Count: 1}, tools.CodeTooMany, "17:5"},
		{"description", strings.Replace(one, "Does it.", strings.Repeat("x", 11), 1), tools.Limits{Description: 10}, "", ""},
		{"words", oneTool("None.", "p"+strings.Repeat(" a", maxCommandWords-1)), tools.Limits{}, "", ""},
		{"too many words", oneTool("None.", "p"+strings.Repeat(" a", maxCommandWords)), tools.Limits{}, tools.CodeTooLarge, "12:2001"},
		{"command", oneTool("None.", "p "+strings.Repeat("a", maxCommandBytes-3)), tools.Limits{}, "", ""},
		{"command too long", oneTool("None.", "p "+strings.Repeat("a", maxCommandBytes-2)), tools.Limits{}, tools.CodeTooLarge, "11:1"},
		{"parameters", oneTool(rows(maxParameters), "p"), tools.Limits{}, "", ""},
		{"too many parameters", oneTool(rows(maxParameters+1), "p"), tools.Limits{}, tools.CodeParametersTable, "209:1"},
		{"not UTF-8", "é\n" + oneTool("None.", "p \xff"), tools.Limits{}, tools.CodeNotUTF8, "13:3"},
		{"NUL", oneTool("None.", "p a\x00b"), tools.Limits{}, tools.CodePlaceholderInvalid, "12:3"},
		{"BOM", "\ufeff" + one, tools.Limits{}, "", ""},
	} {
		set, found := parseMarkdown(tt.src, tt.limits)
		if tt.want == "" {
			if set == nil || len(set.Tools) != 1 {
				t.Errorf("%s: ParseMarkdown = %v, %v, want one tool", tt.name, set, found)
			}
			continue
		}
		i := 0
		for i < len(found) && found[i].Severity != diag.Error {
			i++
		}
		if set != nil || i == len(found) || found[i].Code != tt.want {
			t.Errorf("%s: ParseMarkdown = %v, %v, want %s", tt.name, set, found, tt.want)
		} else if at := fmt.Sprintf("%d:%d", found[i].Line, found[i].Column); tt.at != "" && at != tt.at {
			t.Errorf("%s: %v, want it at %s", tt.name, found[i], tt.at)
		}
	}
}

// Positions are relative to the whole file, wherever its body begins.
func TestMarkdownBodyOffset(t *testing.T) {
	const front = "---\nname: x\n---\n"
	src := front + oneTool(oneParameter, "p {{y}}")
	for _, offset := range []int{0, len(front)} {
		_, found := Parse("SKILL.md", []byte(src), Defaults{BodyOffset: offset}, tools.Limits{})
		if len(found) != 1 || found[0].Line != 17 || found[0].Column != 3 || found[0].Code != tools.CodePlaceholderUnknown {
			t.Errorf("ParseMarkdown from %d = %v, want one problem in 17:3", offset, found)
		}
	}
	for _, offset := range []int{-1, len(src), len(src) + 1} {
		if set, found := Parse("SKILL.md", []byte(src), Defaults{BodyOffset: offset}, tools.Limits{}); offset > 0 && (set != nil || found != nil) {
			t.Errorf("ParseMarkdown from %d = %v, %v, want nothing", offset, set, found)
		}
	}
}

// A tool declared in Markdown equals the same tool in a tools.json, and everything that
// matters is part of its digest.
func TestMarkdownDefinition(t *testing.T) {
	base := oneTool(oneParameter, "p {{x}} a")
	defaults := Defaults{Modes: []string{"Dev"}, Timeout: 5e9}
	parse := func(src string, d Defaults) *tools.Tool {
		t.Helper()
		set, found := Parse("SKILL.md", []byte(src), d, tools.Limits{})
		if set == nil {
			t.Fatalf("ParseMarkdown(%q) = %v", src, found)
		}
		return set.Tools[0]
	}
	tool := parse(base, defaults)
	list, err := json.Marshal([]json.RawMessage{tool.Definition()})
	if err != nil {
		t.Fatal(err)
	}
	again, found := toolsjson.Parse("tools.json", list, tools.Limits{})
	if again == nil || len(found) > 0 {
		t.Fatalf("ParseToolsJSON(%s) = %v", list, found)
	}
	if diff := cmp.Diff(string(tool.Definition()), string(again.Tools[0].Definition())); diff != "" {
		t.Errorf("Definition() after a tools.json: -markdown +tools.json\n%s", diff)
	}
	if !again.Tools[0].Command.SkillEnv {
		t.Error("SkillEnv is lost in a tools.json")
	}

	digests := map[string]string{tool.Digest(): "itself"}
	differs := func(what string, other *tools.Tool) {
		t.Helper()
		if as, ok := digests[other.Digest()]; ok {
			t.Errorf("Digest() with another %s is that of %s", what, as)
		}
		digests[other.Digest()] = what
	}
	for what, change := range map[string][2]string{
		"name": {"### t", "### u"}, "description": {"Does it.", "Does that."}, "program": {"p {{x}}", "q {{x}}"},
		"argument": {" a\n", " b\n"}, "word": {" a\n", "' a'\n"}, "type": {"string", "integer"}, "requirement": {"yes", "no"},
		"parameter description": {"| X |", "| Y |"}, "default": {"| X |", "| X (default: 1) |"},
		"example": {"#### Command", "#### Examples\n\n```\nx\n```\n\n#### Command"},
	} {
		differs(what, parse(strings.Replace(base, change[0], change[1], 1), defaults))
	}
	differs("read_only", parse(base, Defaults{Modes: defaults.Modes, Timeout: 5e9, ReadOnly: true}))
	differs("always_ask", parse(base, Defaults{Modes: defaults.Modes, Timeout: 5e9, AlwaysAsk: true}))
	differs("cache", parse(base, Defaults{Modes: defaults.Modes, Timeout: 5e9, Cache: "go-build"}))
	differs("network", parse(base, Defaults{Modes: defaults.Modes, Timeout: 5e9, Network: true}))
	differs("timeout", parse(base, Defaults{Modes: defaults.Modes, Timeout: 6e9}))
	differs("modes", parse(base, Defaults{Timeout: 5e9}))
	plain := *tool
	command := *tool.Command
	command.SkillEnv = false
	plain.Command = &command
	differs("SkillEnv", &plain)
	if moved := parse("# Title\n\n"+base, defaults); moved.Digest() != tool.Digest() {
		t.Error("Digest() depends on where the tool is")
	}
}

// Documents built to use much time or memory do not. The test bounds memory, since slow
// parts allocate.
func TestMarkdownHostile(t *testing.T) {
	const size = 1 << 18
	fill := func(head, unit string) string {
		return head + strings.Repeat(unit, (size-len(head)-len("\n\n#### Command\n"))/len(unit)) + "\n\n#### Command\n"
	}
	var staircase strings.Builder
	for i := 0; staircase.Len() < size/2; i++ {
		staircase.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	tables := fill("### t\n\n#### Parameters\n\n", "|a"+strings.Repeat("|a", 30)+"\n"+strings.Repeat("|-", 31)+"\n"+strings.Repeat("a\n", 200)+"\n")
	for name, src := range map[string]string{
		"quotations":         fill("", ">"),
		"lists":              fill("", "- "),
		"lists, blank lines": fill(strings.Repeat("- ", 1000)+"a\n", "\n"),
		"staircase":          fill(staircase.String(), "\n"),
		"wide table":         fill("### t\n\n#### Parameters\n\n"+strings.Repeat("|a", 50_000)+"\n"+strings.Repeat("|-", 50_000)+"\n", "a\n"),
		"many tables":        tables,
		"delimiter rows":     fill("a|b\n", "-|-\n"),
		"headings":           fill("", "#\n"),
		"level 3":            fill("", "### a\n"),
		"commands":           fill("", "### a\n#### Command\n"),
		"fences":             fill("", "```\n"),
		"one fence":          fill("### a\n#### Command\n```\n", "a\n"),
		"comments":           fill("### a\n#### Command\n```\n", "#\n"),
		"brackets":           fill("", "["),
		"references":         fill("", "[a]: b\n"),
		"setext":             fill("a", "\n="),
		"marks":              fill("", "#"),
		"sections":           fill("### t\n", "#### Parameters\n"),
		"braces":             oneTool("None.", "p "+strings.Repeat("{{ ", maxCommandBytes/3-10)),
		"shells":             oneTool("None.", strings.Repeat("sh ", maxCommandWords)),
		"dollars":            oneTool("None.", "p $"+strings.Repeat("a", maxCommandBytes-100)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, found := parseMarkdown(src, tools.Limits{})
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 125 {
			t.Errorf("%s: ParseMarkdown of %d bytes allocates %d MiB", name, len(src), used)
		} else {
			t.Logf("%s: %d MiB, %d problems", name, used, len(found))
		}
	}
}

func FuzzParseMarkdown(f *testing.F) {
	f.Add(oneTool(oneParameter, "p {{x}}"), "v")
	f.Add(oneTool(oneParameter, `p "a b" 'c' d\ e {{x:f g}} --`), "-v")
	f.Add(oneTool("| Type | Name |\n|-|-|\n| `int` | **x** |", "p --x={{x}} | y"), "")
	f.Add("---\n- > #### Command\n```", "")
	f.Fuzz(func(t *testing.T, src, value string) {
		set, found := parseMarkdown(src, tools.Limits{})
		if set != nil && diag.HasErrors(found) {
			t.Fatalf("ParseMarkdown(%q) = %v with %v", src, set, found)
		}
		lines := strings.Count(src, "\n") + 1
		for _, d := range found {
			if d.Code == "" || d.Message == "" || d.Line < 0 || d.Line > lines || d.Hint == "" {
				t.Errorf("ParseMarkdown(%q): %+v", src, d)
			}
		}
		m := newDocument("SKILL.md", []byte(src), Defaults{}, tools.Limits{})
		sections, _ := m.outline()
		for _, s := range sections {
			if len(s.all(partCommand)) > 0 && !MentionsCommand([]byte(src)) {
				t.Errorf("MentionsCommand(%q) = false", src)
			}
		}
		if set == nil {
			return
		}
		for _, tool := range set.Tools {
			if !json.Valid(tool.Definition()) || tool.Command == nil || tool.Line < 1 || tool.Line > lines {
				t.Errorf("ParseMarkdown(%q): %s in line %d", src, tool.Definition(), tool.Line)
			}
			list := append(append([]byte("["), tool.Definition()...), ']')
			again, found := toolsjson.Parse("tools.json", list, tools.Limits{})
			if again == nil || !bytes.Equal(again.Tools[0].Definition(), tool.Definition()) {
				t.Errorf("ParseToolsJSON(%s) = %v, %v, want the same tool", list, again, found)
			}
			oneValue(t, tool, value)
		}
	})
}

// oneValue gives value to each string parameter, and expects it unchanged in exactly the
// arguments that name the parameter.
func oneValue(t *testing.T, tool *tools.Tool, value string) {
	if !utf8.ValidString(value) || strings.Contains(value, "\x00") || strings.HasPrefix(value, "-") {
		return
	}
	args := make(map[string]string)
	for _, p := range tool.Input.Params {
		if p.Schema.StringAt("type") != "string" {
			return
		}
		args[p.Name] = value
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := tool.Expand(tooltest.MustCheck(t, tool, string(raw)), tools.Context{"cwd": "c", "file": "f", "url": "u", "selection": "s", "clipboard": "c"})
	if err != nil {
		return // a "-" in the template before an empty value
	}
	want := 0
	for _, a := range tool.Command.Args {
		want++
		if a.Alone() && a.Pieces[0].Form == template.Option {
			want++
		}
	}
	if len(inv.Args) > want {
		t.Errorf("Expand of %s with %q = %q, want at most %d arguments", tool.Definition(), value, inv.Args, want)
	}
	i := 0
	for _, a := range tool.Command.Args {
		switch {
		case a.Alone() && a.Pieces[0].Form == template.Option && !strings.HasPrefix(a.Pieces[0].Name, template.ContextPrefix):
			if inv.Args[i+1] != value {
				t.Errorf("Expand of %s with %q = %q", tool.Definition(), value, inv.Args)
			}
			i += 2
		case a.Alone() && !strings.HasPrefix(a.Pieces[0].Name, template.ContextPrefix):
			if inv.Args[i] != value {
				t.Errorf("Expand of %s with %q = %q", tool.Definition(), value, inv.Args)
			}
			i++
		default:
			return
		}
	}
}

func BenchmarkMarkdown(b *testing.B) {
	src := []byte(oneTool(oneParameter, "p {{x}} a"))
	text := []byte(strings.Repeat("## Heading\n\nSome words of text.\n\n- a list\n- of things\n\n```bash\ncode --here\n```\n\n### more\n\n", 100))
	b.Run("MentionsCommand/10KiB", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			MentionsCommand(text)
		}
	})
	b.Run("ParseMarkdown/one tool", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Parse("SKILL.md", src, Defaults{}, tools.Limits{})
		}
	})
	all := append(bytes.Clone(text), src...)
	b.Run("ParseMarkdown/one tool in 10KiB", func(b *testing.B) {
		b.SetBytes(int64(len(all)))
		b.ReportAllocs()
		for b.Loop() {
			Parse("SKILL.md", all, Defaults{}, tools.Limits{})
		}
	})
}
