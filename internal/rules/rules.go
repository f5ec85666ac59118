// Package rules decides what the user's own rules say about a call: allow it
// unasked, ask, or deny it.
//
// Rules are about facts: which pack, what kind of call, which tool, and the
// arguments of the program one by one, never a joined string. Of all rules that
// match, the strictest counts, in whatever order they stand. The package reads
// no files and asks nobody; what a decision does is package gate's.
//
// A rule is not a boundary. It sees what a program is called with, not what the
// program does: a shell, an interpreter or a copy of a program under another
// name does the same with other arguments. The sandbox is the boundary.
package rules

import (
	"path"
	"runtime"
	"slices"
)

// An Effect is what a rule does to the calls it matches. The larger is the
// stricter.
type Effect int

const (
	Allow Effect = iota + 1 // happens unasked, unless something else asks
	Ask                     // asks each time, whatever was allowed before
	Deny                    // does not happen
)

// String returns the effect as the configuration has it.
func (e Effect) String() string {
	switch e {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	case Deny:
		return "deny"
	}
	return "no rule"
}

// kindRun is the kind of call that starts a program.
const kindRun = "run"

// kinds are the kinds of calls that rules are about. Listing names never asks,
// and nobody is kept from detaching.
func kinds() []string { return []string{"open", "read", "enable", kindRun, "attach"} }

// A Rule is one of the user's. An empty selector matches every call.
type Rule struct {
	Effect Effect
	Pack   string   // pattern of pack ids, as path.Match has them; "*" alone matches slashes too
	Kinds  []string // open, read, enable, run, attach
	// Tool is a pattern of declared names, "exec_best_effort" for commands that the
	// model writes. A rule that has one is about runs only.
	Tool string
	// Argv are patterns of the program and its arguments, one each; nil matches
	// calls of every kind, with or without a program. In each, "*" is any text,
	// slashes included, and nothing else is special; "**" alone is any number of
	// elements, also none. A rule that has one is about runs only.
	//
	// The first is the program. Without a slash it is compared with names, with
	// one as a path. A denial or question holds for all names of a program, in
	// whatever letter case, an allowance only for the name on PATH that was asked
	// for, or for the path where it was found.
	Argv  []string
	Where string // where it is written, "config.yaml:12"
}

// A Call is what rules look at.
type Call struct {
	Pack, Kind, Tool string
	// Program are all names of the program, the one that was asked for first,
	// then the absolute path it was found at, then the path without links, then
	// others, if there are. Empty when the call starts none.
	Program []string
	Args    []string
	// Bare says that the program was asked for by a bare name and found on PATH.
	Bare bool
}

// A Verdict is what rules say about a call.
type Verdict struct {
	Effect Effect // 0: no rule matches
	Rule   Rule   // the one that counts
	// Near says that the rule, a denial or a question, does not match, but that
	// all words of its Argv are there, in its order, with others between: an allow
	// turns into an ask. Effect is Ask then. Options may stand in any order, and
	// be joined or shortened.
	Near bool
}

// Decide returns what the strictest of all rules says about c. A rule that
// [Rule.Check] refuses allows nothing, and asks about or denies everything.
func Decide(all []Rule, c Call) Verdict { return decide(all, c, runtime.GOOS == "windows") }

// Forbids reports whether a rule denies every call of a kind about a pack; with
// an empty kind, every call about it, of whatever kind.
func Forbids(all []Rule, kind, pack string) bool {
	return Decide(all, Call{Pack: pack, Kind: kind}).Effect == Deny
}

func decide(all []Rule, c Call, windows bool) Verdict {
	var v Verdict
	s := &subject{Call: c, windows: windows}
	for i := range all {
		effect, near := all[i].about(s)
		if effect > v.Effect || effect == v.Effect && v.Near && !near {
			v = Verdict{effect, all[i], near}
		}
	}
	return v
}

// about returns what r alone says.
func (r *Rule) about(s *subject) (e Effect, near bool) {
	switch {
	case r.Check() != nil:
		switch r.Effect {
		case Allow:
			return 0, false
		case Ask:
			return Ask, false
		}
		return Deny, false
	case r.others(&s.Call) != "":
		return 0, false
	case r.argv(s):
		return r.Effect, false
	case r.Effect != Allow && r.nearly(s):
		return Ask, true
	}
	return 0, false
}

// The selectors of a rule, as the configuration calls them.
const (
	selectPack = "pack"
	selectKind = "kind"
	selectTool = "tool"
	selectArgv = "argv"
)

// others returns the first selector but argv that does not match, or "".
func (r *Rule) others(c *Call) string {
	switch {
	case !name(r.Pack, c.Pack):
		return selectPack
	case len(r.Kinds) > 0 && !slices.Contains(r.Kinds, c.Kind):
		return selectKind
	case (r.Tool != "" || r.Argv != nil) && c.Kind != kindRun:
		return selectKind
	case !name(r.Tool, c.Tool):
		return selectTool
	}
	return ""
}

// name reports whether a pattern of ids or names matches one.
func name(pattern, s string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	ok, err := path.Match(pattern, s)
	return ok && err == nil
}
