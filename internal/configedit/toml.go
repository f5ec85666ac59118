package configedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// TOML returns the format for TOML 1.0. Only entries that are tables of their own can
// be changed; an inline table, or one with dotted keys, is [ErrShape].
func TOML() *Format {
	return &Format{decode: decodeTOML, set: setTOML, remove: removeTOML, write: func(path []string, value any) string {
		text, _ := setTOML(nil, path, value)
		return string(text)
	}}
}

func decodeTOML(text []byte) (map[string]any, error) {
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		if e, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := e.Position()
			return nil, &SyntaxError{line, column, strings.TrimPrefix(e.Error(), "toml: ")}
		}
		return nil, err
	}
	if len(tree) == 0 {
		return nil, nil
	}
	return asJSON(tree).(map[string]any), nil
}

// asJSON returns a decoded value with the types of encoding/json. Dates stay
// unchanged.
func asJSON(value any) any {
	switch v := value.(type) {
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
		}
	case []any:
		for i := range v {
			v[i] = asJSON(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = asJSON(v[key])
		}
	}
	return value
}

// A tomlTable is the head of a table with its keys.
type tomlTable struct {
	path []string
	from int // of the line of its head
	end  int // behind the line of its head, or of its last key
	keys []tomlKey
}

type tomlKey struct {
	path     []string // within the table
	from     int      // of its line
	value    int      // where its value begins
	valueEnd int
}

// tomlTables returns the tables of text in their order.
func tomlTables(text []byte) ([]tomlTable, error) {
	var p unstable.Parser
	p.Reset(text)
	var all []tomlTable
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable && e.Kind != unstable.KeyValue {
			continue
		}
		var path []string
		at := -1 // of the last part of the key
		for it := e.Key(); it.Next(); {
			path = append(path, string(it.Node().Data))
			at = int(it.Node().Raw.Offset)
		}
		from := bytes.LastIndexByte(text[:at], '\n') + 1
		if e.Kind != unstable.KeyValue {
			all = append(all, tomlTable{path: path, from: from, end: lineEnd(text, at)})
			continue
		}
		if len(all) == 0 {
			continue // above all tables, where nothing of ours is
		}
		table := &all[len(all)-1]
		begin, end, ok := valueAt(text, at)
		if !ok {
			return nil, ErrShape
		}
		table.keys = append(table.keys, tomlKey{path: path, from: from, value: begin, valueEnd: end})
		table.end = lineEnd(text, end)
	}
	return all, p.Error()
}

// lineEnd is behind the newline of the line of offset.
func lineEnd(text []byte, offset int) int {
	if n := bytes.IndexByte(text[offset:], '\n'); n >= 0 {
		return offset + n + 1
	}
	return len(text)
}

var valueBegins = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^=\n]*=[ \t]*`) })

// valueAt returns where the value of the key at offset is. The parser says where a
// value begins only for some kinds, and where it ends for fewer, so the end is
// found by trying: it is the first line on which the value is complete, without
// its comment.
func valueAt(text []byte, key int) (from, end int, ok bool) {
	m := valueBegins().FindIndex(text[key:])
	if m == nil {
		return 0, 0, false
	}
	from = key + m[1]
	for stop := lineEnd(text, from); ; stop = lineEnd(text, stop) {
		line := bytes.TrimRight(text[from:stop], "\r\n")
		if whole, ok := oneValue(line); ok {
			// A comment begins at a # outside quotes: cut the line as far as its value stays
			// the same.
			best := len(bytes.TrimRight(line, " \t"))
			for i, b := range line {
				if b != '#' {
					continue
				}
				if v, ok := oneValue(line[:i]); ok && reflect.DeepEqual(v, whole) {
					best = len(bytes.TrimRight(line[:i], " \t"))
					break
				}
			}
			return from, from + best, true
		}
		if stop == len(text) {
			return 0, 0, false
		}
	}
}

func oneValue(text []byte) (any, bool) {
	var tree map[string]any
	err := toml.Unmarshal(slices.Concat([]byte("x = "), text), &tree)
	return tree["x"], err == nil && len(tree) == 1
}

func setTOML(text []byte, path []string, value any) ([]byte, error) {
	tables, err := tomlTables(text)
	if err != nil {
		return nil, err
	}
	nl := newline(text)
	if object, ok := value.(Object); ok {
		out := bytes.TrimRight(text, " \t\r\n")
		if len(out) > 0 {
			out = slices.Concat(out, []byte(nl+nl))
		}
		return append(slices.Clip(out), strings.ReplaceAll(tomlTableText(path, object), "\n", nl)...), nil
	}
	if len(path) < 2 {
		return nil, ErrShape
	}
	table, key := path[:len(path)-1], path[len(path)-1]
	i := slices.IndexFunc(tables, func(t tomlTable) bool { return slices.Equal(t.path, table) })
	if i < 0 {
		return nil, ErrShape
	}
	t := tables[i]
	for _, k := range t.keys {
		if slices.Equal(k.path, []string{key}) {
			return slices.Concat(text[:k.value], []byte(inlineTOML(value)), text[k.valueEnd:]), nil
		}
	}
	line := tomlName(key) + " = " + inlineTOML(value) + nl
	if t.end > 0 && text[t.end-1] != '\n' {
		line = nl + line
	}
	return slices.Concat(text[:t.end], []byte(line), text[t.end:]), nil
}

// removeTOML removes the table at path and those below it, or the key of a table.
func removeTOML(text []byte, path []string) ([]byte, error) {
	tables, err := tomlTables(text)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(text)
	for _, t := range slices.Backward(tables) {
		if slices.Equal(t.path, path[:len(path)-1]) {
			for _, k := range slices.Backward(t.keys) {
				if slices.Equal(k.path, path[len(path)-1:]) {
					out = slices.Delete(out, k.from, lineEnd(out, k.valueEnd))
				}
			}
		}
		if len(t.path) < len(path) || !slices.Equal(t.path[:len(path)], path) {
			continue
		}
		from := t.from
		// Include the empty line above it.
		if above := bytes.TrimSuffix(bytes.TrimSuffix(out[:from], []byte("\n")), []byte("\r")); len(above) < from && bytes.HasSuffix(above, []byte("\n")) {
			from = len(above)
		}
		out = slices.Delete(out, from, t.end)
	}
	return out, nil
}

// tomlTableText is a table, with those below it.
func tomlTableText(path []string, object Object) string {
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = tomlName(name)
	}
	var b, below strings.Builder
	b.WriteString("[" + strings.Join(names, ".") + "]\n")
	for _, m := range object {
		if inner, ok := m.Value.(Object); ok {
			below.WriteString("\n" + tomlTableText(append(slices.Clip(path), m.Key), inner))
			continue
		}
		b.WriteString(tomlName(m.Key) + " = " + inlineTOML(m.Value) + "\n")
	}
	return b.String() + below.String()
}

var bareKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

func tomlName(key string) string {
	if bareKey().MatchString(key) {
		return key
	}
	return tomlString(key)
}

func inlineTOML(value any) string {
	switch v := value.(type) {
	case string:
		return tomlString(v)
	case []string:
		return inlineTOML(plain(v))
	case []any:
		all := make([]string, len(v))
		for i, item := range v {
			all[i] = inlineTOML(item)
		}
		return "[" + strings.Join(all, ", ") + "]"
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	default:
		return ""
	}
}

// tomlString returns a basic string, whose escapes are those of JSON.
func tomlString(s string) string {
	return strings.ReplaceAll(inlineJSON(s), "\x7f", `\u007f`)
}
