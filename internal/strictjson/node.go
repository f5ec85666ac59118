// Package strictjson parses JSON so that no two readers can disagree about its meaning,
// into a tree whose values know their place in the source. It also writes JSON in a
// canonical form.
//
// It is strict: one value, unique keys, UTF-8, bounded depth and numbers; numbers stay as
// written. Its errors address the author of a file or of a call. It knows no schema, and
// does not bound the length of strings.
package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Kind is the type of a value.
type Kind uint8

// The kinds. A [Node] uses Text for Text and Number, Items for List, Members for Object.
const (
	Null Kind = iota
	Boolean
	Number
	Text
	List
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// A Node is one JSON value with its place in the source.
type Node struct {
	Kind       Kind
	Start, End int    // source offsets of the value
	Text       string // text: its content; number: its literal
	Truth      bool
	Items      []*Node
	Members    []Member       // in source order, keys unique
	places     map[string]int // :: key → index in members; nil when there are few

	Parent *Node  // nil at the root
	Key    string // in an object
	index  int    // in a list
}

// A Member is a key of an object with its value.
type Member struct {
	Key   string
	Start int // source offset of the key
	Value *Node
}

// NewText returns a string that has no source.
func NewText(text string) *Node { return &Node{Kind: Text, Text: text} }

// NewObject returns an object that has no source, with these members, whose keys must be
// unique.
func NewObject(members ...Member) *Node { return (&Node{Kind: Object}).With(members...) }

// add adds a member with a new key.
func (n *Node) add(m Member) {
	const few = 16
	n.Members = append(n.Members, m)
	if n.places == nil && len(n.Members) == few {
		n.places = make(map[string]int)
		for i, m := range n.Members {
			n.places[m.Key] = i
		}
	} else if n.places != nil {
		n.places[m.Key] = len(n.Members) - 1
	}
}

// With returns a copy of the object n with more members, whose keys n must lack.
func (n *Node) With(more ...Member) *Node {
	own := *n
	own.Members, own.places = nil, nil
	for _, m := range slices.Concat(n.Members, more) {
		own.add(m)
	}
	return &own
}

// Get returns the value of the member called key, or nil if there is none. n may be nil
// or of any kind.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	if n.places != nil {
		if i, ok := n.places[key]; ok {
			return n.Members[i].Value
		}
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Key == key {
			return n.Members[i].Value
		}
	}
	return nil
}

// StringAt returns the string at key, or "".
func (n *Node) StringAt(key string) string {
	if v := n.Get(key); v != nil && v.Kind == Text {
		return v.Text
	}
	return ""
}

// IsTrue reports whether the value of the member called key is true.
func (n *Node) IsTrue(key string) bool {
	v := n.Get(key)
	return v != nil && v.Kind == Boolean && v.Truth
}

// StringsAt returns the strings in the list at key.
func (n *Node) StringsAt(key string) []string {
	v := n.Get(key)
	if v == nil {
		return nil
	}
	var out []string
	for _, item := range v.Items {
		if item.Kind == Text {
			out = append(out, item.Text)
		}
	}
	return out
}

// Children returns the values directly in n, in order.
func (n *Node) Children() []*Node {
	if n.Kind == List {
		return n.Items
	}
	out := make([]*Node, len(n.Members))
	for i, m := range n.Members {
		out[i] = m.Value
	}
	return out
}

// At follows unescaped JSON pointer tokens, and stops at the last value that exists.
func (n *Node) At(path []string) *Node {
	for _, tok := range path {
		var next *Node
		if n.Kind == List {
			if i, err := strconv.Atoi(tok); err == nil && i >= 0 && i < len(n.Items) {
				next = n.Items[i]
			}
		} else {
			next = n.Get(tok)
		}
		if next == nil {
			break
		}
		n = next
	}
	return n
}

// Depth returns the number of nesting levels of n, including n.
func (n *Node) Depth() int {
	deepest := 0
	for _, child := range n.Children() {
		deepest = max(deepest, child.Depth())
	}
	return deepest + 1
}

// Pointer returns the JSON pointer of n.
func (n *Node) Pointer() string {
	var path []string
	for ; n.Parent != nil; n = n.Parent {
		if n.Parent.Kind == List {
			path = append(path, strconv.Itoa(n.index))
		} else {
			path = append(path, n.Key)
		}
	}
	slices.Reverse(path)
	return Pointer(path)
}

// Pointer returns tokens as a JSON pointer (RFC 6901).
func Pointer(path []string) string {
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

// SplitPointer returns the tokens of a JSON pointer.
func SplitPointer(p string) []string {
	if p == "" {
		return nil
	}
	path := strings.Split(p, "/")[1:]
	for i, tok := range path {
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(tok)
	}
	return path
}

// Value returns n as encoding/json would decode it with UseNumber.
func (n *Node) Value() any {
	switch n.Kind {
	case Boolean:
		return n.Truth
	case Number:
		return json.Number(n.Text)
	case Text:
		return n.Text
	case List:
		out := make([]any, len(n.Items))
		for i, item := range n.Items {
			out[i] = item.Value()
		}
		return out
	case Object:
		out := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			out[m.Key] = m.Value.Value()
		}
		return out
	default:
		return nil
	}
}

// Canonical writes v, built from results of [Node.Value], as JSON without spaces, with
// sorted keys, and with numbers as written in the source.
func Canonical(v any) []byte {
	text, err := Encode(v)
	if err != nil {
		// Maps, lists, strings, booleans and valid numbers always encode.
		panic(fmt.Sprintf("encoding %T: %v", v, err))
	}
	return text
}

// Encode is [json.Marshal] for text that people and models read: it does not escape "<",
// ">" and "&".
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
