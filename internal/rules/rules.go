// Package rules decides what the user's rules say about a call: allow it without
// asking, ask, or deny it.
//
// Rules are about facts: which pack, what kind of call, which tool, and the
// arguments of the program one by one, never a joined string. Of all rules that
// match, the strictest counts, whatever their order. The package reads no files
// and asks nobody; package gate acts on the decision.
//
// A rule is not a boundary. It sees what a program is called with, not what the
// program does: a shell, an interpreter or a copy of a program under another
// name can do the same with other arguments. The sandbox is the boundary.
package rules

import (
	"path"
	"runtime"
	"slices"
)

// An Effect is what a rule does to the calls that it matches. A larger effect is
// stricter.
type Effect int

const (
	Allow Effect = iota + 1 // allowed without asking, unless something else asks
	Ask                     // ask each time, whatever was allowed before
	Deny                    // refused
)

// String returns the effect as written in the configuration.
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

// kinds returns the kinds of calls that rules are about. Listing names never
// asks, and detaching is always possible.
func kinds() []string { return []string{"open", "read", "enable", kindRun, kindExec, "attach"} }

// anyKind is the list of kinds in messages.
const anyKind = "open, read, enable, run, exec or attach"

// starts reports whether a call of this kind starts a program.
func starts(kind string) bool { return kind == kindRun || kind == kindExec }

// A Rule is one of the user's rules. An empty selector matches every call.
type Rule struct {
	Effect Effect
	Pack   string // pattern of pack ids, as in path.Match; "*" alone matches slashes too
	// Kinds are open, read, enable, run, exec and attach. A denial or question
	// about run also applies to exec, since a command that the model writes can
	// do whatever a tool does; an allowance does not.
	Kinds []string
	// Tool is a pattern of declared names, or a pattern of pack ids and one of
	// names with a slash between them; see [SplitTool]. A rule with a Tool is
	// only about runs of declared tools, but a denial or question about every
	// tool ("*") also applies to exec.
	Tool string
	// Argv are patterns of the program and its arguments, one each; nil matches
	// calls of every kind, with or without a program. In each, "*" is any text,
	// slashes included, and nothing else is special; "**" alone is any number of
	// elements, including none. A rule with an Argv is only about runs.
	//
	// The first is the program. Without a slash it is compared with names; with
	// a slash, with paths. A denial or question applies to all names of a
	// program, in any letter case. An allowance applies only to the name on PATH
	// that was asked for, or to the path where the program was found.
	Argv []string
	// Env, Cwd and Stdin say what a run may have besides its argv. If a run has
	// more than its argv, an allowance covers it only if these selectors name
	// that. The exception is an allowance without an argv that is about one tool
	// of one pack, or about every run: it covers the tool, or all tools, as
	// declared. A denial or question with these selectors is only about such
	// runs.
	//
	// Env are patterns of the variables that the tool sets. An allowance must
	// match all of them, a denial or question only one.
	Env []string
	// Cwd is the folder that the program runs in: "workspace", "pack_root",
	// "project", an absolute path, or "*" for any. Without Cwd, an allowance
	// covers only the folder of a call that names none. With a path, it covers
	// only the folder whose path without links is that path. A denial or
	// question also applies below the folder, whatever path names it; see
	// [Call.Within].
	Cwd   string
	Stdin bool   // the run has standard input
	Where string // where the rule is written, "config.yaml:12"

	// Review holds all changes of the runs that an allowance matches until a person
	// has seen them; see [Review].
	Review bool
}

// A Call is a call as rules see it.
type Call struct {
	Pack, Kind string
	Tool       string // declared name; empty unless Kind is run
	// Program has all names of the program: the one that was asked for, then the
	// absolute path where it was found, then the path without links, then any
	// others. It is empty if the call starts no program.
	Program []string
	Args    []string
	// Bare means that the program was asked for by a bare name and found on
	// PATH.
	Bare bool
	// Env has the names of the variables that the tool itself sets, without
	// those that keep the user's own value.
	Env []string
	// Dir is the absolute folder that the program runs in. Usual means that it
	// is the folder of a call that names none.
	Dir   string
	Usual bool
	// Within reports whether Dir is a folder or below it, whatever path names
	// the folder. Denials and questions use it in addition to comparing the
	// paths; if it is nil, they only compare the paths.
	Within func(folder string) bool
	// Folders maps the words of a rule's Cwd to absolute folders, where such
	// folders exist.
	Folders map[string]string
	Stdin   bool // the program has standard input
}

// A Verdict is what the rules say about a call.
type Verdict struct {
	Effect Effect // 0: no rule matches
	Rule   Rule   // the rule that counts
	// Near means that the rule, a denial or a question, does not match, but that
	// all words of its Argv occur in its order with others between them. Effect
	// is then Ask, so an allowance becomes a question. Options may be in any
	// order, joined or shortened.
	Near bool
	// Short is set if no rule matches, but an allowance would if it named more.
	Short *Short
}

// A Short is an allowance that falls short of a call.
type Short struct {
	Rule Rule
	Add  []string // what it would have to name, as written in the configuration: "env: [CC]"
}

// Decide returns what the strictest of all rules says about c. A rule that
// [Rule.Check] refuses never allows; if it is a question or a denial, it matches
// every call.
func Decide(all []Rule, c Call) Verdict { return decide(all, c, runtime.GOOS == "windows") }

// Review returns a rule that holds all changes of c until a person has seen
// them, and reports whether there is one. One rule is enough, whatever the
// others say, even if a person or a grant allows the run. It also applies to a
// run that the rule does not allow only because the run has more than the rule
// names. A rule that [Rule.Check] refuses applies to every run.
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

// Forbids reports whether a rule denies every call of a kind about a pack. An
// empty kind means every call about the pack, of any kind.
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

// about returns what r alone says about s. For an allowance it ignores what the
// run has besides its argv; see [Rule.lacks].
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

// The selectors of a rule, by their names in the configuration.
const (
	selectPack  = "pack"
	selectKind  = "kind"
	selectTool  = "tool"
	selectArgv  = "argv"
	selectEnv   = "env"
	selectCwd   = "cwd"
	selectStdin = "stdin"
	// reviewKey is not a selector, but what a rule says about the runs that they
	// select.
	reviewKey = "review"
)

// others returns the first selector other than argv that does not match, or "".
// It ignores an allowance's variables, folder and input.
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

// Matches reports whether a pattern of ids or names matches s, as in the selectors of a
// rule.
func Matches(pattern, s string) bool { return name(pattern, s) }

// name is [Matches].
func name(pattern, s string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	ok, err := path.Match(pattern, s)
	return ok && err == nil
}
