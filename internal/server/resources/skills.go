package resources

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
	MethodSkillsList = "skills/list"
	MethodSkillsGet  = "skills/get"
)

// ExtensionSkills names the Skills extension of MCP, SEP-2640.
const ExtensionSkills = "io.modelcontextprotocol/skills"

type skillsResult struct {
	calls.PageResult
	Skills []json.RawMessage `json:"skills"`
}

type skillResult struct {
	mcp.CacheableResult
	Skill json.RawMessage `json:"skill"`
}

type listSkillsParams struct {
	calls.CursorParams
	calls.RoundTrip
}

// ListSkills answers skills/list.
func (s *Resources) ListSkills(ctx context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
	var p listSkillsParams
	if err := r.Decode(&p); err != nil {
		return nil, err
	}
	after, err := pages.After(MethodSkillsList, p.Cursor)
	if err != nil {
		return nil, err
	}
	out, _, err := s.opts.Road.Pass(ctx, s.metadataMethod(MethodSkillsList, func(ctx context.Context) (any, error) {
		return s.skillsAfter(ctx, r.Catalog, after)
	}), p.Tree(), p.RoundTrip, nil)
	if err != nil {
		return nil, err
	}
	return out.(*skillsResult), nil
}

func (s *Resources) skillsAfter(ctx context.Context, catalog *packs.Catalog, after string) (*skillsResult, error) {
	entries, last, err := s.opts.Skills.Page(ctx, s.opts.Offer.Skills(catalog), after)
	if err != nil {
		return nil, err
	}
	out := &skillsResult{Skills: entries}
	if last != "" {
		out.NextCursor = pages.Cursor(MethodSkillsList, last)
	}
	return out, nil
}

// GetSkill answers skills/get.
func (s *Resources) GetSkill(ctx context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
	var p uriRequest
	if err := r.Decode(&p); err != nil {
		return nil, err
	}
	pack := skills.At(r.Catalog, p.URI)
	if pack == nil || !s.opts.Offer.ShowsFiles(pack) {
		return nil, s.opts.Road.RefusedRequest(ctx, r, toolerr.CodeNotFound, p.URI, notFound(r, p.URI))
	}
	out, _, err := s.opts.Road.Pass(ctx, s.metadataMethod(MethodSkillsGet, func(ctx context.Context) (any, error) {
		return s.opts.Skills.Entry(ctx, pack)
	}), p.tree(), p.RoundTrip, nil)
	if skills.IsNone(err) {
		s.opts.Skills.LeftOut(pack, err)
		return nil, notFound(r, p.URI)
	}
	if err != nil {
		return nil, err
	}
	return &skillResult{Skill: out.(json.RawMessage)}, nil
}

// generated returns the function that makes a generated resource, or nil if the URI
// does not name one. A file of that name takes precedence.
func (s *Resources) generated(catalog *packs.Catalog, uri string) generated {
	if uri == offer.IndexURI {
		return func(ctx context.Context) (any, error) { return s.opts.Skills.Index(ctx, s.opts.Offer.Skills(catalog)) }
	}
	u, ok := address.Parse(uri)
	if !ok || u.Scheme != address.SchemeSkill || path.Base(u.Path) != skills.ManifestFile {
		return nil
	}
	for _, at := range address.Places(catalog, u) {
		if at.Path != skills.ManifestFile || !s.opts.Offer.ShowsFiles(at.Pack) {
			continue
		}
		if dir, err := at.Pack.OpenDir(); err == nil {
			_, _, err := dir.ReadHead(skills.ManifestFile, 0)
			dir.Close()
			if !errors.Is(err, packfs.ErrNotFound) {
				return nil
			}
		}
		return func(ctx context.Context) (any, error) { return s.opts.Skills.Manifest(ctx, at.Pack) }
	}
	return nil
}
