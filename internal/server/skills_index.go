package server

import (
	"context"
	"errors"
	"path"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// manifestFile is where readers of an older shape find the files of a skill.
const manifestFile = "_manifest"

type skillIndex struct {
	Schema string       `json:"$schema"`
	Skills []indexEntry `json:"skills"`
}

type indexEntry struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	URL         string `json:"url"`
	Digest      string `json:"digest"`
}

type manifest struct {
	Skill string         `json:"skill"`
	Files []manifestItem `json:"files"`
}

type manifestItem struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Hash string `json:"hash"`
}

// generated returns what makes the resource that no file has; nil when the URI
// names none of those. A file of that name goes before it.
func (s *Server) generated(catalog *packs.Catalog, uri string) generated {
	if uri == indexURI {
		return func(ctx context.Context) (any, error) { return s.index(ctx, catalog) }
	}
	u, ok := address.Parse(uri)
	if !ok || u.Scheme != address.SchemeSkill || path.Base(u.Path) != manifestFile {
		return nil
	}
	for _, at := range address.Places(catalog, u) {
		if at.Path != manifestFile || !s.showsFiles(at.Pack) {
			continue
		}
		if dir, err := at.Pack.OpenDir(); err == nil {
			_, _, err := dir.ReadHead(manifestFile, 0)
			dir.Close()
			if !errors.Is(err, packfs.ErrNotFound) {
				return nil
			}
		}
		return func(ctx context.Context) (any, error) { return s.manifest(ctx, at.Pack) }
	}
	return nil
}

// index is the discovery index of the skills.
func (s *Server) index(ctx context.Context, catalog *packs.Catalog) (*skillIndex, error) {
	out := &skillIndex{Schema: "https://schemas.agentskills.io/discovery/0.2.0/schema.json", Skills: []indexEntry{}}
	for _, d := range s.listedSkills(catalog) {
		p := d.pack
		tree, err := s.skillTree(ctx, p)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var file packfs.TreeFile
		if err == nil {
			var ok bool
			if file, ok = tree.File(address.SkillFile); !ok {
				err = errNoSkill
			}
		}
		if err != nil {
			s.leftOut(p, err)
			continue
		}
		out.Skills = append(out.Skills, indexEntry{
			Name: p.Name, Type: "skill-md", Description: s.describe(p.Description), URL: d.key, Digest: file.Digest,
		})
	}
	return out, nil
}

// manifest are the files of a skill.
func (s *Server) manifest(ctx context.Context, p *packs.Pack) (*manifest, error) {
	tree, err := s.skillTree(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &manifest{Skill: p.Name, Files: make([]manifestItem, len(tree.Files))}
	for i, f := range tree.Files {
		out.Files[i] = manifestItem{Path: f.Path, Size: f.Size, Hash: f.Digest}
	}
	return out, nil
}
