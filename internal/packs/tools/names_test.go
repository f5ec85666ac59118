package tools

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// No format lets a tool be called what rules, the log or people take for
// something of this server's; see hostile-cases §9.4.
func TestReservedNames(t *testing.T) {
	formats := map[string]func(name string) (*Set, []diag.Diagnostic){
		"tools.json": func(name string) (*Set, []diag.Diagnostic) {
			return parseToolsJSON("tools.json", fmt.Appendf(nil, `{"tools": [{"name": %q, "description": "d", "command": ["p"]}]}`, name), Limits{})
		},
		"a bare list": func(name string) (*Set, []diag.Diagnostic) {
			return parseToolsJSON("tools.json", fmt.Appendf(nil, `[{"name": %q, "description": "d", "command": ["p"]}]`, name), Limits{})
		},
		"a function": func(name string) (*Set, []diag.Diagnostic) {
			return parseToolsJSON("tools.json", fmt.Appendf(nil, `[{"type": "function", "function": {"name": %q, "description": "d", "parameters": {"type": "object"}}}]`, name), Limits{})
		},
		"a tool pack": func(name string) (*Set, []diag.Diagnostic) {
			return new(Loader).ParseToolPack("x.tool.json", fmt.Appendf(nil, `{"name": %q, "description": "d", "command": {"program": "p"}}`, name))
		},
		"Markdown": func(name string) (*Set, []diag.Diagnostic) {
			text := "### " + name + "\n\nd\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\np\n```\n"
			return new(Loader).ParseMarkdown("SKILL.md", []byte(text), MarkdownDefaults{})
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
			if set != nil || !slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Code == CodeNameReserved && d.Severity == diag.Error }) {
				t.Errorf("%s: the name %+q gives %v and %v, want %s and no tools", format, name, set, found, CodeNameReserved)
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
	_, found := parseToolsJSON("tools.json", []byte(`[{"name": "x/exec_best_effort", "description": "d", "parameters": {"type": "object"}}]`), Limits{})
	if !slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Code == CodeNameReserved }) {
		t.Errorf("x/exec_best_effort gives %v, want %s", found, CodeNameReserved)
	}
}
