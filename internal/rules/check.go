package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// The bounds of an argv, so that matching a call takes negligible time.
const (
	maxElements = 64
	maxPattern  = 4 << 10 // 4 KiB
)

// An Error says what is wrong with a rule or an example.
type Error struct {
	At      string // "pack", "kind", "tool", "argv", "argv[2]", "env", "cwd", "stdin" or "review"; empty: the whole
	Problem string // what is wrong and what to write, without naming At
}

func (e *Error) Error() string {
	if e.At == "" {
		return e.Problem
	}
	return e.At + ": " + e.Problem
}

// Check returns an [*Error] if r cannot mean what its author intended.
func (r Rule) Check() error {
	if e := r.problem(); e != nil {
		return e
	}
	return nil
}

func (r *Rule) problem() *Error {
	wrong := func(at, format string, args ...any) *Error { return &Error{at, fmt.Sprintf(format, args...)} }
	if r.Effect < Allow || r.Effect > Deny {
		return wrong("", "has no effect; want deny, ask or allow")
	}
	if !isPattern(r.Pack) {
		return wrong(selectPack, "is %q; want a pack's id or a pattern of ids", r.Pack)
	}
	for i, k := range r.Kinds {
		switch {
		case !slices.Contains(kinds(), k):
			return wrong(selectKind, "is %q; want %s", k, anyKind)
		case slices.Contains(r.Kinds[:i], k):
			return wrong(selectKind, "name %s once", k)
		}
	}
	if r.Tool != "" {
		if e := toolProblem(r.Tool, r.Pack, r.forExec); e != nil {
			return e
		}
		if pack, _ := SplitTool(r.Tool); pack != "" && r.Pack != "" {
			return wrong(selectTool, "is %q, which names the pack too; remove pack, or the part of tool before the last slash", r.Tool)
		}
		if slices.Contains(r.Kinds, kindExec) {
			return wrong(selectKind, "is %s; a command of the model's own is not a declared tool: remove tool, or make two rules", strings.Join(r.Kinds, " and "))
		}
	}
	if r.aboutRuns() && slices.ContainsFunc(r.Kinds, func(k string) bool { return !starts(k) }) {
		return wrong(selectKind, "is %s; a rule with tool, argv, env, cwd or stdin is about runs: write run or exec, or make two rules", strings.Join(r.Kinds, " and "))
	}
	if e := r.settingProblem(); e != nil {
		return e
	}
	if r.Effect == Allow && len(r.Kinds) == 0 && r.Tool == "" && r.Argv == nil {
		return wrong("", "allows every kind of call; say which: kind: %s, or a list of them", anyKind)
	}
	if e := r.reviewProblem(); e != nil {
		return e
	}
	return r.argvProblem()
}

func (r *Rule) reviewProblem() *Error {
	switch {
	case !r.Review:
		return nil
	case r.Effect != Allow:
		return &Error{reviewKey, "is for rules that allow; to see all changes of runs that you are asked about, write review: all in sandbox.grants"}
	case !slices.ContainsFunc(r.runs(), starts):
		return &Error{reviewKey, fmt.Sprintf("is about what runs change, and the rule is about %s; add run or exec to kind, or remove it", strings.Join(r.Kinds, " and "))}
	}
	return nil
}

// forExec returns how to write the rule for commands that the model writes
// itself.
func (r *Rule) forExec() string {
	exec := Rule{Effect: r.Effect, Kinds: []string{kindExec}, Argv: r.Argv, Cwd: r.Cwd}
	exec.Pack, _ = SplitTool(r.Tool)
	if exec.Pack == "" {
		exec.Pack = r.Pack
	}
	return r.Effect.String() + ": {" + exec.selectors() + "}"
}

// isPattern reports whether text is empty or a valid path.Match pattern.
func isPattern(text string) bool {
	_, err := path.Match(text, "")
	return err == nil && (text == "" || strings.TrimSpace(text) != "") && !strings.ContainsRune(text, 0)
}

func (r *Rule) argvProblem() *Error {
	if r.Argv != nil && len(r.Argv) == 0 {
		return &Error{selectArgv, `is empty; write the program and its arguments, such as [git, push, "**"]`}
	}
	if len(r.Argv) > maxElements {
		return &Error{selectArgv, fmt.Sprintf("has %d elements; at most %d are compared", len(r.Argv), maxElements)}
	}
	for i, p := range r.Argv {
		problem := ""
		switch {
		case len(p) > maxPattern:
			problem = fmt.Sprintf("is longer than %d bytes", maxPattern)
		case strings.ContainsRune(p, 0):
			problem = "an argument has no zero bytes"
		case len(p) > len(anyNumber) && !fixed(p):
			problem = `write "*" for any one element, or "**" for any number of them`
		case i == 0:
			problem = r.programProblem(p)
		}
		if problem != "" {
			return &Error{fmt.Sprintf("%s[%d]", selectArgv, i), problem}
		}
	}
	return nil
}

func (r *Rule) programProblem(p string) string {
	if strings.TrimSpace(p) == "" {
		return "is empty; write the program's name"
	}
	slashed := strings.ReplaceAll(p, `\`, "/")
	if !isPath(p) {
		if strings.ContainsAny(p, " \t\r\n") {
			return `has a blank; write each argument as an element of its own, such as [git, push, "**"]`
		}
		return ""
	}
	rest, inPack := strings.CutPrefix(slashed, "./")
	drive := len(slashed) > 2 && slashed[1] == ':' && slashed[2] == '/'
	switch {
	case inPack, drive, strings.HasPrefix(slashed, "/"):
	case strings.HasPrefix(slashed, "*") && r.Effect != Allow:
	case r.Effect == Allow:
		return "want a name without a slash, an absolute path, or one that begins with ./ for a program of the pack"
	default:
		return "want a name without a slash, an absolute path, one that begins with */ for any folder, or with ./ for a program of the pack"
	}
	segments := strings.Split(strings.TrimPrefix(rest, "/"), "/")
	if strings.HasPrefix(slashed, "//") && len(segments) > 1 {
		segments = segments[1:] // skip the name of a Windows share
	}
	for _, s := range segments {
		if s == "" || s == "." || s == ".." {
			return `want a path without "..", "." and double slashes: programs' paths are compared without them`
		}
	}
	return ""
}
