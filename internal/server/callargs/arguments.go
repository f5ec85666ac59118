// Package callargs reads the arguments of a call once, where they arrive. All later
// code works with the tree that was read, and with its canonical form.
//
// It does not know any tool: package tools checks arguments against a pack's schema.
// It does not remove secrets, and it does not log.
package callargs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Arguments are the arguments of one call. They are not safe for concurrent use.
type Arguments struct {
	Tree   *strictjson.Node // nil: see unread
	unread *call.Arguments  // arguments that could not be read, with the problem; nil: all was read
	form   *call.Arguments  // the canonical form of the node of; see [Arguments.Canonical]
	of     *strictjson.Node
}

// Read reads arguments as the client wrote them. Some clients write null if there are
// none.
func Read(raw json.RawMessage) *Arguments {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return &Arguments{Tree: strictjson.NewObject()}
	}
	tree, err := strictjson.Parse(raw)
	if err != nil {
		return &Arguments{unread: call.ParseArguments(raw)}
	}
	return &Arguments{Tree: tree}
}

// Text returns a member whose value is a text.
func Text(key, value string) strictjson.Member {
	return strictjson.Member{Key: key, Value: strictjson.NewText(value)}
}

// Of returns arguments that were already read as this tree.
func Of(tree *strictjson.Node) *Arguments { return &Arguments{Tree: tree} }

// Canonical returns n, which is the arguments or a part of them, in the form for the
// gate. It makes that form once, however often the call is prepared.
func (a *Arguments) Canonical(n *strictjson.Node) *call.Arguments {
	if a.unread != nil {
		return a.unread
	}
	if a.form == nil || a.of != n {
		a.form, a.of = call.NewArguments(n), n
	}
	return a.form
}

// Whole is [Arguments.Canonical] of all the arguments.
func (a *Arguments) Whole() *call.Arguments { return a.Canonical(a.Tree) }

// Decode decodes the arguments of a base tool into v, a pointer to a struct with a
// field for each argument and no others. Null means that an argument was left out.
func (a *Arguments) Decode(v any) (problem string) {
	switch {
	case a.unread != nil:
		return a.unread.Problem()
	case a.Tree.Kind != strictjson.Object:
		return "the arguments must be an object"
	}
	into := reflect.ValueOf(v).Elem()
	fields := make(map[string]any, into.NumField())
	for i := range into.NumField() {
		fields[into.Type().Field(i).Tag.Get("json")] = into.Field(i).Addr().Interface()
	}
	for _, m := range a.Tree.Members {
		field, known := fields[m.Key]
		if !known {
			return fmt.Sprintf("there is no argument %q", m.Key)
		}
		if problem := set(field, m.Key, m.Value); problem != "" {
			return problem
		}
	}
	return ""
}

// set sets one field to the value of the argument called name.
func set(field any, name string, n *strictjson.Node) (problem string) {
	if field, ok := field.(**strictjson.Node); ok {
		*field = n
		return ""
	}
	if n.Kind == strictjson.Null {
		return ""
	}
	is := func(kind strictjson.Kind) bool {
		if n.Kind != kind && problem == "" {
			problem = fmt.Sprintf("%s is %s and must be %s", name, n.Kind, kind)
		}
		return n.Kind == kind
	}
	switch field := field.(type) {
	case *string:
		if is(strictjson.Text) {
			*field = n.Text
		}
	case **string:
		if is(strictjson.Text) {
			*field = &n.Text
		}
	case *int64:
		if is(strictjson.Number) {
			*field, problem = count(name, n.Text)
		}
	case *[]string:
		if is(strictjson.List) {
			*field = make([]string, len(n.Items))
			for i, item := range n.Items {
				if problem := set(&(*field)[i], fmt.Sprintf("%s[%d]", name, i), item); problem != "" {
					return problem
				}
			}
		}
	case **[]string:
		*field = new([]string)
		return set(*field, name, n)
	case *map[string]string:
		if is(strictjson.Object) {
			*field = make(map[string]string, len(n.Members))
			for _, m := range n.Members {
				var text string
				if problem := set(&text, name+"."+m.Key, m.Value); problem != "" {
					return problem
				}
				(*field)[m.Key] = text
			}
		}
	default:
		panic(fmt.Sprintf("the argument %s has a field of type %T", name, field))
	}
	return problem
}

// count reads a non-negative integer. Some clients send 5 as 5.0.
func count(name, number string) (n int64, problem string) {
	text := number
	if whole, frac, ok := strings.Cut(text, "."); ok && strings.Trim(frac, "0") == "" {
		text = whole
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Sprintf("%s must be a whole number that is not negative, not %s", name, safetext.Line(safetext.Shorten(number, 40)))
	}
	return n, ""
}
