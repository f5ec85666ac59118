package skills

import (
	"context"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// ManifestFile is where clients that know the older form find the files of a skill.
const ManifestFile = "_manifest"

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

// Index returns the discovery index of these packs, to be encoded as JSON. It leaves
// out packs that turn out not to be skills.
func (s *Skills) Index(ctx context.Context, of []*packs.Pack) (any, error) {
	out := &skillIndex{Schema: "https://schemas.agentskills.io/discovery/0.2.0/schema.json", Skills: []indexEntry{}}
	for _, p := range of {
		tree, err := s.tree(ctx, p)
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
			s.LeftOut(p, err)
			continue
		}
		out.Skills = append(out.Skills, indexEntry{
			Name: p.Name, Type: "skill-md", Description: s.o.Describe(p.Description), URL: address.OfPack(p, p.Entry), Digest: file.Digest,
		})
	}
	return out, nil
}

// Manifest returns the manifest of a skill, to be encoded as JSON: its files, for
// clients that know the older form.
func (s *Skills) Manifest(ctx context.Context, p *packs.Pack) (any, error) {
	tree, err := s.tree(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &manifest{Skill: p.Name, Files: make([]manifestItem, len(tree.Files))}
	for i, f := range tree.Files {
		out.Files[i] = manifestItem{Path: f.Path, Size: f.Size, Hash: f.Digest}
	}
	return out, nil
}
