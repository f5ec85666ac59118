// Package rules decides what the user's own rules say about a call: allow it
// unasked, ask, or deny it.
//
// Rules are about facts: which pack, what kind of call, which tool, and the
// arguments of the program one by one, never a joined string. Of all rules that
// match, the strictest counts, in whatever order they stand. The package reads
// no files and asks nobody; what a decision does is package gate's.
package rules

// An Effect is what a rule does to the calls it matches. The larger is the
// stricter.
type Effect int

const (
	Allow Effect = iota + 1 // happens unasked, unless something else asks
	Ask                     // asks each time, whatever was allowed before
	Deny                    // does not happen
)

// A Rule is one of the user's. An empty selector matches every call.
type Rule struct {
	Effect Effect
	Pack   string   // pattern of pack ids, as path.Match has them; "*" alone matches slashes too
	Kinds  []string // open, read, enable, run
	Tool   string   // pattern of declared names; "exec_best_effort" for commands that the model writes
	// Argv are patterns of the program and its arguments, one each; nil matches
	// calls of every kind, with or without a program. "**" is any number of them.
	Argv  []string
	Where string // where it is written, "config.yaml:12"
}

// A Call is what rules look at.
type Call struct {
	Pack, Kind, Tool string
	// Program are all names of the program, the one that was asked for first,
	// then the absolute path it was found at, then the path without links. Empty
	// when the call starts none.
	Program []string
	Args    []string
	// Bare says that the program was asked for by a bare name and found on PATH.
	Bare bool
}

// A Verdict is what rules say about a call.
type Verdict struct {
	Effect Effect // 0: no rule matches
	Rule   Rule   // the one that counts
	// Near says that the rule does not match, but that all words of its Argv are
	// there, in its order, with others between: an allow turns into an ask.
	Near bool
}
