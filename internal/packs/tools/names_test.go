package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/markdown"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolpack"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
)

// No format lets a tool be called what rules, the log or people take for
// something of this server's; see hostile-cases §9.4.
func TestReservedNames(t *testing.T) {
	formats := map[string]func(name string) (*tools.Set, []diag.Diagnostic){
		"tools.json": func(name string) (*tools.Set, []diag.Diagnostic) {
			return toolsjson.Parse("tools.json", fmt.Appendf(nil, `{"tools": [{"name": %q, "description": "d", "command": ["p"]}]}`, name), tools.Limits{})
		},
		"a bare list": func(name string) (*tools.Set, []diag.Diagnostic) {
			return toolsjson.Parse("tools.json", fmt.Appendf(nil, `[{"name": %q, "description": "d", "command": ["p"]}]`, name), tools.Limits{})
		},
		"a function": func(name string) (*tools.Set, []diag.Diagnostic) {
			return toolsjson.Parse("tools.json", fmt.Appendf(nil, `[{"type": "function", "function": {"name": %q, "description": "d", "parameters": {"type": "object"}}}]`, name), tools.Limits{})
		},
		"a tool pack": func(name string) (*tools.Set, []diag.Diagnostic) {
			return toolpack.Parse("x.tool.json", fmt.Appendf(nil, `{"name": %q, "description": "d", "command": {"program": "p"}}`, name), tools.Limits{})
		},
		"Markdown": func(name string) (*tools.Set, []diag.Diagnostic) {
			text := "### " + name + "\n\nd\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\np\n```\n"
			return markdown.Parse("SKILL.md", []byte(text), markdown.Defaults{}, tools.Limits{})
		},
	}
	names := []string{
		"exec_best_effort", "Exec_Best_Effort", "exec-best-effort", "exec-best_effort", "exec__best_effort", "_exec_best_effort", "execBestEffort",
		"exec_best_eff0rt", "exec.best.effort", "ｅｘｅｃ_best_effort", "exec_best_e\u200bffort",
		"capability_packs_list", "capability-packs-exec-best-effort", "capability_packs.exec_best_effort", "CAPABILITY_PACKS_x", "capability__packs__x",
		"capabilitypacks_list", "capab1l1ty_packs_list", "mcp__github__push",
	}
	for format, parse := range formats {
		for _, name := range names {
			set, found := parse(name)
			if format == "Markdown" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				// There, names have fewer characters, and others are no names of tools.
				if set != nil && len(set.Tools) > 0 {
					t.Errorf("%s: the name %+q declares a tool", format, name)
				}
				continue
			}
			if set != nil || !slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Code == tools.CodeNameReserved && d.Severity == diag.Error }) {
				t.Errorf("%s: the name %+q gives %v and %v, want %s and no tools", format, name, set, found, tools.CodeNameReserved)
			}
		}
		// Names that real packs have, and that nothing takes for another.
		for _, name := range []string{"exec", "read_file", "list", "call_tool", "execute_plan", "best_effort", "capability_list", "mcp_list"} {
			if set, found := parse(name); set == nil || len(set.Tools) != 1 || set.Tools[0].Name != name {
				t.Errorf("%s: the name %q gives %v and %v, want a tool", format, name, set, found)
			}
		}
	}
	// Of what is only listed, a name may have a slash.
	_, found := toolsjson.Parse("tools.json", []byte(`[{"name": "x/exec_best_effort", "description": "d", "parameters": {"type": "object"}}]`), tools.Limits{})
	if !slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Code == tools.CodeNameReserved }) {
		t.Errorf("x/exec_best_effort gives %v, want %s", found, tools.CodeNameReserved)
	}
}
