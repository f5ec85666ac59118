package rules

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// An Example is a call that the author wrote beside a rule, to check that the
// rule means what they intend. Empty fields take whatever value the rule wants.
type Example struct {
	Pack, Kind, Tool string
	Argv             []string // the program, as a call would name it, and its arguments
	Env              []string // the variables that the tool sets
	Cwd              string   // the folder, as a rule has it
	Stdin            bool
}

// Check returns an [*Error] if no such call can exist.
func (e Example) Check() error {
	switch {
	case !e.starts() && e.Pack == "" && e.Kind == "":
		return &Error{"", `says nothing; write an argv, such as [git, push], or a mapping of pack, kind, tool, argv, env, cwd and stdin`}
	case e.Kind != "" && !slices.Contains(kinds(), e.Kind):
		return &Error{selectKind, fmt.Sprintf("is %q; want %s", e.Kind, anyKind)}
	case e.Kind != "" && !starts(e.Kind) && e.starts():
		return &Error{selectKind, fmt.Sprintf("is %s; only run and exec have an argv, and run a tool, variables and input", e.Kind)}
	case e.Kind == kindExec && e.declared():
		return &Error{selectKind, "is exec; a command of the model's own is not a declared tool, sets no variables and has no input"}
	case e.Argv != nil && (len(e.Argv) == 0 || e.Argv[0] == ""):
		return &Error{selectArgv, "has no program; write its name first"}
	}
	return nil
}

// starts reports whether only a call that starts a program can be like e.
func (e *Example) starts() bool { return e.declared() || e.Argv != nil || e.Cwd != "" }

// declared reports whether only a run of a declared tool can be like e.
func (e *Example) declared() bool { return e.Tool != "" || e.Env != nil || e.Stdin }

// call returns the call. A program named without a slash is on PATH; any other
// is at that path.
func (e *Example) call() Call {
	c := Call{Pack: e.Pack, Kind: e.Kind, Tool: e.Tool, Env: e.Env, Stdin: e.Stdin, Usual: e.Cwd == ""}
	if e.Cwd != "" {
		// Nowhere else, so that no folder is mistaken for another.
		c.Dir = e.Cwd
		c.Folders = map[string]string{e.Cwd: e.Cwd}
	}
	if len(e.Argv) > 0 {
		c.Bare = !isPath(e.Argv[0])
		c.Program, c.Args = e.Argv[:1:1], e.Argv[1:]
		if !c.Bare && !strings.HasPrefix(e.Argv[0], "./") {
			c.Program = append(c.Program, e.Argv[0])
		}
	}
	return c
}

// runs returns the kinds of calls that a rule about runs covers.
func (r *Rule) runs() []string {
	switch {
	case len(r.Kinds) > 0:
		return r.Kinds
	case r.NamesTool() || r.Tool != "" && r.Effect == Allow:
		return []string{kindRun}
	}
	return []string{kindRun, kindExec}
}

// Try reports whether r matches the call of an example and, if not, why: "argv
// is [git, status], not [git, push]". A near match does not count.
func (r Rule) Try(e Example) (matches bool, why string) { return r.try(e, runtime.GOOS == "windows") }

func (r *Rule) try(e Example, windows bool) (bool, string) {
	c := e.call()
	// What the example leaves out is as the rule wants it.
	wanted := *r
	if c.Pack == "" {
		wanted.Pack = ""
	}
	switch pack, tool := SplitTool(r.Tool); {
	case r.Tool == "":
	case c.Pack == "" && c.Tool == "":
		wanted.Tool = ""
	case c.Tool == "":
		wanted.Tool, wanted.Pack = "", pack
		if pack == "" {
			wanted.Pack = r.Pack
		}
	case c.Pack == "":
		wanted.Tool = tool
	}
	if c.Kind == "" && (e.starts() || r.aboutRuns()) {
		c.Kind = kindRun
		if all := r.runs(); !e.declared() && !slices.Contains(all, kindRun) && slices.Contains(all, kindExec) {
			c.Kind = kindExec
		}
	}
	switch {
	case r.aboutRuns():
		wanted.Kinds = r.runs()
	case c.Kind == "":
		wanted.Kinds = nil
	}
	if e.Argv == nil {
		wanted.Argv = nil
	}
	if r.Effect != Allow {
		if e.Env == nil {
			wanted.Env = nil
		}
		if e.Cwd == "" {
			wanted.Cwd = ""
		}
		if !e.Stdin {
			wanted.Stdin = false
		}
	} else if e.Cwd == "" && r.Cwd != "" {
		wanted.Cwd = cwdAny
	}
	not := func(selector, is, want string) (bool, string) { return false, selector + " is " + is + ", not " + want }
	s := &subject{Call: c, windows: windows}
	switch wanted.others(s) {
	case selectPack:
		return not(selectPack, word(c.Pack), word(wanted.Pack))
	case selectKind:
		return not(selectKind, c.Kind, strings.Join(wanted.Kinds, " or "))
	case selectTool:
		if c.Kind == kindExec {
			return not(selectKind, c.Kind, kindRun)
		}
		is := c.Tool
		if strings.Contains(wanted.Tool, "/") {
			is = c.Pack + "/" + c.Tool
		}
		return not(selectTool, word(is), word(wanted.Tool))
	case selectEnv:
		return not(selectEnv, words(e.Env), words(r.Env))
	case selectCwd:
		return not(selectCwd, word(e.Cwd), word(r.Cwd))
	}
	if !wanted.argv(s) {
		_, why := not(selectArgv, words(e.Argv), words(r.Argv))
		switch {
		case c.Bare && isPath(r.Argv[0]):
			why += "; the rule names a path, so name it here too"
		case r.Effect != Allow && r.nearly(s):
			why += "; it only comes near, and is asked about"
		}
		return false, why
	}
	if r.Effect == Allow && !r.asDeclared() {
		if add := wanted.lacks(s); add != nil {
			return false, "the call has more than the rule names; to allow it, add " + strings.Join(add, ", ")
		}
	}
	return true, ""
}

// String returns the rule as written in the configuration, on one line and safe
// to show: deny {kind: run, argv: [git, push, "**"]}.
func (r Rule) String() string {
	text := r.Effect.String() + " {" + r.selectors() + "}"
	if r.Review {
		text += ", " + reviewKey + ": all"
	}
	return text
}

// selectors returns what the configuration has between the braces.
func (r *Rule) selectors() string {
	var parts []string
	add := func(key, value string) { parts = append(parts, key+": "+value) }
	if r.Pack != "" {
		add(selectPack, word(r.Pack))
	}
	switch len(r.Kinds) {
	case 0:
	case 1:
		add(selectKind, word(r.Kinds[0]))
	default:
		add(selectKind, words(r.Kinds))
	}
	if r.Tool != "" {
		add(selectTool, word(r.Tool))
	}
	if r.Argv != nil {
		add(selectArgv, words(r.Argv))
	}
	if r.Env != nil {
		add(selectEnv, words(r.Env))
	}
	if r.Cwd != "" {
		add(selectCwd, word(r.Cwd))
	}
	if r.Stdin {
		add(selectStdin, "true")
	}
	return strings.Join(parts, ", ")
}

// words formats a list as in the configuration.
func words(list []string) string {
	quoted := make([]string, len(list))
	for i, w := range list {
		quoted[i] = word(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// word formats text as in the configuration, quoted where needed, and in ASCII.
func word(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-"
	if text == "" || strings.Trim(text, plain) != "" {
		return strconv.QuoteToASCII(text)
	}
	return text
}
