package rules

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

// SplitTool splits a pattern of tools into a pattern of pack ids and a pattern
// of declared names. The name is what follows the last slash:
// "acme/deploy/open_*" is the tools open_* of the pack acme/deploy. Without a
// slash, pack is empty, which means any pack.
func SplitTool(pattern string) (pack, name string) {
	i := strings.LastIndexByte(pattern, '/')
	if i < 0 {
		return "", pattern
	}
	return pattern[:i], pattern[i+1:]
}

// CheckTool returns an [*Error] if pattern cannot match declared tools, or if it
// may be meant for commands that the model writes itself, which are a kind of
// call and not a tool. of is the rule's pattern of packs, and instead is what to
// write for such commands.
func CheckTool(pattern, of, instead string) error {
	if e := toolProblem(pattern, of, func() string { return instead }); e != nil {
		return e
	}
	return nil
}

// execTool is the name that rules once used for commands that the model writes
// itself, before those were a kind of call.
const execTool = "exec_best_effort"

// basePrefix is the prefix of the names of this program's own tools, without
// separators.
const basePrefix = "capabilitypacks"

func toolProblem(pattern, of string, instead func() string) *Error {
	wrong := func(format string, args ...any) *Error { return &Error{selectTool, fmt.Sprintf(format, args...)} }
	pack, name := SplitTool(pattern)
	slashed := strings.Contains(pattern, "/")
	switch {
	case !isPattern(pattern), !isPattern(pack), !isPattern(name), slashed && (pack == "" || name == ""):
		return wrong("is %q; want a tool's name, a pack and a name such as acme/deploy/open_ticket, or a pattern of these", pattern)
	case strings.ContainsFunc(name, notInTools):
		return wrong("is %q; names of tools have only letters, digits, _ and -", pattern)
	}
	switch plain := squeezed(name); {
	case plain == squeezed(execTool), strings.HasPrefix(plain, basePrefix):
		return wrong("is %q; a command of the model's own is a kind of call, not a tool: write %s", pattern, instead())
	case !slashed && !everything(name) && matchesExec(name):
		tools := "tool: " + word(cmp.Or(of, "*")+"/"+pattern)
		if of != "" {
			tools += ", without pack,"
		}
		return wrong("is %q, which could mean commands of the model's own or declared tools: write %s for the commands, or %s for the tools",
			pattern, instead(), tools)
	}
	return nil
}

// notInTools reports whether r can occur neither in a tool's name nor in a
// pattern of names. Such characters include look-alikes of ASCII letters: a rule
// with one would never match.
func notInTools(r rune) bool {
	const special = `_-*?[]^\`
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(special, r)
}

// squeezed returns a name without letter case and separators, or a pattern also
// without backslashes.
func squeezed(name string) string {
	return strings.NewReplacer("_", "", "-", "", `\`, "").Replace(strings.ToLower(name))
}

// matchesExec reports whether a pattern matches execTool, in any letter case and
// with "-" for "_".
func matchesExec(pattern string) bool {
	for _, name := range []string{execTool, "exec-best-effort", "exec-best_effort", "exec_best-effort"} {
		for _, p := range []string{pattern, strings.ToLower(pattern), strings.ToUpper(pattern)} {
			for _, n := range []string{name, strings.ToUpper(name)} {
				if ok, err := path.Match(p, n); ok && err == nil {
					return true
				}
			}
		}
	}
	return false
}

// everything reports whether a pattern has only stars.
func everything(pattern string) bool { return pattern != "" && !fixed(pattern) }

// exact reports whether a pattern can match only one text.
func exact(pattern string) bool { return pattern != "" && !strings.ContainsAny(pattern, `*?[\`) }

// tool reports whether r's pattern of tools matches c.
func (r *Rule) tool(c *Call) bool {
	if r.Tool == "" {
		return true
	}
	pack, tool := SplitTool(r.Tool)
	switch {
	case !name(pack, c.Pack):
		return false
	case c.Kind == kindExec:
		return r.Effect != Allow && everything(tool)
	case name(tool, c.Tool):
		return true
	}
	// A pack chooses its own names, so a denial or question applies to every
	// spelling.
	return r.Effect != Allow && name(dashless(tool), dashless(c.Tool))
}

// NamesTool reports whether r says which tools it is about, rather than every one.
func (r Rule) NamesTool() bool {
	_, tool := SplitTool(r.Tool)
	return tool != "" && !everything(tool)
}

// asDeclared reports whether r covers its calls with everything they have: it is
// about one tool of one pack, or about every run, and has no argv.
func (r *Rule) asDeclared() bool {
	if r.Argv != nil || r.Env != nil || r.Cwd != "" || r.Stdin {
		return false
	}
	pack, tool := SplitTool(r.Tool)
	if pack == "" {
		pack = r.Pack
	}
	return !r.NamesTool() || exact(pack) && exact(tool)
}

// dashless returns a name or a pattern without letter case, and with "_" for "-"
// except in a character class, where "-" has another meaning.
func dashless(text string) string {
	class := false
	return strings.Map(func(r rune) rune {
		switch {
		case r == '[':
			class = true
		case r == ']':
			class = false
		case r == '-' && !class:
			return '_'
		}
		return r
	}, strings.ToLower(text))
}
