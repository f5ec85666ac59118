package call

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Arguments are the arguments of a call in one canonical form, which is made once.
// They never change. A nil *Arguments means a call without arguments.
type Arguments struct {
	canonical strictjson.Compact // zero if problem is set
	unread    string             // arguments that cannot be read, as they came
	problem   string             // why they cannot be used; empty: they can
	digest    string
	members   []Member
	object    bool
}

// A Member is one member of the arguments' object.
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

// ParseArguments reads raw, which may be anything that a client sends; see
// [Arguments.Problem]. It returns nil if raw is empty.
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

// Canonical returns the arguments in one spelling: object keys sorted, no spaces,
// numbers as they were written (1 and 1.0 differ). A client may spell a retry
// differently. Arguments with a problem are returned as they came.
func (a *Arguments) Canonical() string {
	if a == nil {
		return ""
	}
	if a.problem != "" {
		return a.unread
	}
	return a.canonical.String()
}

// Compact returns the same as JSON. It is zero if there are no arguments, or if they
// have a problem.
func (a *Arguments) Compact() strictjson.Compact {
	if a == nil {
		return strictjson.Compact{}
	}
	return a.canonical
}

// Digest returns the SHA-256 digest of the canonical form in hex; empty if there are
// no arguments.
func (a *Arguments) Digest() string {
	if a == nil {
		return ""
	}
	return a.digest
}

// Problem returns why these cannot be the arguments of a call; empty if they can.
func (a *Arguments) Problem() string {
	if a == nil {
		return ""
	}
	return a.problem
}

// Members returns the members of the arguments' object, by name. It reports false if
// the arguments are not an object.
func (a *Arguments) Members() ([]Member, bool) {
	if a == nil {
		return nil, false
	}
	return a.members, a.object
}

// Beginning cuts a client's text to the length that a reason may quote: reasons are
// kept for the history and written to the log.
func Beginning(s string) string { return Cut(s, 100) }

// Cut shortens s to about most bytes. It ends with "…", by which the log recognizes
// and removes a token that was cut.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
