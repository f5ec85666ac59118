package plan

import (
	"cmp"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// putFirst returns env with dirs in front of its PATH.
func putFirst(env, dirs []string) []string {
	if len(dirs) == 0 {
		return env
	}
	path := strings.Join(dirs, string(filepath.ListSeparator))
	if old := variable(env, "PATH"); old != "" {
		path += string(filepath.ListSeparator) + old
	}
	return sandbox.MergeEnv(env, []string{"PATH=" + path})
}

// skillEnv returns the variables that specs/skill-md-tools section 5.2 promises to
// tools.
func (p *Planner) skillEnv(pack *packs.Pack) []string {
	return []string{
		"GIBBERISH_SKILL_NAME=" + strings.ReplaceAll(pack.Name, "\x00", ""),
		"GIBBERISH_SKILL_DIR=" + pack.Dir,
		"GIBBERISH_MODE=" + cmp.Or(p.opts.Mode, "Global"),
	}
}

// variable returns the value of a variable; empty if it is not set.
func variable(environ []string, name string) string {
	value, _ := findVariable(environ, name)
	return value
}

func findVariable(environ []string, name string) (value string, ok bool) {
	for _, kv := range slices.Backward(environ) {
		if n, value, ok := strings.Cut(kv, "="); ok && sameVariable(n, name) {
			return value, true
		}
	}
	return "", false
}

// sameVariable compares names of variables as the system does.
func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
