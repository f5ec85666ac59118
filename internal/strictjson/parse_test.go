package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// Each refused input yields its code and the offset of the problem.
func TestRefused(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	if _, e := Parse([]byte(deep)); e != nil {
		t.Errorf("Parse of %d levels inside the first = %v, want no error", maxDepth, e)
	}
	if _, e := Parse([]byte("[1" + strings.Repeat(",1", maxValues-2) + "]")); e != nil {
		t.Errorf("Parse of %d values = %v, want no error", maxValues, e)
	}
	for src, want := range map[string]struct {
		code   string
		offset int
	}{
		"":                      {CodeSyntax, 0},
		"{} {}":                 {CodeSyntax, 3},
		"[1,]":                  {CodeTrailingComma, 2},
		"{\"a\": 1 // b\n}":     {CodeComment, 8},
		`{"a": 1, "a": 2}`:      {CodeDuplicateKey, 9},
		`{"a": 1, "\u0061": 2}`: {CodeDuplicateKey, 9},
		`"\ud800"`:              {CodeSyntax, 0},
		"\"\xff\"":              {CodeSyntax, 1},
		"[1e401]":               {CodeNumber, 1},
		"[1" + strings.Repeat(",1", maxValues-1) + "]": {CodeSize, 2*maxValues - 1},
		"[" + strings.Repeat("1", 401) + "]":           {CodeNumber, 1},
		"[" + deep + "]":                               {CodeDepth, maxDepth + 1},
		strings.Repeat(`{"a":`, 1000):                  {CodeDepth, 5 * (maxDepth + 1)},
		`{"a": {"b": [1, {"c": 1, "c": 2}]}}`:          {CodeDuplicateKey, 25},
		"{'a': 1}":                                     {CodeSyntax, 1},
		"\"a\nb\"":                                     {CodeSyntax, 0},
	} {
		n, e := Parse([]byte(src))
		if n != nil || e == nil || e.Code != want.code || e.Offset != want.offset || e.Problem == "" || e.Hint == "" {
			t.Errorf("Parse(%.60q) = %v, %+v, want %s at %d", src, n, e, want.code, want.offset)
		}
	}
}

// FuzzParse: Parse agrees with encoding/json, and each node's offsets delimit its value.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":null}],"c":"\ud83d\ude00"}`, `{"a":1,"a":2}`, ` [ ] `, `"x"`, `[1e400,-0.0]`, "", `{"":{"~/":true}}`, "[1,\n2 ,3]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		n, e := Parse(src)
		if e != nil {
			if n != nil || e.Code == "" || e.Offset < 0 || e.Offset > len(src) {
				t.Errorf("Parse(%q) = %v, %+v", src, n, e)
			}
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(src))
		d.UseNumber()
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(n.Value(), want) {
			t.Errorf("Parse(%q) = %v, want what encoding/json reads, %v (%v)", src, n.Value(), want, err)
		}
		var walk func(*Node)
		walk = func(n *Node) {
			again, e := Parse(src[n.Start:n.End])
			if e != nil || !reflect.DeepEqual(again.Value(), n.Value()) {
				t.Errorf("Parse(%q) has %v at %d to %d, where %q stands", src, n.Value(), n.Start, n.End, src[n.Start:n.End])
			}
			for _, child := range n.Children() {
				walk(child)
			}
		}
		walk(n)
		text := Canonical(n.Value())
		if again, e := Parse(text); e != nil || !bytes.Equal(Canonical(again.Value()), text) {
			t.Errorf("Canonical of %q is %s, which is read as %v (%v)", src, text, again, e)
		}
	})
}
