package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Arguments are the arguments of a call: as they came, and in one canonical form.
// [ParseArguments] decodes them once, and they never change. A nil *Arguments is a
// call without any.
type Arguments struct {
	raw       json.RawMessage
	canonical string
	digest    string
	members   []Member
	object    bool
	problem   string
}

// A Member is one member of the object that arguments are.
type Member struct {
	Name  string
	Value string // canonical JSON
}

// ParseArguments decodes raw, which may be anything a client sends; see
// [Arguments.Problem]. Without any bytes it returns nil.
func ParseArguments(raw json.RawMessage) *Arguments {
	if len(raw) == 0 {
		return nil
	}
	a := &Arguments{raw: bytes.Clone(raw)}
	v, err := strictjson.Decode(a.raw)
	twice, isTwice := errors.AsType[*strictjson.DuplicateError](err)
	object, isObject := v.(map[string]any)
	switch {
	case isTwice:
		a.problem = fmt.Sprintf("the arguments name %q twice", Beginning(twice.Key))
		a.canonical = string(a.raw)
	case err != nil:
		a.problem = "the arguments are not JSON"
		a.canonical = string(a.raw)
	case isObject:
		a.object = true
		a.canonical, a.members = formatObject(object)
	default:
		a.canonical = strictjson.Format(v)
	}
	a.digest = hexSum([]byte(a.canonical))
	return a
}

// formatObject writes an object in its canonical form. The values of its members
// are parts of that text, so that they take up no room of their own.
func formatObject(object map[string]any) (text string, members []Member) {
	var b strings.Builder
	names := slices.Sorted(maps.Keys(object))
	ends := make([]int, 0, 2*len(names)) // where each value begins and ends
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strictjson.Format(name))
		b.WriteByte(':')
		ends = append(ends, b.Len())
		b.WriteString(strictjson.Format(object[name]))
		ends = append(ends, b.Len())
	}
	b.WriteByte('}')
	text = b.String()
	members = make([]Member, len(names))
	for i, name := range names {
		members[i] = Member{name, text[ends[2*i]:ends[2*i+1]]}
	}
	return text, members
}

// Raw is the arguments as they came. The caller does not change it.
func (a *Arguments) Raw() json.RawMessage {
	if a == nil {
		return nil
	}
	return a.raw
}

// Canonical is the arguments in one spelling: object keys sorted, no spaces,
// numbers as they were written (1 and 1.0 differ). A client may spell a retry
// differently. Arguments with a problem are as they came.
func (a *Arguments) Canonical() string {
	if a == nil {
		return ""
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

// Valid reports whether the arguments as they came are JSON, whatever else is wrong
// with them.
func (a *Arguments) Valid() bool {
	return a != nil && (a.problem == "" || json.Valid(a.raw))
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
