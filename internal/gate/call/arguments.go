package call

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Arguments are the arguments of a call in one canonical form, which is written once.
// They never change. A nil *Arguments is a call without any.
type Arguments struct {
	canonical strictjson.Compact // zero: see problem
	unread    string             // what cannot be read, as it came
	problem   string             // why; empty: it was read
	digest    string
	members   []Member
	object    bool
}

// A Member is one member of the object that arguments are.
type Member = strictjson.Written

// NewArguments returns the arguments that were read as this tree; nil for nil.
func NewArguments(tree *strictjson.Node) *Arguments {
	if tree == nil {
		return nil
	}
	a := &Arguments{object: tree.Kind == strictjson.Object}
	if a.object {
		a.canonical, a.members = strictjson.WriteObject(tree)
	} else {
		a.canonical = strictjson.Write(tree.Value())
	}
	a.digest = hexSum([]byte(a.canonical.String()))
	return a
}

// ParseArguments reads raw, which may be anything a client sends; see
// [Arguments.Problem]. Without any bytes it returns nil.
func ParseArguments(raw json.RawMessage) *Arguments {
	if len(raw) == 0 {
		return nil
	}
	tree, err := strictjson.Parse(raw)
	if err != nil {
		return &Arguments{unread: string(raw), digest: hexSum(raw), problem: fmt.Sprintf("the arguments cannot be read at byte %d: %s", err.Offset, Beginning(err.Problem))}
	}
	return NewArguments(tree)
}

// Canonical is the arguments in one spelling: object keys sorted, no spaces,
// numbers as they were written (1 and 1.0 differ). A client may spell a retry
// differently. Arguments with a problem are as they came.
func (a *Arguments) Canonical() string {
	if a == nil {
		return ""
	}
	if a.problem != "" {
		return a.unread
	}
	return a.canonical.String()
}

// Compact is Canonical as JSON; zero without arguments, and when they have a problem.
func (a *Arguments) Compact() strictjson.Compact {
	if a == nil {
		return strictjson.Compact{}
	}
	return a.canonical
}

// Digest is the SHA-256 digest of the canonical form in hex; empty without
// arguments.
func (a *Arguments) Digest() string {
	if a == nil {
		return ""
	}
	return a.digest
}

// Problem says why the arguments cannot be those of a call; empty when they can.
func (a *Arguments) Problem() string {
	if a == nil {
		return ""
	}
	return a.problem
}

// Members returns the members of the object that the arguments are, by name. It
// reports false when they are no object.
func (a *Arguments) Members() ([]Member, bool) {
	if a == nil {
		return nil, false
	}
	return a.members, a.object
}

// Beginning is as much of a text of the client's as a reason has: reasons are
// kept for the history and written to the log.
func Beginning(s string) string { return Cut(s, 100) }

// Cut shortens s to about most bytes. The log takes a token out whose beginning is
// all that is left: it knows the "…".
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
