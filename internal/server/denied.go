package server

// What a pack's digest denies is in no private copy of the pack, so a tool that needs
// it stays disabled.

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// deniedTo returns why a tool cannot run: its program, or a file that its template
// names, is denied. It is nil when none is. A placeholder may still stand for a denied
// file; see [deniedIn].
func deniedTo(tree *packfs.Tree, pack *packs.Pack, t *tools.Tool) error {
	names := []string{t.Command.Program}
	dir := pack.Dir // of "./NAME" as the program
	if err := deniedNames(tree, pack, dir, names); err != nil {
		return err
	}
	if t.Command.Cwd != tools.CwdPackRoot {
		dir = ""
	}
	names = nil
	for _, arg := range t.Command.Args {
		if text, ok := arg.Literal(); ok {
			names = append(names, text)
		}
	}
	for _, value := range t.Command.Env {
		if text, ok := value.Literal(); ok {
			names = append(names, text)
		}
	}
	return deniedNames(tree, pack, dir, names)
}

// deniedIn is deniedTo for the command of one call, with everything filled in.
func deniedIn(tree *packfs.Tree, pack *packs.Pack, c *sandbox.Command) error {
	return deniedNames(tree, pack, c.Dir, slices.Concat(programFiles(c.Program), []string{c.Program.Resolved}, c.Args))
}

// deniedNames returns why one of the texts that name a file of the pack is denied.
// Relative names are below dir, unless that is empty. A text may be an option with its
// value, as in --config=FILE.
func deniedNames(tree *packfs.Tree, pack *packs.Pack, dir string, texts []string) error {
	if len(tree.Denied) == 0 || pack.Loose {
		return nil
	}
	for _, text := range texts {
		names := []string{text}
		if _, value, ok := strings.Cut(text, "="); ok {
			names = append(names, value)
		}
		for _, name := range names {
			if name != "" && !filepath.IsAbs(name) && dir != "" {
				name = filepath.Join(dir, name)
			}
			rel, err := filepath.Rel(pack.Dir, name)
			if err != nil || name == "" || rel == "." || !filepath.IsLocal(rel) {
				continue
			}
			if err := tree.Denies(filepath.ToSlash(rel)); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutDenied returns the tools with those that need a denied file as ones that are
// only declared.
func withoutDenied(tree *packfs.Tree, pack *packs.Pack, all []*tools.Tool) []*tools.Tool {
	if len(tree.Denied) == 0 {
		return all
	}
	out := slices.Clone(all)
	for i, t := range out {
		if t.Command == nil {
			continue
		}
		if err := deniedTo(tree, pack, t); err != nil {
			declared := *t
			declared.Command, declared.DeclaredOnly = nil, "it needs a file that cannot be used: "+err.Error()
			out[i] = &declared
		}
	}
	return out
}
