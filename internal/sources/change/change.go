// Package change says what it means for a person when a pack is replaced by another
// version: which files and tools are other ones, and what its tools would do that they
// did not do before.
//
// It decides nothing and fetches nothing. It compares two folders.
package change

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/entrydoc"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// A Kind is what became of a file or a tool.
type Kind string

// The kinds.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// A Change is what differs between two versions of a pack.
type Change struct {
	Pack  []string `json:"pack,omitempty"` // of its name and description: "description: old → new"
	Files []File   `json:"files"`
	Tools []Tool   `json:"tools"`
}

// A File is one that differs.
type File struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	Mode bool   `json:"mode,omitempty"` // it may be executed now, or no longer
	// Diff is a unified diff of a text that is new or changed, safe to show, without the
	// lines that name the files. It is empty for what comes in for the first time.
	Diff string `json:"diff,omitempty"`
	Cut  int    `json:"cut,omitempty"` // how many lines are not in Diff
}

// A Tool is one that differs.
type Tool struct {
	Name  string   `json:"name"`
	Kind  Kind     `json:"kind"`
	Facts []string `json:"facts"` // what it runs and may do, or what of that is new: "network: none → full"
}

// A Version is one folder with a pack in it, read.
type Version struct {
	pack  *packs.Pack // nil for nothing at all
	tree  *packfs.Tree
	tools map[string]*tools.Tool
}

// Read reads the version of a pack that is in a folder.
func Read(ctx context.Context, dir string) (*Version, error) {
	found, err := packs.Scan(ctx, packs.Options{Roots: []packs.Root{{Dir: dir, Source: "change", Named: true}}, Patient: true})
	if err != nil {
		return nil, err
	}
	d, err := packfs.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	tree, err := d.Digest(ctx, nil)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	return Of(found, dir, tree)
}

// Of is [Read] for a folder of which the packs and the files are known; no link leads
// to dir.
func Of(found *packs.Catalog, dir string, tree *packfs.Tree) (*Version, error) {
	all := found.All()
	i := slices.IndexFunc(all, func(p *packs.Pack) bool { return p.Dir == dir })
	if i < 0 {
		return nil, fmt.Errorf("%q is not a pack", dir)
	}
	v := &Version{pack: all[i], tree: tree, tools: map[string]*tools.Tool{}}
	set, _, err := toolfiles.New(tools.Limits{}, "").Load(v.pack)
	if err != nil {
		return nil, err
	}
	if set != nil {
		for _, t := range set.Tools {
			v.tools[t.Name] = t
		}
	}
	return v, nil
}

// Number returns the version that the pack's document says; "" for none.
func (v *Version) Number() string { return entrydoc.MetadataOf(v.pack).Version }

