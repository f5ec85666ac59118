package packs

import (
	"cmp"

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

// Metadata reads the entry document as it is now. It is zero if the document cannot be
// read, or describes the pack differently than at the scan.
func (p *Pack) Metadata() Metadata {
	dir, err := p.OpenDir()
	if err != nil {
		return Metadata{}
	}
	defer dir.Close()
	return p.MetadataFrom(dir)
}

// MetadataFrom is Metadata of a pack whose folder is open, by [Pack.OpenDir].
func (p *Pack) MetadataFrom(dir *packfs.Dir) Metadata {
	if p.Frontmatter.IsZero() || p.Loose {
		return Metadata{}
	}
	head, _, err := dir.ReadHead(p.Entry, p.limits.Frontmatter+markerSlack)
	if err != nil {
		return Metadata{}
	}
	doc, _ := frontmatter.Inspect(p.Entry, head, p.limits.Frontmatter)
	if doc == nil || doc.Summary(nil) != p.Frontmatter {
		return Metadata{}
	}
	return Metadata{Version: cmp.Or(doc.Version, doc.MetadataVersion), License: doc.License, Compatibility: doc.Compatibility, AllowedTools: doc.AllowedTools}
}
