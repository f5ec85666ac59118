package config

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
)

// maxPatterns bounds each list of protected names: every name that a run changed
// is compared with all of them.
const maxPatterns = 1000

// protect reads the names to protect in addition to the built-in list.
func (f *fileReader) protect(v *yaml.Node, path string) {
	f.patterns(v, path, &f.cfg.Sandbox.Protect, func(s string) string {
		if _, err := protect.New([]string{s}, nil); err != nil || strings.HasPrefix(s, "/") || strings.TrimSpace(s) != s {
			return `want a name or a path without its beginning, in which "*" is any text of one name, such as deploy/** or "*.secret"`
		}
		return ""
	})
}

// unprotect reads the names in the built-in list to leave unprotected. What git
// takes for its own folder is not in the list, and stays protected.
func (f *fileReader) unprotect(v *yaml.Node, path string) {
	f.patterns(v, path, &f.cfg.Sandbox.Unprotect, func(s string) string {
		if _, err := protect.New(nil, []string{s}); err != nil {
			return "want a name of the list, spelled as the reason of a held change begins, such as CODEOWNERS or .vscode/**; what is .git cannot be taken out"
		}
		return ""
	})
}

func (f *fileReader) patterns(v *yaml.Node, path string, to *[]string, wrong func(string) string) {
	if node.IsNull(v) {
		return
	}
	f.Words(v, path, to, func(s string) (string, string) {
		if len(*to) == maxPatterns {
			return "", "is one too many: at most 1000 names are compared"
		}
		return s, wrong(s)
	})
}
