package configedit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tailscale/hujson"
)

// JSON returns the format for JSON with comments and trailing commas.
func JSON() *Format {
	return &Format{decode: decodeJSON, set: setJSON, remove: removeJSON, add: appendJSON, drop: dropJSON, write: func(path []string, value any) string {
		text, _ := setJSON(nil, path, value) // into an empty file, which cannot fail
		return string(text)
	}}
}

// parseJSON returns the tree of text, which must be an object; nil for empty text.
func parseJSON(text []byte) (*hujson.Value, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	v, err := hujson.Parse(slices.Clone(text))
	if err != nil {
		return nil, jsonError(err)
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		line, column := position(text, v.StartOffset)
		return nil, &SyntaxError{line, column, "this is not an object: a file of settings begins with {"}
	}
	return &v, nil
}

// where matches the beginning of the parser's errors.
var where = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^hujson: line (\d+), column (\d+): `) })

func jsonError(err error) error {
	m := where().FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	return &SyntaxError{line, column, strings.TrimPrefix(err.Error(), m[0])}
}

func decodeJSON(text []byte) (map[string]any, error) {
	root, err := parseJSON(text)
	if err != nil || root == nil {
		return nil, err
	}
	if name, at := twice(*root); name != "" {
		line, column := position(text, at)
		return nil, &SyntaxError{line, column, fmt.Sprintf("the key %q occurs twice", name)}
	}
	root.Standardize()
	var tree map[string]any
	dec := json.NewDecoder(bytes.NewReader(root.Pack()))
	dec.UseNumber() // some programs keep numbers that no float64 holds
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	return tree, nil
}

// twice returns a duplicate key in an object, and its offset. Programs differ in
// which of the two they use.
func twice(v hujson.Value) (name string, offset int) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		seen := make(map[string]bool)
		for _, m := range c.Members {
			key := m.Name.Value.(hujson.Literal).String()
			if seen[key] {
				return key, m.Name.StartOffset
			}
			seen[key] = true
			if name, offset = twice(m.Value); name != "" {
				return name, offset
			}
		}
	case *hujson.Array:
		for _, e := range c.Elements {
			if name, offset = twice(e); name != "" {
				return name, offset
			}
		}
	}
	return "", 0
}

func member(o *hujson.Object, key string) *hujson.ObjectMember {
	for i := range o.Members {
		if o.Members[i].Name.Value.(hujson.Literal).String() == key {
			return &o.Members[i]
		}
	}
	return nil
}

// setJSON writes value at path, into existing objects.
func setJSON(text []byte, path []string, value any) ([]byte, error) {
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	if root == nil {
		w := jsonWriter{newline: newline(text), unit: "  "}
		w.value(nested(path, value), "")
		return []byte(w.b.String() + w.newline), nil
	}
	at := *root
	for i, key := range path {
		object, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, ErrShape
		}
		m := member(object, key)
		if m == nil {
			return insertJSON(text, root, at, object, key, nested(path[i+1:], value)), nil
		}
		at = m.Value
	}
	w := jsonWriter{newline: newline(text), unit: indentUnit(text, root), compact: onOneLine(text, at)}
	w.value(value, lineIndent(text, at.StartOffset))
	return slices.Concat(text[:at.StartOffset], []byte(w.b.String()), text[at.EndOffset:]), nil
}

// nested returns value wrapped in objects of one key each.
func nested(path []string, value any) any {
	for _, key := range slices.Backward(path) {
		value = Object{{key, value}}
	}
	return value
}

// insertJSON appends a new member to an object.
func insertJSON(text []byte, root *hujson.Value, at hujson.Value, object *hujson.Object, key string, value any) []byte {
	first, last := 0, (*hujson.Value)(nil)
	if n := len(object.Members); n > 0 {
		first, last = object.Members[0].Name.StartOffset, &object.Members[n-1].Value
	}
	return insert(text, root, at, first, last, func(w *jsonWriter, indent string) { w.member(Member{key, value}, indent) })
}

// insert writes something behind the last value of at, an object or array whose
// first value begins at first. last is nil where there is none.
func insert(text []byte, root *hujson.Value, at hujson.Value, first int, last *hujson.Value, write func(*jsonWriter, string)) []byte {
	w := jsonWriter{newline: newline(text), unit: indentUnit(text, root)}
	end := at.EndOffset - 1 // its bracket
	quiet := len(bytes.TrimRight(text[:end], " \t\r\n"))
	outer := lineIndent(text, at.StartOffset)
	indent := outer + w.unit
	var out bytes.Buffer
	trailing := false
	if last == nil {
		out.Write(text[:quiet])
	} else {
		if startsLine(text, first) {
			indent = lineIndent(text, first)
		}
		w.compact = !bytes.ContainsRune(text[at.StartOffset:at.EndOffset], '\n')
		trailing = last.AfterExtra != nil
		out.Write(text[:last.EndOffset])
		if !trailing {
			out.WriteByte(',')
		}
		out.Write(text[last.EndOffset:quiet])
	}
	if w.compact {
		out.WriteByte(' ')
	} else {
		out.WriteString(w.newline + indent)
	}
	write(&w, indent)
	out.WriteString(w.b.String())
	if trailing {
		out.WriteByte(',')
	}
	if rest := text[quiet:end]; bytes.ContainsRune(rest, '\n') || w.compact {
		out.Write(rest)
	} else {
		out.WriteString(w.newline + outer)
	}
	out.Write(text[end:])
	return out.Bytes()
}

// appendJSON appends an item to the list at path.
func appendJSON(text []byte, path []string, item any) ([]byte, error) {
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	at := *root
	for _, key := range path {
		at = member(at.Value.(*hujson.Object), key).Value
	}
	list, ok := at.Value.(*hujson.Array)
	if !ok {
		return nil, ErrShape
	}
	first, last := 0, (*hujson.Value)(nil)
	if n := len(list.Elements); n > 0 {
		first, last = list.Elements[0].StartOffset, &list.Elements[n-1]
	}
	return insert(text, root, at, first, last, func(w *jsonWriter, indent string) { w.value(item, indent) }), nil
}

func removeJSON(text []byte, path []string) ([]byte, error) {
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	at := *root
	var object *hujson.Object
	for _, key := range path {
		object, _ = at.Value.(*hujson.Object)
		at = member(object, key).Value
	}
	i := slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool { return m.Value.StartOffset == at.StartOffset })
	all := make([]span, len(object.Members))
	for i, m := range object.Members {
		all[i] = span{m.Name.StartOffset, m.Value.EndOffset, m.Value.AfterExtra}
	}
	return cut(text, all, i), nil
}

// dropJSON removes the item of the list at path that has this index.
func dropJSON(text []byte, path []string, index int) ([]byte, error) {
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	at := *root
	for _, key := range path {
		at = member(at.Value.(*hujson.Object), key).Value
	}
	list := at.Value.(*hujson.Array)
	all := make([]span, len(list.Elements))
	for i, e := range list.Elements {
		all[i] = span{e.StartOffset, e.EndOffset, e.AfterExtra}
	}
	return cut(text, all, index), nil
}

// A span is where a member of an object or list is.
type span struct {
	from, to int
	after    hujson.Extra // text before its comma; nil: no comma
}

// cut returns text without one member of an object or list, and without the comma
// that separated it.
func cut(text []byte, all []span, i int) []byte {
	one := all[i]
	begin, end := len(bytes.TrimRight(text[:one.from], " \t\r\n")), one.to
	last := i == len(all)-1
	if !last || one.after != nil {
		end += len(one.after) + 1 // and its comma
	}
	out := slices.Concat(text[:begin], text[end:])
	switch {
	case last && i > 0 && one.after == nil: // what is before it is the last now, and has no comma
		before := all[i-1]
		comma := before.to + len(before.after)
		out = slices.Delete(out, comma, comma+1)
	case last && i == 0 && bytes.IndexByte([]byte("{["), text[begin-1]) >= 0:
		if rest := out[begin:]; len(rest) > len(bytes.TrimLeft(rest, " \t\r\n")) {
			bracket := begin + len(rest) - len(bytes.TrimLeft(rest, " \t\r\n"))
			if out[bracket] == '}' || out[bracket] == ']' {
				out = slices.Delete(out, begin, bracket)
			}
		}
	}
	return out
}

// indentUnit returns the indentation of one level.
func indentUnit(text []byte, root *hujson.Value) string {
	if o := root.Value.(*hujson.Object); len(o.Members) > 0 && startsLine(text, o.Members[0].Name.StartOffset) {
		if unit := lineIndent(text, o.Members[0].Name.StartOffset); unit != "" {
			return unit
		}
	}
	return "  "
}

func onOneLine(text []byte, v hujson.Value) bool {
	c := text[v.StartOffset:v.EndOffset]
	return len(c) > 2 && !bytes.ContainsRune(c, '\n')
}

// startsLine reports whether only blanks are before offset on its line.
func startsLine(text []byte, offset int) bool {
	line := text[bytes.LastIndexByte(text[:offset], '\n')+1 : offset]
	return len(bytes.TrimLeft(line, " \t")) == 0
}

// lineIndent returns the indentation of the line at offset.
func lineIndent(text []byte, offset int) string {
	line := text[bytes.LastIndexByte(text[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// A jsonWriter writes values over several lines, or compact on one.
type jsonWriter struct {
	b             strings.Builder
	newline, unit string
	compact       bool
}

func (w *jsonWriter) value(value any, indent string) {
	object, ok := value.(Object)
	if !ok {
		w.b.WriteString(inlineJSON(value))
		return
	}
	if len(object) == 0 {
		w.b.WriteString("{}")
		return
	}
	w.b.WriteByte('{')
	for i, m := range object {
		if i > 0 {
			w.b.WriteByte(',')
		}
		switch {
		case !w.compact:
			w.b.WriteString(w.newline + indent + w.unit)
		case i > 0:
			w.b.WriteByte(' ')
		}
		w.member(m, indent+w.unit)
	}
	if !w.compact {
		w.b.WriteString(w.newline + indent)
	}
	w.b.WriteByte('}')
}

func (w *jsonWriter) member(m Member, indent string) {
	w.b.WriteString(inlineJSON(m.Key) + ": ")
	w.value(m.Value, indent)
}

// inlineJSON writes a value on one line: lists of words are short.
func inlineJSON(value any) string {
	list, ok := plain(value).([]any)
	if ok {
		all := make([]string, len(list))
		for i, item := range list {
			all[i] = inlineJSON(item)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // a string, a number or a truth value
	return strings.TrimSuffix(b.String(), "\n")
}
