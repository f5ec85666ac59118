package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Compact is JSON text that this package wrote: valid, on one line, without spaces
// between tokens. Since only this package creates it, it can be embedded in other JSON
// without another check. It is immutable. The zero Compact is no value.
type Compact struct{ text string }

// Write returns v, built from results of [Node.Value], as JSON with sorted keys and with
// numbers as written in the source.
func Write(v any) Compact { return Compact{string(Canonical(v))} }

// A Written is one member of an object that [WriteObject] wrote.
type Written struct {
	Name  string
	Value string // its JSON
}

// WriteObject is [Write] for an object. It also returns the members, sorted by name. Their
// values are substrings of the text, so they take no memory of their own.
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

// ReadCompact returns raw without whitespace between tokens. It keeps the order of keys,
// and accepts what encoding/json accepts.
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

// MarshalJSON returns the text, or null for the zero Compact. [json.Marshal] validates the
// text again.
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
