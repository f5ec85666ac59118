package config

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
)

// file applies the content of a configuration file to the configuration.
func (l *loader) file(name, dir string, data []byte) {
	f := &fileReader{loader: l, Reader: &node.Reader{Name: name, Report: l.add}, base: places.Base{Dir: dir, Home: l.cwd.Home, GOOS: l.cwd.GOOS}}
	root := f.Parse(data)
	if root == nil {
		return
	}
	f.Mapping(root, "", func(k, v *yaml.Node, name string) {
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
			if node.IsNull(v) {
				return // a section whose lines are all comments
			}
			f.Mapping(v, name, func(k, v *yaml.Node, path string) {
				switch path {
				case oidcSection, containerSection:
					if !node.IsNull(v) {
						f.Mapping(v, path, func(k, v *yaml.Node, inner string) { f.scalarKey(k, v, path, inner) })
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
	*node.Reader
	base places.Base
}

// scalarKey sets the key path, which is in section.
func (f *fileReader) scalarKey(k, v *yaml.Node, section, path string) {
	i := slices.IndexFunc(f.keys, func(k key) bool { return k.path == path })
	if i < 0 {
		f.unknown(k, section, path)
		return
	}
	f.origin[path] = f.Where(node.At(v))
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
	f.Problem(node.At(k), path, "unknown key"+problem.DidYouMean(node.Value(k).Value, siblings, paths()))
}

// scalar sets a scalar key.
func (f *fileReader) scalar(v *yaml.Node, k key) {
	if node.IsNull(v) {
		f.Problem(node.At(v), k.path, "has no value; give it one, or remove the line")
		return
	}
	n := node.Value(v)
	text := n.Value
	is := func(value, wrong string) string {
		if k.secret {
			return wrong
		}
		return "is " + value + "; " + wrong
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(k.tags, n.ShortTag()) {
		f.Problem(node.At(v), k.path, is(node.KindOf(v), k.want))
		return
	}
	if wrong := k.set(f.cfg, text, f.base); wrong != "" {
		f.Problem(node.At(v), k.path, is(problem.Show(text), wrong))
	}
}

// list sets a key whose value is a list of words.
func (f *fileReader) list(v *yaml.Node, k key) {
	items := f.Items(v, k.path)
	if items == nil {
		return
	}
	k.clear(f.cfg)
	for i, item := range items {
		path := fmt.Sprintf("%s[%d]", k.path, i)
		s, ok := f.Text(item, path)
		if !ok {
			continue
		}
		if wrong := k.set(f.cfg, s, f.base); wrong != "" {
			f.Problem(node.At(item), path, "is "+problem.Show(s)+"; "+wrong)
		}
	}
	if len(items) == 0 && !k.none {
		f.Problem(node.At(v), k.path, "is an empty list; name at least one")
	}
}

// context reads values for tools. They may be secrets, so no message shows them.
func (f *fileReader) context(v *yaml.Node) {
	if node.IsNull(v) {
		return
	}
	f.Mapping(v, "context", func(k, v *yaml.Node, path string) {
		n := node.Value(v)
		switch {
		case node.Value(k).Value == "":
			f.Problem(node.At(k), "context", "a key is empty; want a name")
		case n.Kind != yaml.ScalarNode || node.IsNull(v):
			f.Problem(node.At(v), path, "want text, a number, or true or false")
		default:
			f.cfg.Context[node.Value(k).Value] = n.Value
		}
	})
}

// mappings reads a list of mappings, such as like. It calls read for each, and returns
// those in which nothing is wrong.
func mappings[T any](f *fileReader, v *yaml.Node, path, like string, read func(item *yaml.Node, path string) T) (all []T) {
	if node.IsNull(v) {
		return nil
	}
	for i, item := range f.Items(v, path) {
		path, before := fmt.Sprintf("%s[%d]", path, i), len(f.problems)
		if node.Value(item).Kind != yaml.MappingNode {
			f.Problem(node.At(item), path, "is "+node.What(item)+"; want a mapping, such as "+like)
			continue
		}
		if one := read(item, path); len(f.problems) == before {
			all = append(all, one)
		}
	}
	return all
}
