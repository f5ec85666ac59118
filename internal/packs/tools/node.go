package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type jsonKind uint8

const (
	kindNull jsonKind = iota
	kindBoolean
	kindNumber
	kindText
	kindList
	kindObject
)

func (k jsonKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// A node is one JSON value with its place in the source.
type node struct {
	kind       jsonKind
	start, end int    // source offsets of the value
	text       string // text: its content; number: its literal
	truth      bool
	items      []*node
	members    []member       // in source order, keys unique
	places     map[string]int // :: key → index in members; nil when there are few

	parent *node  // nil at the root
	key    string // in an object
	index  int    // in a list
}

type member struct {
	key   string
	start int // source offset of the key
	value *node
}

// add adds a member whose key is not there yet.
func (n *node) add(m member) {
	const few = 16
	n.members = append(n.members, m)
	if n.places == nil && len(n.members) == few {
		n.places = make(map[string]int)
		for i, m := range n.members {
			n.places[m.key] = i
		}
	} else if n.places != nil {
		n.places[m.key] = len(n.members) - 1
	}
}

// get returns the member called key, or nil; also for a nil node and for what
// is no object.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	if n.places != nil {
		if i, ok := n.places[key]; ok {
			return n.members[i].value
		}
		return nil
	}
	for i := range n.members {
		if n.members[i].key == key {
			return n.members[i].value
		}
	}
	return nil
}

// str returns the string at key, or "".
func (n *node) str(key string) string {
	if v := n.get(key); v != nil && v.kind == kindText {
		return v.text
	}
	return ""
}

// isTrue reports whether the member called key is true.
func (n *node) isTrue(key string) bool {
	v := n.get(key)
	return v != nil && v.kind == kindBoolean && v.truth
}

// strs returns the strings of the list at key.
func (n *node) strs(key string) []string {
	v := n.get(key)
	if v == nil {
		return nil
	}
	var out []string
	for _, item := range v.items {
		if item.kind == kindText {
			out = append(out, item.text)
		}
	}
	return out
}

// children returns the values in n, in order.
func (n *node) children() []*node {
	if n.kind == kindList {
		return n.items
	}
	out := make([]*node, len(n.members))
	for i, m := range n.members {
		out[i] = m.value
	}
	return out
}

// at follows unescaped JSON pointer tokens as far as they lead.
func (n *node) at(path []string) *node {
	for _, tok := range path {
		var next *node
		if n.kind == kindList {
			if i, err := strconv.Atoi(tok); err == nil && i >= 0 && i < len(n.items) {
				next = n.items[i]
			}
		} else {
			next = n.get(tok)
		}
		if next == nil {
			break
		}
		n = next
	}
	return n
}

// pointer returns the JSON pointer of n.
func (n *node) pointer() string {
	var path []string
	for ; n.parent != nil; n = n.parent {
		if n.parent.kind == kindList {
			path = append(path, strconv.Itoa(n.index))
		} else {
			path = append(path, n.key)
		}
	}
	slices.Reverse(path)
	return pointer(path)
}

// pointer writes tokens as a JSON pointer (RFC 6901).
func pointer(path []string) string {
	var b strings.Builder
	for _, tok := range path {
		b.WriteByte('/')
		if strings.ContainsAny(tok, "~/") {
			tok = strings.NewReplacer("~", "~0", "/", "~1").Replace(tok)
		}
		b.WriteString(tok)
	}
	return b.String()
}

// value returns n as encoding/json would decode it with UseNumber.
func (n *node) value() any {
	switch n.kind {
	case kindBoolean:
		return n.truth
	case kindNumber:
		return json.Number(n.text)
	case kindText:
		return n.text
	case kindList:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.value()
		}
		return out
	case kindObject:
		out := make(map[string]any, len(n.members))
		for _, m := range n.members {
			out[m.key] = m.value.value()
		}
		return out
	default:
		return nil
	}
}

// canonical writes v, made of what [node.value] returns, as JSON without
// spaces, with sorted keys and with numbers as they were written.
func canonical(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Maps, lists, strings, booleans and valid numbers always encode.
		panic(fmt.Sprintf("encoding %T: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
