package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
)

// Roles say what people may do, besides answering questions.
type Roles struct {
	Use []approvers.Who // who may make calls; empty: everyone who can reach the server
}

// approvers reads who may allow which calls.
func (f *fileReader) approvers(v *yaml.Node) {
	f.cfg.Approvers = append(f.cfg.Approvers, mappings(f, v, approversKey, `{packs: ["prod/*"], who: ["group:sre"]}`, f.approver)...)
}

func (f *fileReader) approver(item *yaml.Node, path string) approvers.Rule {
	r := approvers.Rule{Where: fmt.Sprintf("%s:%d", filepath.Base(f.Name), item.Line)}
	before := len(f.problems)
	f.Mapping(item, path, func(k, v *yaml.Node, path string) {
		switch name := node.Value(k).Value; name {
		case "packs":
			f.named(v, path, func() {
				for i, pack := range f.Items(v, path) {
					var pattern string
					f.pattern(pack, fmt.Sprintf("%s[%d]", path, i), wantPacks, &pattern)
					r.Packs = append(r.Packs, pattern)
				}
			})
		case "kinds":
			f.named(v, path, func() { f.Words(v, path, &r.Kinds, kind) })
		case "who":
			f.named(v, path, func() { f.who(v, path, &r.Who) })
		case "not_self":
			r.NotSelf = f.Bool(v, path)
		default:
			f.Problem(node.At(k), path, "unknown key"+problem.DidYouMean(name, []string{"packs", "kinds", "who", "not_self"}, nil))
		}
	})
	switch onlyAsker := slices.Equal(r.Who, []approvers.Who{{Kind: approvers.Asker}}); {
	case len(f.problems) > before:
	case len(r.Who) == 0:
		f.Problem(node.At(item), path, `names nobody; add who, such as ["group:sre"]`)
	case onlyAsker && r.NotSelf:
		f.Problem(node.At(item), path, "lets nobody answer: it names the person who asks and leaves them out")
	}
	return r
}

// named reads a list that must not be empty, since an empty one would apply to every
// call.
func (f *fileReader) named(v *yaml.Node, path string, read func()) {
	if n := node.Value(v); node.IsNull(v) || n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		f.Problem(node.At(v), path, "is empty; name at least one, or remove it")
		return
	}
	read()
}

// who reads a list of people and groups.
func (f *fileReader) who(v *yaml.Node, path string, to *[]approvers.Who) {
	if node.IsNull(v) {
		return
	}
	var words []string
	f.Words(v, path, &words, func(s string) (string, string) {
		w, err := approvers.ParseWho(s)
		if err != nil {
			return "", err.Error()
		}
		*to = append(*to, w)
		return s, ""
	})
}

// groupName checks the name of a group of a fixed token.
func groupName(s string) (name, wrong string) {
	if s == "" || strings.TrimSpace(s) != s || len(s) > 256 {
		return "", "want the name of a group"
	}
	return s, ""
}
