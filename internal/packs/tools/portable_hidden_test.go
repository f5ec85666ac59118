package tools_test

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
)

// TP-02, HU-01: what a call is not held against, and nobody can see, does not
// reach the model.
func TestPortableHidesNothing(t *testing.T) {
	const tag, bidi = "\U000e0041\U000e0042", "\u202e"
	src := `{"tools": [{"name": "t", "description": "Test.", "command": {"program": "echo"}, "inputSchema": {"type": "object", "properties": {
		"a": {"type": "string", "default": "x` + tag + `", "examples": ["` + bidi + `y"], "x-note": "` + tag + `", "x-` + tag + `": 1},
		"c": {"enum": ["plain", "odd` + tag + `"]},
		"b": {"type": "string", "default": "kept", "examples": ["kept too"], "x-note": "and this"}}}}]}`
	set, problems := toolsjson.Parse("tools.json", []byte(src), tools.Limits{})
	if set == nil {
		t.Fatalf("ParseToolsJSON: %v", problems)
	}
	got := string(set.Tools[0].PortableSchema())
	if strings.Contains(got, bidi) || strings.Count(got, tag) != 1 || strings.Contains(got, `"x`+tag) {
		t.Errorf("PortableSchema() = %+q, want nothing hidden but the value of the enum", got)
	}
	for _, want := range []string{`"kept"`, `"kept too"`, `"and this"`, "odd" + tag} {
		if !strings.Contains(got, want) {
			t.Errorf("PortableSchema() = %+q, want %+q in it", got, want)
		}
	}
}
