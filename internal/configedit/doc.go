// Package configedit changes single values in a person's configuration file, and
// keeps every other byte: comments, order, indentation and line endings.
//
// It reads JSON with comments, TOML, and the lists of YAML. A file that it does not understand is
// an error, and so is a change that would affect anything else. It does not know what keys mean.
package configedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// A Format is a kind of configuration file.
type Format struct {
	decode func(text []byte) (map[string]any, error)
	set    func(text []byte, path []string, value any) ([]byte, error)
	remove func(text []byte, path []string) ([]byte, error)
	add    func(text []byte, path []string, item any) ([]byte, error)
	drop   func(text []byte, path []string, index int) ([]byte, error)
	write  func(path []string, value any) string
}

// A Member is one key of an [Object].
type Member struct {
	Key   string
	Value any // string, bool, int, []string, []any of these, or Object
}

// An Object is a value with keys, in the order in which they are written.
type Object []Member

// A SyntaxError says where a text is not what its format asks for. Line and Column
// begin at 1.
type SyntaxError struct {
	Line, Column int
	Problem      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// ErrShape is returned for a text that is written in a way that cannot be changed
// in place, such as a TOML table within braces.
var ErrShape = errors.New("the entry is written in a way that cannot be changed in place")

// Get returns the value at path, as encoding/json decodes it into any, with
// [json.Number]; ok is false if there is none.
func (f *Format) Get(text []byte, path ...string) (value any, ok bool, err error) {
	_, text = cutMark(text)
	tree, err := f.decode(text)
	if err != nil {
		return nil, false, err
	}
	value, ok = lookUp(tree, path)
	return value, ok, nil
}

// Set returns text with value at path. A key of an Object that text has already is
// replaced by itself, and its other keys stay. An empty text is an empty file.
func (f *Format) Set(text []byte, path []string, value any) ([]byte, error) {
	mark, text := cutMark(text)
	tree, err := f.decode(text)
	if err != nil {
		return nil, err
	}
	out := text
	for _, leaf := range leaves(tree, path, value) {
		if out, err = f.set(out, leaf.path, leaf.value); err != nil {
			return nil, err
		}
	}
	got, err := f.decode(out)
	if err != nil || !reflect.DeepEqual(got, merged(tree, path, plain(value))) {
		return nil, errors.Join(ErrShape, err)
	}
	return slices.Concat(mark, out), nil
}

// SetExactly is [Format.Set] and removes the keys that value does not have. It also takes
// what [Format.Get] returned once.
func (f *Format) SetExactly(text []byte, path []string, value any) ([]byte, error) {
	out, err := f.Set(text, path, ordered(value))
	if err != nil {
		return nil, err
	}
	have, _, err := f.Get(out, path...)
	if err != nil {
		return nil, err
	}
	want, _ := plain(value).(map[string]any)
	if now, ok := have.(map[string]any); ok {
		for key := range now {
			if _, ok := want[key]; ok {
				continue
			}
			if out, err = f.Remove(out, append(slices.Clip(path), key)); err != nil {
				return nil, err
			}
		}
	}
	if have, _, err = f.Get(out, path...); err != nil || !reflect.DeepEqual(have, plain(value)) {
		return nil, errors.Join(ErrShape, err)
	}
	return out, nil
}

// ordered is a decoded value as [Format.Set] takes it.
func ordered(value any) any {
	m, ok := value.(map[string]any)
	if !ok {
		return value
	}
	var object Object
	for _, key := range slices.Sorted(maps.Keys(m)) {
		object = append(object, Member{key, ordered(m[key])})
	}
	return object
}

// A Difference is one value that [Format.Set] writes.
type Difference struct {
	Path []string
	Had  bool // there is a value
	Old  any  // as [Format.Get] returns it
	New  any  // as it was given to Set, but no Object
}

// Differences returns what Set with the same arguments would write.
func (f *Format) Differences(text []byte, path []string, value any) ([]Difference, error) {
	_, text = cutMark(text)
	tree, err := f.decode(text)
	if err != nil {
		return nil, err
	}
	var all []Difference
	var add func(leaf)
	add = func(l leaf) {
		if object, ok := l.value.(Object); ok {
			for _, m := range object {
				add(leaf{append(slices.Clip(l.path), m.Key), m.Value})
			}
			return
		}
		old, had := lookUp(tree, l.path)
		all = append(all, Difference{l.path, had, old, l.value})
	}
	for _, l := range leaves(tree, path, value) {
		add(l)
	}
	return all, nil
}

// Append returns text with item, a string or an Object, at the end of the list at
// path, unless it is in it already. It is [ErrShape] for TOML.
func (f *Format) Append(text []byte, path []string, item any) ([]byte, error) {
	have, ok, err := f.Get(text, path...)
	if err != nil {
		return nil, err
	}
	if !ok {
		return f.Set(text, path, []any{item})
	}
	list, ok := have.([]any)
	if !ok && have != nil || f.add == nil {
		return nil, ErrShape
	}
	if slices.ContainsFunc(list, func(one any) bool { return reflect.DeepEqual(one, plain(item)) }) {
		return text, nil
	}
	mark, text := cutMark(text)
	out, err := f.add(text, path, item)
	if err != nil {
		return nil, err
	}
	return f.withList(mark, text, out, path, append(slices.Clip(list), plain(item)))
}

// Drop returns text without the item of the list at path that has this index. It is
// [ErrShape] for TOML.
func (f *Format) Drop(text []byte, path []string, index int) ([]byte, error) {
	have, _, err := f.Get(text, path...)
	if err != nil {
		return nil, err
	}
	list, ok := have.([]any)
	if !ok || index >= len(list) || f.drop == nil {
		return nil, ErrShape
	}
	mark, text := cutMark(text)
	out, err := f.drop(text, path, index)
	if err != nil {
		return nil, err
	}
	return f.withList(mark, text, out, path, slices.Delete(slices.Clone(list), index, index+1))
}

// withList returns out if it is text with another list at path.
func (f *Format) withList(mark, text, out []byte, path []string, list []any) ([]byte, error) {
	tree, err := f.decode(text)
	if err != nil {
		return nil, err
	}
	got, err := f.decode(out)
	if err != nil || !reflect.DeepEqual(got, merged(tree, path, list)) {
		return nil, errors.Join(ErrShape, err)
	}
	return slices.Concat(mark, out), nil
}

// Remove returns text without the value at path, which need not be there.
func (f *Format) Remove(text []byte, path []string) ([]byte, error) {
	mark, text := cutMark(text)
	tree, err := f.decode(text)
	if err != nil {
		return nil, err
	}
	if _, ok := lookUp(tree, path); !ok {
		return slices.Concat(mark, text), nil
	}
	out, err := f.remove(text, path)
	if err != nil {
		return nil, err
	}
	// In TOML, a table that is only a name goes with what was in it.
	got, err := f.decode(out)
	_, still := lookUp(got, path)
	if err != nil || still || !reflect.DeepEqual(without(got, path), without(tree, path)) {
		return nil, errors.Join(ErrShape, err)
	}
	return slices.Concat(mark, out), nil
}

// cutMark returns the byte order mark that some programs of Windows begin a file
// with, and what follows.
func cutMark(text []byte) (mark, body []byte) {
	const byteOrderMark = "\ufeff"
	body = bytes.TrimPrefix(text, []byte(byteOrderMark))
	return text[:len(text)-len(body)], body
}

// Write returns value at path as a file of its own, for a person to paste.
func (f *Format) Write(path []string, value any) string { return f.write(path, value) }

// A leaf is a value that is written at once.
type leaf struct {
	path  []string
	value any
}

// leaves splits value at path into what has to be written: the members of an
// object that is there already are written one by one, if they differ.
func leaves(tree map[string]any, path []string, value any) []leaf {
	have, ok := lookUp(tree, path)
	if object, is := value.(Object); is && ok {
		if _, is := have.(map[string]any); is {
			var all []leaf
			for _, m := range object {
				all = append(all, leaves(tree, append(slices.Clip(path), m.Key), m.Value)...)
			}
			return all
		}
	}
	if ok && reflect.DeepEqual(have, plain(value)) {
		return nil
	}
	return []leaf{{path, value}}
}

// plain is value as the decoders return it.
func plain(value any) any {
	switch v := value.(type) {
	case int:
		return json.Number(strconv.Itoa(v))
	case []string:
		all := make([]any, len(v))
		for i, s := range v {
			all[i] = s
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = plain(item)
		}
		return all
	case Object:
		m := make(map[string]any, len(v))
		for _, member := range v {
			m[member.Key] = plain(member.Value)
		}
		return m
	default:
		return value
	}
}

func lookUp(tree map[string]any, path []string) (any, bool) {
	var at any = tree
	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[key]; !ok {
			return nil, false
		}
	}
	return at, true
}

