package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Compact is JSON text that this package wrote: valid, in one line, without spaces
// between its parts. Only this package makes one, so a text that has it as a part needs
// no second look at it. It never changes. The zero Compact is no value.
type Compact struct{ text string }

// Write returns v, made of what [Node.Value] returns, as JSON with sorted keys, and
// with numbers as they were written.
func Write(v any) Compact { return Compact{string(Canonical(v))} }

// A Written is one member of an object that was written.
type Written struct {
	Name  string
	Value string // its JSON
}

// WriteObject is [Write] for the value of an object. It also returns the members, sorted
// by name. Their values are parts of the text, so that they take up no room of their own.
func WriteObject(n *Node) (text Compact, members []Written) {
	var w Writer
	sorted := slices.SortedFunc(slices.Values(n.Members), func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
	ends := make([]int, len(sorted)) // where each value ends
	sizes := make([]int, len(sorted))
	w.Open('{')
	for i, m := range sorted {
		value := Canonical(m.Value.Value())
		w.Member(m.Key, value)
		ends[i], sizes[i] = len(w.Bytes()), len(value)
	}
	w.Close('}')
	text = Compact{string(w.Bytes())}
	members = make([]Written, len(sorted))
	for i, m := range sorted {
		members[i] = Written{m.Key, text.text[ends[i]-sizes[i] : ends[i]]}
	}
	return text, members
}

// ReadCompact returns the JSON value raw without its spaces. It keeps the order of keys,
// and is as lenient as encoding/json.
func ReadCompact(raw []byte) (Compact, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return Compact{}, fmt.Errorf("reading JSON: %w", err)
	}
	return Compact{b.String()}, nil
}

// String returns the text.
func (c Compact) String() string { return c.text }

// IsZero reports whether c is no value.
func (c Compact) IsZero() bool { return c.text == "" }

// MarshalJSON returns the text; of the zero Compact, null. [json.Marshal] reads it once
// more.
func (c Compact) MarshalJSON() ([]byte, error) {
	if c.IsZero() {
		return []byte("null"), nil
	}
	return []byte(c.text), nil
}

// UnmarshalJSON is [ReadCompact].
func (c *Compact) UnmarshalJSON(raw []byte) (err error) {
	*c, err = ReadCompact(raw)
	return err
}
