package entrydoc

import (
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/loose"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// IsAsFound reports whether the pack's entry document still says what its Catalog
// has: a person who is asked sees that text beside the digest of the files. dir is
// the pack's folder, and tree what was just digested in it. The text can differ
// because the next scan is still to come, or because no event reported the change: a
// file can have a hard link in another folder, and a folder can have another path.
// Stamps are not trusted here; the document is read again.
func IsAsFound(p *packs.Pack, dir *packfs.Dir, tree *packfs.Tree) bool {
	src, err := digested(p, dir, tree)
	if err != nil {
		return false
	}
	var now frontmatter.Summary
	if p.Loose {
		if t, _ := loose.Parse(p.Entry, src, tools.Limits{}); t != nil {
			now = loose.Document(t).Summary(nil)
		}
	} else if doc, _ := frontmatter.Inspect(p.Entry, src, p.Limits().Frontmatter); doc != nil {
		now = doc.Summary(nil)
	}
	return now == p.Frontmatter
}

// digested returns as much of the entry document as a scan reads, from the very bytes
// that tree was digested from.
func digested(p *packs.Pack, dir *packfs.Dir, tree *packfs.Tree) ([]byte, error) {
	if all, ok := tree.Kept(p.Entry); ok {
		return all, nil
	}
	length := p.Limits().ToolsFile
	if !p.Loose {
		length = int64(p.Limits().Frontmatter + frontmatter.MarkerSlack)
	}
	f, ok := tree.Resolve(p.Entry)
	if !ok {
		return nil, &packfs.PathError{Path: p.Entry, Reason: packfs.ErrNotFound}
	}
	page, err := dir.ReadVerified(f.Path, 0, length, packfs.Limits{PageMax: length, File: f.Size}, f.Digest)
	if err != nil {
		return nil, err
	}
	return page.Data, nil
}
