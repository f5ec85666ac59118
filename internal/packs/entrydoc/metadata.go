package entrydoc

import (
	"cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// Metadata is what an entry document says about its pack besides name, description,
// tags and modes. It is only shown and grants nothing. No Catalog keeps it.
type Metadata struct {
	Version       string // its own key, or else the one in "metadata"
	License       string
	Compatibility string
	AllowedTools  string
}

// MetadataOf reads the entry document as it is now. It is zero if the document cannot be
// read, or describes the pack differently than at the scan.
func MetadataOf(p *packs.Pack) Metadata {
	dir, err := p.OpenDir()
	if err != nil {
		return Metadata{}
	}
	defer dir.Close()
	return MetadataIn(p, dir)
}

// MetadataIn is MetadataOf for a pack whose folder is open, by [packs.Pack.OpenDir].
func MetadataIn(p *packs.Pack, dir *packfs.Dir) Metadata {
	if p.Frontmatter.IsZero() || p.Loose {
		return Metadata{}
	}
	head, _, err := dir.ReadHead(p.Entry, p.Limits().Frontmatter+frontmatter.MarkerSlack)
	if err != nil {
		return Metadata{}
	}
	doc, _ := frontmatter.Inspect(p.Entry, head, p.Limits().Frontmatter)
	if doc == nil || doc.Summary(nil) != p.Frontmatter {
		return Metadata{}
	}
	return Metadata{Version: cmp.Or(doc.Version, doc.MetadataVersion), License: doc.License, Compatibility: doc.Compatibility, AllowedTools: doc.AllowedTools}
}
