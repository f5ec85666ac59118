package skills

import (
	"context"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// ManifestFile is where readers of an older shape find the files of a skill.
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

// Index makes the discovery index of these packs, as it is written to JSON. What is no
// skill when it is looked at is left out.
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

// Manifest makes the manifest of a skill, as it is written to JSON: its files, for readers
// of an older shape.
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
