package toolsjson

import (
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/decl"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A listing has the tool declarations in a file.
type listing struct {
	node  *strictjson.Node   // the list or map that contains them
	tools []*strictjson.Node // each an object with a "name"
	extra []*strictjson.Node // members both around a function and inside it, which are not read
}

// A notListError says why a file is not a list of tools.
type notListError struct {
	where  *strictjson.Node
	reason string
}

// toolList finds the declarations in root. A file called tools.json can be about
// anything, so only an unmistakable list of tools counts.
func toolList(root *strictjson.Node) (*listing, *notListError) {
	switch root.Kind {
	case strictjson.List:
		l, err := fromList(root)
		// Lists of all kinds of things have names. Under "tools" they count as tools; a
		// bare list must be recognizable.
		if err == nil && len(l.tools) > 0 && !slices.ContainsFunc(l.tools, callable) {
			err = &notListError{root, "nothing in it has a command or a schema"}
		}
		return l, err
	case strictjson.Object:
		if v := root.Get("tools"); v != nil {
			return fromTools(v)
		}
	default:
		return nil, &notListError{root, "it is " + root.Kind.String()}
	}
	if root.Get("jsonrpc") != nil || root.Get("result").Get("tools") != nil {
		return nil, &notListError{root, "it is a saved reply of a server"}
	}
	if l, err := fromList(root.Get("functions")); err == nil && unmistakable(l) {
		return l, nil
	}
	l := &listing{node: root}
	if n := l.unwrap(root); n.Get("name") != nil && hasInput(n) {
		l.tools = []*strictjson.Node{n}
		return l, nil
	}
	return fromNested(root)
}

// fromNested finds the only list of tools under another key of root.
func fromNested(root *strictjson.Node) (*listing, *notListError) {
	var found *listing
	for _, m := range root.Members {
		v := m.Value.Get("tools")
		if v == nil {
			continue
		}
		l, err := fromTools(v)
		if err != nil || !unmistakable(l) {
			continue
		}
		if found != nil {
			return nil, &notListError{root, fmt.Sprintf(`it has tools in several places, such as %+q and %+q`, phrase.Clip(found.node.Pointer()), phrase.Clip(l.node.Pointer()))}
		}
		found = l
	}
	if found == nil {
		return nil, &notListError{root, `it has no "tools"`}
	}
	return found, nil
}

func fromTools(v *strictjson.Node) (*listing, *notListError) {
	switch v.Kind {
	case strictjson.List:
		return fromList(v)
	case strictjson.Object:
		return fromMap(v)
	default:
		return nil, &notListError{v, fmt.Sprintf(`"tools" is %s, not a list`, v.Kind)}
	}
}

func fromList(list *strictjson.Node) (*listing, *notListError) {
	if list == nil || list.Kind != strictjson.List {
		return nil, &notListError{list, "it is not a list"}
	}
	l := &listing{node: list}
	for i, n := range list.Items {
		if n.Kind != strictjson.Object {
			return nil, &notListError{n, fmt.Sprintf("entry %d is %s, not an object", i+1, n.Kind)}
		}
		n = l.unwrap(n)
		if n.Get("name") == nil {
			return nil, &notListError{n, fmt.Sprintf("entry %d has no name", i+1)}
		}
		l.tools = append(l.tools, n)
	}
	return l, nil
}

// fromMap reads a map of tools by name. Maps of tool groups, or of anything else,
// look similar, so each entry must be recognizable as a tool.
func fromMap(all *strictjson.Node) (*listing, *notListError) {
	if len(all.Members) == 0 {
		return nil, &notListError{all, `"tools" is an empty object, not a list`}
	}
	l := &listing{node: all}
	for _, m := range all.Members {
		n := m.Value
		if n.Kind != strictjson.Object {
			return nil, &notListError{all, fmt.Sprintf(`"tools" is an object whose %+q is %s, not a tool`, phrase.Clip(m.Key), n.Kind)}
		}
		n = l.unwrap(n)
		if n.StringAt("description") == "" && !callable(n) {
			return nil, &notListError{all, fmt.Sprintf(`"tools" is an object whose %+q is not a tool: it has no description, no command and no schema`, phrase.Clip(m.Key))}
		}
		if n.Get("name") == nil {
			n = n.With(strictjson.Member{Key: "name", Start: m.Start, Value: &strictjson.Node{
				Kind: strictjson.Text, Start: m.Start, End: m.Start, Text: m.Key, Parent: all, Key: m.Key,
			}})
		}
		l.tools = append(l.tools, n)
	}
	return l, nil
}

// unwrap returns the function in {"type": "function", "function": {...}}, with the
// wrapper's other members.
func (l *listing) unwrap(n *strictjson.Node) *strictjson.Node {
	fn := n.Get("function")
	if n.StringAt("type") != "function" || fn == nil || fn.Kind != strictjson.Object {
		return n
	}
	var besides []strictjson.Member
	for _, m := range n.Members {
		switch {
		case m.Key == "type" || m.Key == "function":
		case fn.Get(m.Key) != nil:
			l.extra = append(l.extra, m.Value)
		default:
			besides = append(besides, m)
		}
	}
	return fn.With(besides...)
}

// callable reports whether n has a command or an input schema.
func callable(n *strictjson.Node) bool { return n.Get("command") != nil || decl.InputOf(n) != nil }

// hasInput reports whether n has a value that can be a schema.
func hasInput(n *strictjson.Node) bool {
	s := decl.InputOf(n)
	return s != nil && s.Kind == strictjson.Object
}

// unmistakable reports whether every entry in l is clearly a tool.
func unmistakable(l *listing) bool {
	return len(l.tools) > 0 && !slices.ContainsFunc(l.tools, func(n *strictjson.Node) bool {
		command, _ := decl.CommandOf(n)
		return command == nil && !hasInput(n)
	})
}
