package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxFile bounds the configuration file.
const maxFile = mib

// readFile reads the file at path, which may be a link. The result is nil if
// there is no file. A file that other users can write is refused: its
// writer decides which packs are trusted.
func readFile(path string) (data []byte, wrong string) {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "there is no such file"
	case err != nil:
		return nil, cause(err)
	case fi.IsDir():
		return nil, "is a folder; name a file"
	case !fi.Mode().IsRegular():
		return nil, "is not a regular file"
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close() // only read from
	if fi, err = f.Stat(); err != nil {
		return nil, cause(err)
	}
	if wrong := notOurs(fi); wrong != "" {
		return nil, wrong
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, cause(err)
	case len(data) > maxFile:
		return nil, "is larger than " + sizeText(maxFile)
	}
	return data, ""
}

// cause returns err without the path, which the message already has.
func cause(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// file applies the content of a configuration file to the configuration.
func (l *loader) file(name, dir string, data []byte) {
	f := &fileReader{loader: l, name: name, base: place{dir: dir, home: l.cwd.home, goos: l.cwd.goos}}
	if at, ok := invalidUTF8(data); !ok {
		f.problem(at, "", "is not UTF-8 text; save the file as UTF-8")
		return
	}
	dec := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		f.syntax(err)
		return
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		f.syntax(err)
		return
	default:
		f.problem(at(&second), "", "a second document begins here; one file is one document")
		return
	}
	root := doc.Content[0]
	if isNull(root) {
		return
	}
	f.mapping(root, "", func(k, v *yaml.Node, name string) {
		switch {
		case name == "packs":
			f.packs(v)
		case name == rulesKey:
			f.rules(v)
		case name == approversKey:
			f.approvers(v)
		case name == "context":
			f.context(v)
		case slices.Contains(sections(), name):
			if isNull(v) {
				return // a section whose lines are all comments
			}
			f.mapping(v, name, func(k, v *yaml.Node, path string) {
				switch path {
				case oidcSection, containerSection:
					if !isNull(v) {
						f.mapping(v, path, func(k, v *yaml.Node, inner string) { f.scalarKey(k, v, path, inner) })
					}
				case grantsKey:
					f.openings(v, path)
				case runnersKey:
					f.runners(v, path)
				case protectKey:
					f.protect(v, path)
				case unprotectKey:
					f.unprotect(v, path)
				case useKey:
					f.who(v, path, &f.cfg.Roles.Use)
				case tokensKey:
					f.tokens(v, path)
				default:
					f.scalarKey(k, v, name, path)
				}
			})
		default:
			f.scalarKey(k, v, "", name)
		}
	})
}

// A fileReader walks the nodes of one file.
type fileReader struct {
	*loader
	name string
	base place
}

// A position is a line and a column, both from 1; column 0 means unknown.
type position struct{ line, column int }

func at(n *yaml.Node) position { return position{n.Line, n.Column} }

func (f *fileReader) where(p position) string {
	switch {
	case p.line == 0:
		return f.name
	case p.column == 0:
		return fmt.Sprintf("%s:%d", f.name, p.line)
	}
	return fmt.Sprintf("%s:%d:%d", f.name, p.line, p.column)
}

func (f *fileReader) problem(p position, key, message string) {
	f.add(f.where(p), key, message)
}

// syntax reports an error of the YAML parser, such as "yaml: line 3: did not
// find …".
func (f *fileReader) syntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	var p position
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if digits, rest, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				p.line, message = n, rest
			}
		}
	}
	if strings.Contains(message, "expected alphabetic or numeric character") {
		message += "; a word that begins with * or & needs quotes, such as \"*\""
	}
	f.problem(p, "", "is not YAML: "+message)
}

func invalidUTF8(data []byte) (position, bool) {
	p := position{1, 1}
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			return p, false
		case r == '\n':
			p = position{p.line + 1, 1}
		default:
			p.column++
		}
		data = data[n:]
	}
	return position{}, true
}

// value returns the node that n refers to if it is an alias, or else n.
func value(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	v := value(n)
	return v.Kind == yaml.ScalarNode && v.ShortTag() == "!!null"
}

// what names the kind of a value in words.
func what(n *yaml.Node) string {
	switch v := value(n); v.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		if isNull(v) {
			return "empty"
		}
		return show(v.Value)
	}
}

