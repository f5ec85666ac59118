package tools

import (
	"fmt"
	"slices"
)

// A listing is the declarations of tools that a file holds.
type listing struct {
	node  *node   // the list or map they stand in
	tools []*node // each an object with a "name"
	extra []*node // what stands twice, around a function and in it, and is not read
}

// A notListError says why a file is no list of tools.
type notListError struct {
	where  *node
	reason string
}

// toolList finds the declarations in root. A file called tools.json can be
// about anything, so what is not unmistakably a list of tools is none.
func toolList(root *node) (*listing, *notListError) {
	switch root.kind {
	case kindList:
		l, err := fromList(root)
		// Lists of all kinds of things have names. Under "tools" they are taken
		// for tools; a bare list has to say so.
		if err == nil && len(l.tools) > 0 && !slices.ContainsFunc(l.tools, callable) {
			err = &notListError{root, "nothing in it has a command or a schema"}
		}
		return l, err
	case kindObject:
		if v := root.get("tools"); v != nil {
			return fromTools(v)
		}
	default:
		return nil, &notListError{root, "it is " + root.kind.String()}
	}
	if root.get("jsonrpc") != nil || root.get("result").get("tools") != nil {
		return nil, &notListError{root, "it is a saved reply of a server"}
	}
	if l, err := fromList(root.get("functions")); err == nil && unmistakable(l) {
		return l, nil
	}
	l := &listing{node: root}
	if n := l.unwrap(root); n.get("name") != nil && hasInput(n) {
		l.tools = []*node{n}
		return l, nil
	}
	return fromNested(root)
}

// fromNested finds the one list of tools under another key of root.
func fromNested(root *node) (*listing, *notListError) {
	var found *listing
	for _, m := range root.members {
		v := m.value.get("tools")
		if v == nil {
			continue
		}
		l, err := fromTools(v)
		if err != nil || !unmistakable(l) {
			continue
		}
		if found != nil {
			return nil, &notListError{root, fmt.Sprintf(`it has tools in several places, such as %+q and %+q`, clip(found.node.pointer()), clip(l.node.pointer()))}
		}
		found = l
	}
	if found == nil {
		return nil, &notListError{root, `it has no "tools"`}
	}
	return found, nil
}

func fromTools(v *node) (*listing, *notListError) {
	switch v.kind {
	case kindList:
		return fromList(v)
	case kindObject:
		return fromMap(v)
	default:
		return nil, &notListError{v, fmt.Sprintf(`"tools" is %s, not a list`, v.kind)}
	}
}

func fromList(list *node) (*listing, *notListError) {
	if list == nil || list.kind != kindList {
		return nil, &notListError{list, "it is no list"}
	}
	l := &listing{node: list}
	for i, n := range list.items {
		if n.kind != kindObject {
			return nil, &notListError{n, fmt.Sprintf("entry %d is %s, not an object", i+1, n.kind)}
		}
		n = l.unwrap(n)
		if n.get("name") == nil {
			return nil, &notListError{n, fmt.Sprintf("entry %d has no name", i+1)}
		}
		l.tools = append(l.tools, n)
	}
	return l, nil
}

// fromMap reads a map of tools by name. Maps of groups of tools, or of
// anything else, look much the same: each entry has to say that it is a tool.
func fromMap(all *node) (*listing, *notListError) {
	if len(all.members) == 0 {
		return nil, &notListError{all, `"tools" is an empty object, not a list`}
	}
	l := &listing{node: all}
	for _, m := range all.members {
		n := m.value
		if n.kind != kindObject {
			return nil, &notListError{all, fmt.Sprintf(`"tools" is an object whose %+q is %s, not a tool`, clip(m.key), n.kind)}
		}
		n = l.unwrap(n)
		if n.str("description") == "" && !callable(n) {
			return nil, &notListError{all, fmt.Sprintf(`"tools" is an object whose %+q is not a tool: it has no description, no command and no schema`, clip(m.key))}
		}
		if n.get("name") == nil {
			named := *n
			named.members = append(slices.Clone(n.members), member{"name", m.start, &node{
				kind: kindText, start: m.start, end: m.start, text: m.key, parent: all, key: m.key,
			}})
			n = &named
		}
		l.tools = append(l.tools, n)
	}
	return l, nil
}

// unwrap returns the function of {"type": "function", "function": {...}},
// together with what the wrapper says besides.
func (l *listing) unwrap(n *node) *node {
	fn := n.get("function")
	if n.str("type") != "function" || fn == nil || fn.kind != kindObject {
		return n
	}
	merged := *fn
	merged.members = slices.Clone(fn.members)
	for _, m := range n.members {
		switch {
		case m.key == "type" || m.key == "function":
		case fn.get(m.key) != nil:
			l.extra = append(l.extra, m.value)
		default:
			merged.members = append(merged.members, m)
		}
	}
	return &merged
}

// callable reports whether n says how it is called, or what it runs.
func callable(n *node) bool { return n.get("command") != nil || inputOf(n) != nil }

// hasInput reports whether n has something that can be a schema.
func hasInput(n *node) bool {
	s := inputOf(n)
	return s != nil && s.kind == kindObject
}

// unmistakable reports whether everything in l is a tool and nothing else.
func unmistakable(l *listing) bool {
	return len(l.tools) > 0 && !slices.ContainsFunc(l.tools, func(n *node) bool {
		command, _ := commandOf(n)
		return command == nil && !hasInput(n)
	})
}

// inputKeys are the names under which an input schema is found.
var inputKeys = [...]string{"inputSchema", "input_schema", flatKey}

// flatKey is the one under which a tool pack has a flat map.
const flatKey = "parameters"

func inputOf(tool *node) *node {
	for _, key := range inputKeys {
		if n := tool.get(key); n != nil {
			return n
		}
	}
	return objectSchema(tool)
}

// objectSchema returns "schema" of a tool if it cannot be anything but the
// schema of its arguments.
func objectSchema(tool *node) *node {
	if s := tool.get("schema"); s != nil && s.str("type") == "object" && s.get("properties") != nil {
		return s
	}
	return nil
}

// execKeys are the names under which other programs say how a tool is carried
// out. None of them is read; they only make a reason clearer.
var execKeys = [...]string{"handler", "runner", "http", "endpoint", "url", "entrypoint", "execute", "execution", "exec", "run", "script", "implementation"}

// commandOf returns the command of a tool, or why there is none that can be
// run. Nothing is guessed.
func commandOf(tool *node) (command *node, why string) {
	c := tool.get("command")
	switch {
	case c == nil:
		for _, key := range execKeys {
			if tool.get(key) != nil {
				return nil, fmt.Sprintf("it declares no command, and %q is not read", key)
			}
		}
		return nil, "it declares no command"
	case c.kind == kindList, c.kind == kindObject && c.get("program") != nil:
		return c, ""
	case c.kind == kindObject:
		return nil, `its command has no "program"`
	default:
		return nil, fmt.Sprintf("its command is %s", c.kind)
	}
}
