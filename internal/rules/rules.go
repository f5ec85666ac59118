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

// The kinds of calls that start a program.
const (
	kindRun  = "run"  // a tool that a pack declares
	kindExec = "exec" // a command that the model wrote itself
)

// kinds are the kinds of calls that rules are about. Listing names never asks,
// and nobody is kept from detaching.
func kinds() []string { return []string{"open", "read", "enable", kindRun, kindExec, "attach"} }

// anyKind is how messages list them.
const anyKind = "open, read, enable, run, exec or attach"

// starts reports whether a call of this kind starts a program.
func starts(kind string) bool { return kind == kindRun || kind == kindExec }

// A Rule is one of the user's. An empty selector matches every call.
type Rule struct {
	Effect Effect
	Pack   string // pattern of pack ids, as path.Match has them; "*" alone matches slashes too
	// Kinds are open, read, enable, run, exec and attach. A denial or question
	// about run holds for exec too, since a command of the model's own can do
	// whatever a tool does; an allowance does not.
	Kinds []string
	// Tool is a pattern of declared names, or one of pack ids and one of names with
	// a slash between them; see [SplitTool]. A rule that has one is about runs of
	// declared tools only, but a denial or question about every tool ("*") holds
	// for exec too.
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
	Argv []string
	// Env, Cwd and Stdin say what a run may have besides its argv. An allowance
	// covers a run that has more than its argv only as far as they name it, unless
	// it has no argv and is about one tool of one pack, or about every run: that
	// is the tool, or are all tools, as declared. A denial or question that has
	// them is about such runs only.
	//
	// Env are patterns of the variables that the tool sets. An allowance has to
	// match all of them, a denial or question one.
	Env []string
	// Cwd is the folder that the program runs in: "workspace", "pack_root",
	// "project", an absolute path, or "*" for any. Without it, an allowance covers
	// only the folder of a call that names none, and with a path only the folder
	// whose path without links that is. A denial or question holds below the folder
	// too, by whatever path it is named; see [Call.Within].
	Cwd   string
	Stdin bool   // it has standard input
	Where string // where it is written, "config.yaml:12"

	// Review holds all changes of the runs that an allowance matches until a person
	// has seen them; see [Review].
	Review bool
}

// A Call is what rules look at.
type Call struct {
	Pack, Kind string
	Tool       string // declared name; empty unless Kind is run
	// Program are all names of the program, the one that was asked for first,
	// then the absolute path it was found at, then the path without links, then
	// others, if there are. Empty when the call starts none.
	Program []string
	Args    []string
	// Bare says that the program was asked for by a bare name and found on PATH.
	Bare bool
	// Env are the names of the variables that the tool itself sets, without those
	// that have the user's own value.
	Env []string
	// Dir is the absolute folder that the program runs in, and Usual says that it
	// is the one of a call that names none.
	Dir   string
	Usual bool
	// Within reports whether Dir is a folder or below it, by whatever path the
	// folder is named. It is asked for denials and questions, besides comparing
	// the paths, which is all when it is nil.
	Within func(folder string) bool
	// Folders are the absolute folders behind the words of a rule's Cwd, as far as
	// there are such folders.
	Folders map[string]string
	Stdin   bool // the program has standard input
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
	// Short is set when no rule matches, and an allowance would if it named more.
	Short *Short
}

// A Short is an allowance that falls short of a call.
type Short struct {
	Rule Rule
	Add  []string // what it would have to name, as the configuration has it: "env: [CC]"
}

// Decide returns what the strictest of all rules says about c. A rule that
// [Rule.Check] refuses allows nothing, and asks about or denies everything.
func Decide(all []Rule, c Call) Verdict { return decide(all, c, runtime.GOOS == "windows") }

// Review returns a rule that holds all changes of c until a person has seen them,
// and reports whether there is one. One rule is enough, whatever the others say,
// and also if a person or a grant allows the run. It holds for a run that the rule
// does not allow because the run has more than the rule names. A rule that
// [Rule.Check] refuses holds for every run.
func Review(all []Rule, c Call) (Rule, bool) {
	if !starts(c.Kind) {
		return Rule{}, false
	}
	s := &subject{Call: c, windows: runtime.GOOS == "windows"}
	for i := range all {
		if r := &all[i]; r.Review && (r.Check() != nil || r.others(s) == "" && r.argv(s)) {
			return *r, true
		}
	}
	return Rule{}, false
}

// Forbids reports whether a rule denies every call of a kind about a pack; with
// an empty kind, every call about it, of whatever kind.
func Forbids(all []Rule, kind, pack string) bool {
	return Decide(all, Call{Pack: pack, Kind: kind}).Effect == Deny
}

func decide(all []Rule, c Call, windows bool) Verdict {
	var v Verdict
	var short *Short
	s := &subject{Call: c, windows: windows}
	for i := range all {
		effect, near := all[i].about(s)
		if effect == Allow {
			if add := all[i].lacks(s); add != nil {
				if short == nil {
					short = &Short{all[i], add}
				}
				continue
			}
		}
		if effect > v.Effect || effect == v.Effect && v.Near && !near {
			v = Verdict{Effect: effect, Rule: all[i], Near: near}
		}
	}
	if v.Effect == 0 {
		v.Short = short
	}
	return v
}

// about returns what r alone says, for an allowance apart from what the run has
// besides its argv; see [Rule.lacks].
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
	case r.others(s) != "":
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
	selectPack  = "pack"
	selectKind  = "kind"
	selectTool  = "tool"
	selectArgv  = "argv"
	selectEnv   = "env"
	selectCwd   = "cwd"
	selectStdin = "stdin"
	// reviewKey is none of them, but what a rule says of the runs that they select.
	reviewKey = "review"
)

// others returns the first selector but argv that does not match, or "". What an
// allowance says of variables, folder and input is not looked at here.
func (r *Rule) others(s *subject) string {
	switch {
	case !name(r.Pack, s.Pack):
		return selectPack
	case !r.kind(s.Kind):
		return selectKind
	case !r.tool(&s.Call):
		return selectTool
	case r.Effect == Allow:
		return ""
	case len(r.Env) > 0 && !s.sets(r.Env):
		return selectEnv
	case r.Cwd != "" && !s.inside(r.Cwd):
		return selectCwd
	case r.Stdin && !s.Stdin:
		return selectStdin
	}
	return ""
}

// kind reports whether r is about calls of a kind.
func (r *Rule) kind(kind string) bool {
	if len(r.Kinds) == 0 {
		return starts(kind) || !r.aboutRuns()
	}
	return slices.Contains(r.Kinds, kind) || r.Effect != Allow && kind == kindExec && slices.Contains(r.Kinds, kindRun)
}

// aboutRuns reports whether r has a selector that only a run can match.
func (r *Rule) aboutRuns() bool {
	return r.Tool != "" || r.Argv != nil || r.Env != nil || r.Cwd != "" || r.Stdin
}

// name reports whether a pattern of ids or names matches one.
func name(pattern, s string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	ok, err := path.Match(pattern, s)
	return ok && err == nil
}