// Between returns what differs. old is nil for a pack that is new: everything is
// added. It reads the files of both versions again, which must still be there.
func Between(old, now *Version) (*Change, error) {
	isNew := old == nil
	if isNew {
		old = &Version{tree: &packfs.Tree{}}
	}
	c := &Change{Files: files(old.tree, now.tree), Tools: []Tool{}}
	if !isNew {
		if err := compare(old, now, c.Files); err != nil {
			return nil, err
		}
		c.Pack = append(c.Pack, differs("name", old.pack.Name, now.pack.Name)...)
		c.Pack = append(c.Pack, differs("description", old.pack.Description, now.pack.Description)...)
	}
	for _, name := range slices.Sorted(maps.Keys(now.tools)) {
		before, now := old.tools[name], now.tools[name]
		switch {
		case before == nil:
			c.Tools = append(c.Tools, Tool{name, Added, facts(now)})
		case before.Digest() != now.Digest():
			c.Tools = append(c.Tools, Tool{name, Changed, between(before, now)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.tools)) {
		if now.tools[name] == nil {
			c.Tools = append(c.Tools, Tool{name, Removed, []string{}})
		}
	}
	return c, nil
}

// Lines are what differs, a line each: what the pack says of itself, what its tools do,
// its files, and then the lines of these. The texts are the pack's, as they are.
func (c *Change) Lines() []string {
	out := slices.Clone(c.Pack)
	for _, t := range c.Tools {
		if len(t.Facts) == 0 {
			out = append(out, fmt.Sprintf("tool %s: %s", t.Name, t.Kind))
		}
		for _, f := range t.Facts {
			out = append(out, fmt.Sprintf("tool %s, %s: %s", t.Name, t.Kind, f))
		}
	}
	for _, f := range c.Files {
		out = append(out, fmt.Sprintf("file %s: %s", f.Path, f.Kind))
	}
	for _, f := range c.Files {
		for _, line := range f.Lines() {
			if !strings.HasPrefix(line, " ") { // what stays is not told
				out = append(out, fmt.Sprintf("%s: %s", f.Path, line))
			}
		}
	}
	return out
}

// Empty reports whether nothing differs.
func (c *Change) Empty() bool { return len(c.Pack)+len(c.Files)+len(c.Tools) == 0 }

func differs(name, old, now string) []string {
	if old == now {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s → %s", name, old, now)}
}

func files(old, now *packfs.Tree) []File {
	out := []File{}
	for _, f := range now.Files {
		switch before, ok := old.File(f.Path); {
		case !ok:
			out = append(out, File{Path: f.Path, Kind: Added})
		case before.Digest != f.Digest || before.Exec != f.Exec:
			out = append(out, File{Path: f.Path, Kind: Changed, Mode: before.Exec != f.Exec})
		}
	}
	for _, f := range old.Files {
		if _, ok := now.File(f.Path); !ok {
			out = append(out, File{Path: f.Path, Kind: Removed})
		}
	}
	for _, at := range slices.Sorted(maps.Keys(now.Links())) {
		switch target, ok := old.Links()[at]; {
		case !ok:
			out = append(out, File{Path: at, Kind: Added})
		case target != now.Links()[at]:
			out = append(out, File{Path: at, Kind: Changed})
		}
	}
	for _, at := range slices.Sorted(maps.Keys(old.Links())) {
		if _, ok := now.Links()[at]; !ok {
			out = append(out, File{Path: at, Kind: Removed})
		}
	}
	slices.SortStableFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// A fact is one thing that a person would ask about a tool.
type fact struct{ name, value string }

// factsOf are what matters most, first.
func factsOf(t *tools.Tool) []fact {
	if t.Command == nil {
		return []fact{{"runs", "nothing: " + t.DeclaredOnly}}
	}
	argv := []string{t.Command.Program}
	for _, a := range t.Command.Args {
		argv = append(argv, a.String())
	}
	cwd := t.Command.Cwd
	if cwd == "" {
		cwd = tools.CwdWorkspace
	}
	writes := "yes"
	if t.Policy.ReadOnly {
		writes = "no"
	}
	return []fact{
		{"runs", strings.Join(argv, " ")}, {"network", t.Policy.Reach()}, {"folder", cwd}, {"writes", writes},
		{"variables", strings.Join(slices.Sorted(maps.Keys(t.Command.Env)), ", ")},
	}
}

func facts(t *tools.Tool) []string {
	out := []string{}
	for _, f := range factsOf(t) {
		if f.value != "" {
			out = append(out, f.name+": "+f.value)
		}
	}
	return out
}

// between are the facts that differ, and then the names of what else does.
func between(old, now *tools.Tool) []string {
	out := []string{}
	before, after := factsOf(old), factsOf(now)
	for _, f := range after {
		i := slices.IndexFunc(before, func(b fact) bool { return b.name == f.name })
		was := ""
		if i >= 0 {
			was = before[i].value
		}
		out = append(out, differs(f.name, orNone(was), orNone(f.value))...)
	}
	a, b := members(old), members(now)
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		// A command, and most of what a tool asks for, has been said.
		if string(a[key]) != string(b[key]) && key != "command" && (key != "policy" || len(out) == 0) {
			out = append(out, words(key))
		}
	}
	if len(out) == 0 {
		out = append(out, "how its command is filled in") // values of variables, standard input
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// words is how a member of a definition is called.
func words(key string) string {
	switch key {
	case "inputSchema":
		return "its arguments"
	case "outputSchema", "output":
		return "its output"
	case "policy":
		return "what it asks for"
	}
	return "its " + strings.ReplaceAll(key, "_", " ")
}

func members(t *tools.Tool) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(t.Definition(), &m); err != nil {
		return nil // it is JSON: we made it
	}
	return m
}
