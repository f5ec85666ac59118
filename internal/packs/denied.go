package packs

import (
	"context"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// maxDenied is how many denied files of a pack are told of one by one.
const maxDenied = 20

// DeniedProblems returns a warning for each entry that a digest denies, the first 20
// of them, and one for the rest.
func DeniedProblems(tree *packfs.Tree) []diag.Diagnostic {
	var out []diag.Diagnostic
	for i, d := range tree.Denied {
		p := diag.Diagnostic{Code: CodeFileDenied, Severity: diag.Warning, File: d.Path}
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

// Denied surveys the pack's files, without reading them, and returns what is wrong
// with those that a digest denies. A pack that cannot be surveyed has none: whoever
// needs it says why.
func (p *Pack) Denied(ctx context.Context) []diag.Diagnostic {
	dir, err := p.OpenDir()
	if err != nil {
		return nil
	}
	defer dir.Close()
	tree, err := dir.Survey(ctx)
	if err != nil {
		return nil
	}
	return DeniedProblems(tree)
}
