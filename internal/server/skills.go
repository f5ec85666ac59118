package server

import (
	"context"
	"encoding/json"
	"errors"
	"path"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
	"github.com/packs-mcp/packs-mcp/internal/server/skills"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// Methods for which the library has no constants.
const (
	methodSkillsList = "skills/list"
	methodSkillsGet  = "skills/get"
)

// extensionSkills names the Skills extension of MCP, SEP-2640.
const extensionSkills = "io.modelcontextprotocol/skills"

type skillsResult struct {
	pageResult
	Skills []json.RawMessage `json:"skills"`
}

type skillResult struct {
	mcp.CacheableResult
	Skill json.RawMessage `json:"skill"`
}

type listSkillsParams struct {
	cursorParams
	calls.RoundTrip
}

// listSkills answers skills/list.
func (s *Server) listSkills(ctx context.Context, r *frontRequest) (mcp.ResultMetadata, error) {
	var p listSkillsParams
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	after, err := pages.After(methodSkillsList, p.Cursor)
	if err != nil {
		return nil, err
	}
	out, _, err := s.road.Pass(ctx, s.metadataMethod(methodSkillsList, func(ctx context.Context) (any, error) {
		return s.skillsAfter(ctx, r.catalog, after)
	}), p.tree(), p.RoundTrip, nil)
	if err != nil {
		return nil, err
	}
	return out.(*skillsResult), nil
}

func (s *Server) skillsAfter(ctx context.Context, catalog *packs.Catalog, after string) (*skillsResult, error) {
	entries, last, err := s.skills.Page(ctx, s.offer.Skills(catalog), after)
	if err != nil {
		return nil, err
	}
	out := &skillsResult{Skills: entries}
	if last != "" {
		out.NextCursor = pages.Cursor(methodSkillsList, last)
	}
	return out, nil
}

// getSkill answers skills/get.
func (s *Server) getSkill(ctx context.Context, r *frontRequest) (mcp.ResultMetadata, error) {
	var p uriRequest
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	pack := skills.At(r.catalog, p.URI)
	if pack == nil || !s.offer.ShowsFiles(pack) {
		return nil, s.refusedRequest(ctx, r, toolerr.CodeNotFound, p.URI, notFound(r, p.URI))
	}
	out, _, err := s.road.Pass(ctx, s.metadataMethod(methodSkillsGet, func(ctx context.Context) (any, error) {
		return s.skills.Entry(ctx, pack)
	}), p.tree(), p.RoundTrip, nil)
	if skills.IsNone(err) {
		s.skills.LeftOut(pack, err)
		return nil, notFound(r, p.URI)
	}
	if err != nil {
		return nil, err
	}
	return &skillResult{Skill: out.(json.RawMessage)}, nil
}

// generated returns the function that makes a generated resource, or nil if the URI
// does not name one. A file of that name takes precedence.
func (s *Server) generated(catalog *packs.Catalog, uri string) generated {
	if uri == offer.IndexURI {
		return func(ctx context.Context) (any, error) { return s.skills.Index(ctx, s.offer.Skills(catalog)) }
	}
	u, ok := address.Parse(uri)
	if !ok || u.Scheme != address.SchemeSkill || path.Base(u.Path) != skills.ManifestFile {
		return nil
	}
	for _, at := range address.Places(catalog, u) {
		if at.Path != skills.ManifestFile || !s.offer.ShowsFiles(at.Pack) {
			continue
		}
		if dir, err := at.Pack.OpenDir(); err == nil {
			_, _, err := dir.ReadHead(skills.ManifestFile, 0)
			dir.Close()
			if !errors.Is(err, packfs.ErrNotFound) {
				return nil
			}
		}
		return func(ctx context.Context) (any, error) { return s.skills.Manifest(ctx, at.Pack) }
	}
	return nil
}
