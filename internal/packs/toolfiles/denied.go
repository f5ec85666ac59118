package toolfiles

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// Denied surveys the pack's files without reading them. It returns what is wrong with
// the files that a digest denies and with the tools that need one of them, or why the
// pack has no digest at all.
func Denied(ctx context.Context, p *packs.Pack, set *tools.Set) []diag.Diagnostic {
	dir, err := p.OpenDir()
	if err != nil {
		return nil
	}
	defer dir.Close()
	return DeniedFrom(ctx, dir, p, set)
}

// DeniedFrom is Denied for a pack whose folder [Pack.OpenDir] opened.
func DeniedFrom(ctx context.Context, dir *packfs.Dir, p *packs.Pack, set *tools.Set) []diag.Diagnostic {
	tree, err := dir.Survey(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return []diag.Diagnostic{NotDigested(err)}
	}
	return DeniedProblems(p, tree, set)
}

// NotDigested returns the diagnostic for a pack whose files have no digest.
func NotDigested(err error) diag.Diagnostic {
	return diag.Diagnostic{
		Code: packs.CodeNotDigested, Severity: diag.Error, Message: err.Error(),
		Hint: "nothing of this pack can be approved until that is mended: remove the files that are not needed",
	}
}

// DeniedProblems returns a warning for each of the first 20 entries that a digest
// denies, one for the rest, and one for each tool that stays disabled. set may be nil.
func DeniedProblems(p *packs.Pack, tree *packfs.Tree, set *tools.Set) []diag.Diagnostic {
	out := deniedFiles(tree)
	if set == nil {
		return out
	}
	for i, t := range WithoutDenied(p, tree, set.Tools) {
		if t != set.Tools[i] {
			out = append(out, diag.Diagnostic{
				Code: packs.CodeFileDenied, Severity: diag.Warning, File: t.File, Line: t.Line,
				Message: "tool " + strconv.Quote(t.Name) + " stays disabled: " + t.DeclaredOnly,
				Hint:    "fix that file; the tool can then be enabled",
			})
		}
	}
	return out
}

// WithoutDenied returns the tools, with those that need a denied file made
// declared-only: if the file is the program, or named by a template. The value of a
// placeholder can still name a denied file; see [DeniedIn].
func WithoutDenied(p *packs.Pack, tree *packfs.Tree, all []*tools.Tool) []*tools.Tool {
	if len(tree.Denied) == 0 {
		return all
	}
	out := slices.Clone(all)
	for i, t := range out {
		if t.Command == nil {
			continue
		}
		if err := deniedTo(p, tree, t); err != nil {
			declared := *t
			declared.Command, declared.DeclaredOnly = nil, "it needs a file that cannot be used: "+err.Error()
			out[i] = &declared
		}
	}
	return out
}

func deniedTo(p *packs.Pack, tree *packfs.Tree, t *tools.Tool) error {
	// A program "./NAME" is in the pack's folder, whatever the working folder is.
	if err := DeniedIn(p, tree, p.Dir, []string{t.Command.Program}); err != nil {
		return err
	}
	dir := ""
	if t.Command.Cwd == tools.CwdPackRoot {
		dir = p.Dir
	}
	var names []string
	for _, arg := range t.Command.Args {
		if text, ok := arg.Literal(); ok {
			names = append(names, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Command.Env)) {
		if text, ok := t.Command.Env[name].Literal(); ok {
			names = append(names, text)
		}
	}
	return DeniedIn(p, tree, dir, names)
}

// DeniedIn returns why a file of the pack that one of the texts names is denied, or
// nil. Relative names are below dir, unless dir is empty. A text may also be an option
// with its value, as in --config=FILE. This only spares people questions about runs
// that cannot work; the protection is that copies for runs hold no denied files.
func DeniedIn(p *packs.Pack, tree *packfs.Tree, dir string, texts []string) error {
	if len(tree.Denied) == 0 || p.Loose {
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
			rel, err := filepath.Rel(p.Dir, name)
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

// maxDenied is how many denied files of a pack are reported individually.
const maxDenied = 20

func deniedFiles(tree *packfs.Tree) []diag.Diagnostic {
	var out []diag.Diagnostic
	for i, d := range tree.Denied {
		p := diag.Diagnostic{Code: packs.CodeFileDenied, Severity: diag.Warning, File: d.Path}
		if i == maxDenied {
			p.Message = diag.Count(len(tree.Denied)-i, "more file") + " cannot be used"
			p.Hint = "remove these files from the pack, or mend them"
			return append(out, p)
		}
		p.Message = "the file is left out, and tools that need it stay disabled: " + d.Reason.Error()
		switch tooLarge := new(packfs.TooLargeError); {
		case errors.As(d.Reason, &tooLarge):
			p.Hint = "move the file out of the pack, or raise limits.pack_size"
		case errors.Is(d.Reason, packfs.ErrOddName):
			p.Hint = "rename the file"
		case errors.Is(d.Reason, packfs.ErrNotRegular):
			p.Hint = "remove it: a pack has files, folders and links only"
		case errors.Is(d.Reason, packfs.ErrLineBreak):
			p.Hint = "let the link lead to another name"
		default:
			p.Hint = "make it readable for the user who runs packs-mcp"
		}
		out = append(out, p)
	}
	return out
}
