package rules

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// An Example is a call that somebody wrote beside a rule, to see that it means
// what they mean. What is empty in it is whatever the rule wants.
type Example struct {
	Pack, Kind, Tool string
	Argv             []string // the program as it would be asked for, and its arguments
}

// Check returns an [*Error] when there is no such call.
func (e Example) Check() error {
	switch {
	case e.Pack == "" && e.Kind == "" && e.Tool == "" && e.Argv == nil:
		return &Error{"", `says nothing; write an argv, such as [git, push], or a mapping of pack, kind, tool and argv`}
	case e.Kind != "" && !slices.Contains(kinds(), e.Kind):
		return &Error{selectKind, fmt.Sprintf("is %q; want open, read, enable, run or attach", e.Kind)}
	case e.Kind != "" && e.Kind != kindRun && (e.Tool != "" || e.Argv != nil):
		return &Error{selectKind, fmt.Sprintf("is %s; only a run has a tool and an argv", e.Kind)}
	case e.Argv != nil && (len(e.Argv) == 0 || e.Argv[0] == ""):
		return &Error{selectArgv, "has no program; write its name first"}
	}
	return nil
}

// call returns the call: a program that is named without a slash is on PATH,
// another is where the name says.
func (e Example) call() Call {
	c := Call{Pack: e.Pack, Kind: e.Kind, Tool: e.Tool}
	if e.Tool != "" || e.Argv != nil {
		c.Kind = kindRun
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

// Try reports whether r matches the call of an example, and why not: "argv is
// [git, status], not [git, push]". What is nearly matched does not match.
func (r Rule) Try(e Example) (matches bool, why string) { return r.try(e, runtime.GOOS == "windows") }

func (r *Rule) try(e Example, windows bool) (bool, string) {
	c := e.call()
	// What the example does not say is as the rule wants it.
	wanted := *r
	if c.Pack == "" {
		wanted.Pack = ""
	}
	if c.Tool == "" {
		wanted.Tool = ""
	}
	switch runs := r.Tool != "" || r.Argv != nil; {
	case runs && c.Kind == "":
		c.Kind = kindRun
	case runs:
		wanted.Kinds = []string{kindRun}
	case c.Kind == "":
		wanted.Kinds = nil
	}
	if e.Argv == nil {
		wanted.Argv = nil
	}
	not := func(selector, is, want string) (bool, string) { return false, selector + " is " + is + ", not " + want }
	switch wanted.others(&c) {
	case selectPack:
		return not(selectPack, word(c.Pack), word(r.Pack))
	case selectKind:
		return not(selectKind, c.Kind, strings.Join(wanted.Kinds, " or "))
	case selectTool:
		return not(selectTool, word(c.Tool), word(r.Tool))
	}
	s := &subject{Call: c, windows: windows}
	if wanted.argv(s) {
		return true, ""
	}
	_, why := not(selectArgv, words(e.Argv), words(r.Argv))
	switch {
	case c.Bare && isPath(r.Argv[0]):
		why += "; the rule names a path, so name it here too"
	case r.Effect != Allow && r.nearly(s):
		why += "; it only comes near, and is asked about"
	}
	return false, why
}

// String returns the rule as the configuration would have it, on one line, and
// safe to show: deny {kind: run, argv: [git, push, "**"]}.
func (r Rule) String() string {
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
	return r.Effect.String() + " {" + strings.Join(parts, ", ") + "}"
}

// words is a list as one would write it into the configuration.
func words(list []string) string {
	quoted := make([]string, len(list))
	for i, w := range list {
		quoted[i] = word(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// word is text as one would write it into the configuration, in quotes where it
// needs some, and in ASCII.
func word(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-"
	if text == "" || strings.Trim(text, plain) != "" {
		return strconv.QuoteToASCII(text)
	}
	return text
}