// mapping calls each for the entries of n, whose whole path is prefix. It
// reports a key that occurs twice or is not text as a problem, and skips it.
func (f *fileReader) mapping(n *yaml.Node, prefix string, each func(k, v *yaml.Node, path string)) {
	m := value(n)
	if m.Kind != yaml.MappingNode {
		f.problem(at(n), prefix, "is "+what(n)+"; want a mapping of keys to values")
		return
	}
	lines := map[string]int{} // :: key → its line
	for i := 0; i+1 < len(m.Content); i += 2 {
		k, v := m.Content[i], m.Content[i+1]
		if value(k).Kind != yaml.ScalarNode {
			f.problem(at(k), prefix, "a key is "+what(k)+"; want a word")
			continue
		}
		name := value(k).Value
		path := showKey(name)
		if prefix != "" {
			path = prefix + "." + path
		}
		if k.Tag == "!!merge" {
			f.problem(at(k), path, "merging is not supported; write the keys out")
			continue
		}
		if line, twice := lines[name]; twice {
			f.problem(at(k), path, fmt.Sprintf("is there twice; the first is in line %d", line))
			continue
		}
		lines[name] = k.Line
		each(k, v, path)
	}
}

// scalarKey sets the key path, which is in section.
func (f *fileReader) scalarKey(k, v *yaml.Node, section, path string) {
	i := slices.IndexFunc(f.keys, func(k key) bool { return k.path == path })
	if i < 0 {
		f.unknown(k, section, path)
		return
	}
	f.origin[path] = f.where(at(v))
	if f.keys[i].list != "" {
		f.list(v, f.keys[i])
		return
	}
	f.scalar(v, f.keys[i])
}

func (f *fileReader) unknown(k *yaml.Node, section, path string) {
	var siblings []string
	for _, known := range append(paths(), sections()...) {
		prefix, name := "", known
		if i := strings.LastIndexByte(known, '.'); i >= 0 {
			prefix, name = known[:i], known[i+1:]
		}
		if prefix == section {
			siblings = append(siblings, name)
		}
	}
	f.problem(at(k), path, "unknown key"+didYouMean(value(k).Value, siblings, paths()))
}

// scalar sets a scalar key.
func (f *fileReader) scalar(v *yaml.Node, k key) {
	if isNull(v) {
		f.problem(at(v), k.path, "has no value; give it one, or remove the line")
		return
	}
	n := value(v)
	text := n.Value
	is := func(value, wrong string) string {
		if k.secret {
			return wrong
		}
		return "is " + value + "; " + wrong
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(k.tags, n.ShortTag()) {
		f.problem(at(v), k.path, is(kindOf(v), k.want))
		return
	}
	if wrong := k.set(f.cfg, text, f.base); wrong != "" {
		f.problem(at(v), k.path, is(show(text), wrong))
	}
}

// kindOf is what, but names the kind of a scalar too.
func kindOf(n *yaml.Node) string {
	v := value(n)
	if v.Kind == yaml.ScalarNode {
		switch v.ShortTag() {
		case tagInt, "!!float":
			return "the number " + show(v.Value)
		case tagBool:
			return "the truth value " + show(v.Value)
		case tagString:
			return "the text " + show(v.Value)
		}
	}
	return what(n)
}

// list sets a key whose value is a list of words.
func (f *fileReader) list(v *yaml.Node, k key) {
	items := f.items(v, k.path)
	if items == nil {
		return
	}
	f.clear(k)
	for i, item := range items {
		path := fmt.Sprintf("%s[%d]", k.path, i)
		s, ok := f.text(item, path)
		if !ok {
			continue
		}
		if wrong := k.set(f.cfg, s, f.base); wrong != "" {
			f.problem(at(item), path, "is "+show(s)+"; "+wrong)
		}
	}
	if len(items) == 0 && !k.none {
		f.problem(at(v), k.path, "is an empty list; name at least one")
	}
}

// items returns the elements of a list. If v is not a list, it returns nil and
// reports a problem.
func (f *fileReader) items(v *yaml.Node, path string) []*yaml.Node {
	n := value(v)
	if n.Kind != yaml.SequenceNode {
		f.problem(at(v), path, "is "+what(v)+"; want a list")
		return nil
	}
	if n.Content == nil {
		return []*yaml.Node{}
	}
	return n.Content
}

// text returns v's text, or reports a problem if v is not text.
func (f *fileReader) text(v *yaml.Node, path string) (string, bool) {
	n := value(v)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tagString {
		f.problem(at(v), path, "is "+kindOf(v)+"; want text")
		return "", false
	}
	return n.Value, true
}

// context reads values for tools. They may be secrets, so no message shows them.
func (f *fileReader) context(v *yaml.Node) {
	if isNull(v) {
		return
	}
	f.mapping(v, "context", func(k, v *yaml.Node, path string) {
		n := value(v)
		switch {
		case value(k).Value == "":
			f.problem(at(k), "context", "a key is empty; want a name")
		case n.Kind != yaml.ScalarNode || isNull(v):
			f.problem(at(v), path, "want text, a number, or true or false")
		default:
			f.cfg.Context[value(k).Value] = n.Value
		}
	})
}
