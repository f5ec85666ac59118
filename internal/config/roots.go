package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
)

// packs reads the roots.
func (f *fileReader) packs(v *yaml.Node) {
	if node.IsNull(v) {
		return
	}
	for i, item := range f.Items(v, "packs") {
		path := fmt.Sprintf("packs[%d]", i)
		root := Root{Trust: TrustUser, Source: FromFile}
		ok := true
		if node.Value(item).Kind == yaml.MappingNode {
			ok = f.root(item, path, &root)
		} else if s, isText := f.Text(item, path); isText {
			ok = f.rootPath(item, path, s, &root)
		} else {
			ok = false
		}
		if ok {
			f.cfg.Packs = append(f.cfg.Packs, root)
		}
	}
}

func (f *fileReader) rootPath(v *yaml.Node, path, s string, root *Root) bool {
	p, wrong := f.base.Resolve(s)
	if wrong != "" {
		f.Problem(node.At(v), path, "is "+problem.Show(s)+"; "+wrong)
		return false
	}
	root.Path = p
	return true
}

// root reads a root that is written as a mapping.
func (f *fileReader) root(item *yaml.Node, path string, root *Root) (ok bool) {
	known := []string{"path", "attach", "trust", "entry", "docs"}
	before := len(f.problems)
	named := false
	f.Mapping(item, path, func(k, v *yaml.Node, path string) {
		switch node.Value(k).Value {
		case "path":
			named = true
			if s, ok := f.Text(v, path); ok {
				f.rootPath(v, path, s, root)
			}
		case "attach":
			f.attach(v, path, &root.Attach)
		case "trust":
			if s, ok := f.Text(v, path); ok {
				if wrong := checkWord(s, []string{TrustUser, TrustUntrusted}); wrong != "" {
					f.Problem(node.At(v), path, "is "+problem.Show(s)+"; "+wrong)
				}
				root.Trust = s
			}
		case "entry":
			root.Entry = map[string]string{}
			f.folders(v, path, func(dir string, v *yaml.Node, path string) {
				if s, ok := f.local(v, path, "a file of that folder"); ok {
					root.Entry[dir] = s
				}
			})
		case "docs":
			root.Docs = map[string][]string{}
			f.folders(v, path, func(dir string, v *yaml.Node, path string) {
				for i, doc := range f.Items(v, path) {
					if s, ok := f.local(doc, fmt.Sprintf("%s[%d]", path, i), "a file of that folder"); ok {
						root.Docs[dir] = append(root.Docs[dir], s)
					}
				}
			})
		default:
			f.Problem(node.At(k), path, "unknown key"+problem.DidYouMean(node.Value(k).Value, known, nil))
		}
	})
	if !named {
		f.Problem(node.At(item), path, "has no path; add path: FOLDER")
	}
	return len(f.problems) == before
}

func (f *fileReader) attach(v *yaml.Node, path string, a *Attach) {
	if n := node.Value(v); n.Kind == yaml.SequenceNode {
		for i, item := range n.Content {
			path := fmt.Sprintf("%s[%d]", path, i)
			if s, ok := f.Text(item, path); ok {
				if strings.TrimSpace(s) == "" {
					f.Problem(node.At(item), path, "is empty; want a pack id")
				}
				a.IDs = append(a.IDs, s)
			}
		}
		return
	}
	switch s, ok := f.Text(v, path); {
	case !ok:
	case s == "all":
		a.All = true
	case s != "none":
		f.Problem(node.At(v), path, "is "+problem.Show(s)+"; want all, none, or a list of pack ids")
	}
}

// folders calls each for the entries of a mapping whose keys are folders of
// packs.
func (f *fileReader) folders(v *yaml.Node, path string, each func(dir string, v *yaml.Node, path string)) {
	f.Mapping(v, path, func(k, v *yaml.Node, path string) {
		if dir, ok := f.local(k, path, "a folder below the root's path"); ok {
			each(dir, v, path)
		}
	})
}

// local returns a clean path with slashes that stays inside its folder.
func (f *fileReader) local(v *yaml.Node, path, want string) (string, bool) {
	s, ok := f.Text(v, path)
	if !ok {
		return "", false
	}
	if !filepath.IsLocal(s) || strings.ContainsRune(s, 0) {
		f.Problem(node.At(v), path, "is "+problem.Show(s)+"; want the relative path of "+want)
		return "", false
	}
	return filepath.ToSlash(filepath.Clean(s)), true
}