// merged is tree with value at path; the keys of objects are put together.
func merged(tree map[string]any, path []string, value any) map[string]any {
	out := maps.Clone(tree)
	if out == nil {
		out = make(map[string]any)
	}
	if len(path) == 0 {
		for key, v := range value.(map[string]any) {
			out = merged(out, []string{key}, v)
		}
		return out
	}
	below, _ := out[path[0]].(map[string]any)
	if object, is := value.(map[string]any); len(path) > 1 || is && below != nil {
		out[path[0]] = merged(below, path[1:], value)
		if is && len(path) == 1 && len(object) == 0 {
			out[path[0]] = below
		}
	} else {
		out[path[0]] = value
	}
	return out
}

// without is tree without the value at path, and without the objects on the way to
// it that are empty then. It is nil if nothing is left.
func without(tree map[string]any, path []string) map[string]any {
	out := maps.Clone(tree)
	delete(out, path[0])
	if below, ok := tree[path[0]].(map[string]any); ok && len(path) > 1 {
		if below = without(below, path[1:]); below != nil {
			out[path[0]] = below
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// position returns the line and column of an offset.
func position(text []byte, offset int) (line, column int) {
	line, column = 1, 1
	for _, r := range string(text[:min(offset, len(text))]) {
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

// newline is how the lines of text end.
func newline(text []byte) string {
	for i, b := range text {
		if b == '\n' && i > 0 && text[i-1] == '\r' {
			return "\r\n"
		}
	}
	return "\n"
}
