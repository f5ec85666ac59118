// Package entrydoc reads the entry document of a pack as it is now: where its body
// begins, the body of a loose tool, what the frontmatter says besides what a Catalog
// has, and whether it still says what the Catalog has.
//
// It finds no packs, keeps nothing in memory, and does not decide who may read a
// document.
package entrydoc

import (
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/loose"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// BodyOffset returns where the body begins in the entry document as it is now. It reads
// the document from tree if tree kept it, otherwise from dir, the pack's folder. It
// fails if the document is too large to be opened.
func BodyOffset(p *packs.Pack, dir *packfs.Dir, tree *packfs.Tree) (int64, error) {
	// The file may have changed since the scan.
	head, size, err := head(p, dir, tree)
	if err != nil {
		return 0, err
	}
	if limit := p.Limits().EntryDoc; size > limit {
		return 0, &packfs.PathError{Path: p.Entry, Reason: &packfs.TooLargeError{Size: size, Limit: limit}}
	}
	set := charset.Of(head)
	text := set.Decode(head)
	block, state := frontmatter.Find(text)
	if state != frontmatter.Closed {
		return 0, nil
	}
	return int64(set.Size(text[:block.Body])), nil
}

// head returns at least the part of the entry document that may hold frontmatter, and
// the size of the whole document.
func head(p *packs.Pack, dir *packfs.Dir, tree *packfs.Tree) (head []byte, size int64, err error) {
	if all, ok := tree.Kept(p.Entry); ok {
		return all, int64(len(all)), nil
	}
	return dir.ReadHead(p.Entry, p.Limits().Frontmatter+frontmatter.MarkerSlack)
}

// LooseBody returns the body of a loose tool, which is generated from its declaration,
// from offset on. The whole document is cut to length bytes.
func LooseBody(p *packs.Pack, offset, length int64) (*packfs.Page, error) {
	dir, err := p.OpenDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	src, err := dir.ReadAll(p.Entry, p.Limits().ToolsFile)
	if err != nil {
		return nil, err
	}
	t, _ := loose.Parse(p.Entry, src, tools.Limits{})
	if t == nil { // it is no longer the tool that was found
		return dir.Read(p.Entry, offset, length, packfs.Limits{File: p.Limits().ToolsFile})
	}
	page := &packfs.Page{Path: p.Entry, UTF8: true, MIME: "text/markdown"}
	text := loose.Text(t, int(length))
	page.Size = int64(len(text))
	if offset < 0 || offset > page.Size {
		return nil, &packfs.PathError{Path: p.Entry, Reason: packfs.ErrOffset}
	}
	page.Offset, page.Data = offset, text[offset:]
	return page, nil
}
