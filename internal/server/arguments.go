package server

// The arguments of a call, read once, where they arrive. What everything after that
// works with is the tree.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// arguments are those of a call.
type arguments struct {
	tree   *strictjson.Node // nil: see unread
	unread *gate.Arguments  // what cannot be read, with its problem; nil: all was read
	form   *gate.Arguments  // the canonical form of of; see [arguments.canonical]
	of     *strictjson.Node
}

// readArguments reads arguments as the client wrote them. Some clients write null for
// none.
func readArguments(raw json.RawMessage) *arguments {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return &arguments{tree: strictjson.NewObject()}
	}
	tree, err := strictjson.Parse(raw)
	if err != nil {
		return &arguments{unread: gate.ParseArguments(raw)}
	}
	return &arguments{tree: tree}
}

// textMember is a member whose value is a text.
func textMember(key, value string) strictjson.Member {
	return strictjson.Member{Key: key, Value: strictjson.NewText(value)}
}

// A renamed call is one of a base tool that was made under another name. [Server.rename]
// leaves it in the place of the library's own decoded arguments, where no client can
// put one: what it sends there is JSON.
type renamed struct {
	pack, tool string // of a call of call_tool; without a pack, it refuses the tool
	workspace  string // handle
	skill      string // of a call of a pack's own tool: the pack's id
}

// in returns the arguments of the base tool, of those that the call came with.
func (r renamed) in(args *arguments) *arguments {
	if args.unread != nil {
		return args
	}
	var members []strictjson.Member
	switch {
	case r.skill != "":
		// The pack is among the arguments in the log, as it is for open_docs.
		members = slices.DeleteFunc(slices.Clone(args.tree.Members), func(m strictjson.Member) bool { return m.Key == "pack_id" })
		members = append(members, textMember("pack_id", r.skill))
	default:
		members = []strictjson.Member{textMember("pack_id", r.pack), textMember("tool", r.tool), {Key: "arguments", Value: args.tree}}
		if r.workspace != "" {
			members = append(members, textMember("workspace", r.workspace))
		}
	}
	return &arguments{tree: strictjson.NewObject(members...)}
}

// canonical returns n, which is the arguments or a part of them, as the gate gets
// them. It is written once, however often the call is prepared.
func (a *arguments) canonical(n *strictjson.Node) *gate.Arguments {
	if a.unread != nil {
		return a.unread
	}
	if a.form == nil || a.of != n {
		a.form, a.of = gate.NewArguments(n), n
	}
	return a.form
}

// whole is canonical of all the arguments.
func (a *arguments) whole() *gate.Arguments { return a.canonical(a.tree) }

// decode puts the arguments of a base tool into v, a pointer to a struct with a field
// for each one and nothing else. Null is as if an argument was left out.
func (a *arguments) decode(v any) (problem string) {
	switch {
	case a.unread != nil:
		return a.unread.Problem()
	case a.tree.Kind != strictjson.Object:
		return "the arguments must be an object"
	}
	into := reflect.ValueOf(v).Elem()
	fields := make(map[string]any, into.NumField())
	for i := range into.NumField() {
		fields[into.Type().Field(i).Tag.Get("json")] = into.Field(i).Addr().Interface()
	}
	for _, m := range a.tree.Members {
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

// count reads a whole number that is not negative. Some clients send 5 as 5.0.
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
