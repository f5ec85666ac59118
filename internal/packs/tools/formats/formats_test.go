package formats_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

// The name of a file determines its format.
func Example() {
	src := []byte(`{"name": "greet", "description": "Say hello.", "command": {"program": "echo", "args": ["hello"]}}`)
	fmt.Println(formats.Of("tools/greet.tool.json"), formats.Of("tools.json"), formats.Of("SKILL.md") == "")
	fmt.Println(formats.Names("greet.tool.json", src, tools.Limits{}))
	set, problems := formats.Parse(formats.ToolPack, "greet.tool.json", src, tools.Limits{})
	fmt.Println(set.Lookup("greet").Command.Program, problems)
	// Output:
	// tool-pack tools-json true
	// [greet]
	// echo []
}

func TestNamesOfFiles(t *testing.T) {
	for file, want := range map[string]formats.Format{
		"tools.json": formats.ToolsJSON, "a/b/tools.json": formats.ToolsJSON, "x.tool.json": formats.ToolPack, "a/x.y.tool.json": formats.ToolPack,
		".tool.json": formats.ToolPack, "Tools.json": "", "tools.json/x": "", "x.tools.json": "", "x.json": "", "tool.json": "", "SKILL.md": "", "": "",
	} {
		if got := formats.Of(file); got != want {
			t.Errorf("Of(%q) = %q, want %q", file, got, want)
		}
		if _, one := formats.CutToolPack(file); one != (want == formats.ToolPack) {
			t.Errorf("CutToolPack(%q) says %v", file, one)
		}
	}
	if name, ok := formats.CutToolPack(formats.ToolPackFile("x")); name != "x" || !ok {
		t.Errorf("CutToolPack(%q) = %q, %v, want x", formats.ToolPackFile("x"), name, ok)
	}
}

// Names finds the tools even in files that do not compile, and in no others.
func TestNames(t *testing.T) {
	for _, tt := range []struct {
		file, src string
		want      []string
	}{
		{"tools.json", `{"tools": [{"name": "a"}, {"name": 1}, {"name": "c d"}]}`, []string{"a", "c d"}},
		{"tools.json", `{"name": "one"}`, nil},
		{"tools.json", `{`, nil},
		{"x.tool.json", `{"name": "one", "command": 5}`, []string{"one"}},
		{"x.tool.json", `{"tools": [{"name": "a"}]}`, nil},
		{"x.tool.json", `[]`, nil},
		{"x.tool.json", `{`, nil},
	} {
		if got := formats.Names(tt.file, []byte(tt.src), tools.Limits{}); !slices.Equal(got, tt.want) {
			t.Errorf("Names(%s, %s) = %q, want %q", tt.file, tt.src, got, tt.want)
		}
	}
	if got := formats.Names("tools.json", []byte(`[{"name": "a", "command": ["p"]}, {"name": "b"}]`), tools.Limits{Count: 1}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("Names of more than are read = %q, want the first", got)
	}
}
