package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolresult"
)

// Methods that the library has no constants for.
const (
	methodSkillsList = "skills/list"
	methodSkillsGet  = "skills/get"
)

// extensionSkills names the Skills extension of MCP, SEP-2640.
const extensionSkills = "io.modelcontextprotocol/skills"

// What a skill may hold, by the extension. maxSkillNames bounds what is looked
// at to find that out: folders count, too.
const (
	maxSkillFiles = 512
	maxSkillBytes = 16 << 20
	maxSkillNames = 8 * maxSkillFiles
)

// skillsPage is after how many bytes of JSON a page of skills ends. An entry is
// never split, so a page is up to one entry longer.
const skillsPage = 256 << 10

type skillsResult struct {
	pageResult
	Skills []json.RawMessage `json:"skills"`
}

type skillResult struct {
	mcp.CacheableResult
	Skill json.RawMessage `json:"skill"`
}

// A skillEntry is one skill: its document, every key of its frontmatter, and
// every file with the digest of its bytes.
type skillEntry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []skillResource `json:"resources"`
}

type skillResource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

type listSkillsParams struct {
	cursorParams
	roundTrip
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
	out, _, err := s.pass(ctx, metadataMethod(methodSkillsList, func(ctx context.Context) (any, error) {
		return s.skillsAfter(ctx, r.catalog, after)
	}), p.tree(), p.roundTrip, nil)
	if err != nil {
		return nil, err
	}
	return out.(*skillsResult), nil
}

func (s *Server) skillsAfter(ctx context.Context, catalog *packs.Catalog, after string) (*skillsResult, error) {
	out := &skillsResult{Skills: []json.RawMessage{}}
	size, last := 0, ""
	for _, d := range s.listedSkills(catalog) {
		if d.key <= after {
			continue
		}
		if len(out.Skills) >= pages.Size || size >= skillsPage {
			out.NextCursor = pages.Cursor(methodSkillsList, last)
			break
		}
		last = d.key
		entry, err := s.skill(ctx, d.pack)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			err = listable(d.pack)
		}
		if err != nil {
			s.leftOut(d.pack, err)
			continue
		}
		out.Skills = append(out.Skills, entry)
		size += len(entry)
	}
	return out, nil
}

// leftOut says in the log, once for each pack, why a pack is not among the
// skills.
func (s *Server) leftOut(p *packs.Pack, err error) {
	s.mu.Lock()
	told := s.told[p.Dir]
	if s.told == nil {
		s.told = make(map[string]bool)
	}
	s.told[p.Dir] = true
	s.mu.Unlock()
	if !told {
		s.logger.Warn("a pack is left out of the list of skills; its documents, files and tools are served all the same", "pack", p.ID, "err", err)
	}
}

// getSkill answers skills/get.
func (s *Server) getSkill(ctx context.Context, r *frontRequest) (mcp.ResultMetadata, error) {
	var p uriRequest
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	pack := skillAt(r.catalog, p.URI)
	if pack == nil || !s.showsFiles(pack) {
		return nil, s.refusedRequest(ctx, r, toolerr.CodeNotFound, p.URI, notFound(r, p.URI))
	}
	out, _, err := s.pass(ctx, metadataMethod(methodSkillsGet, func(ctx context.Context) (any, error) {
		return s.skill(ctx, pack)
	}), p.tree(), p.roundTrip, nil)
	if isNoSkill(err) {
		s.leftOut(pack, err)
		return nil, notFound(r, p.URI)
	}
	if err != nil {
		return nil, err
	}
	return &skillResult{Skill: out.(json.RawMessage)}, nil
}

// skillAt returns the skill whose document has this URI; nil when there is none.
func skillAt(catalog *packs.Catalog, uri string) *packs.Pack {
	u, ok := address.Parse(uri)
	if !ok || u.Scheme != address.SchemeSkill || path.Base(u.Path) != address.SkillFile {
		return nil
	}
	for _, at := range address.Places(catalog, u) {
		if at.Path == address.SkillFile {
			return at.Pack
		}
	}
	return nil
}

// errNoSkill says that a pack is none by the extension, whatever it seemed to be
// when it was found.
var errNoSkill = errors.New("the pack is not a skill")

// isNoSkill reports whether an error says that, or that the pack is larger than
// a skill may be.
func isNoSkill(err error) bool {
	_, tooLarge := errors.AsType[*packfs.TooLargeError](err)
	return tooLarge || errors.Is(err, errNoSkill)
}

// skill makes the entry of one skill from its bytes as they are now.
func (s *Server) skill(ctx context.Context, p *packs.Pack) (json.RawMessage, error) {
	tree, err := s.skillTree(ctx, p)
	if err != nil {
		return nil, err
	}
	matter, err := s.frontmatter(p, tree)
	if err != nil {
		return nil, err
	}
	e := skillEntry{URI: address.OfPack(p, address.SkillFile), Frontmatter: matter, Resources: make([]skillResource, len(tree.Files))}
	for i, f := range tree.Files {
		e.Resources[i] = skillResource{URI: address.OfPack(p, f.Path), Digest: f.Digest, Size: f.Size}
	}
	return toolresult.JSON(e)
}

// skillTree digests a skill, and no more of it than a skill may have.
func (s *Server) skillTree(ctx context.Context, p *packs.Pack) (*packfs.Tree, error) {
	if err := s.keepsOut(p.ID, p.Dir); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSkill, err)
	}
	dir, err := p.OpenDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	tree, err := dir.DigestWithin(ctx, s.digests, packfs.Bound{Files: maxSkillNames, Bytes: maxSkillBytes})
	if err != nil {
		return nil, err
	}
	if n := len(tree.Files); n > maxSkillFiles {
		return nil, &packfs.TooLargeError{Size: int64(n), Limit: maxSkillFiles, Unit: "files"}
	}
	for _, f := range tree.Files {
		// A manifest has every file, and every file of it can be read.
		if u, ok := address.Parse(address.OfPack(p, f.Path)); !ok || u.Path != path.Join(p.ID, f.Path) {
			return nil, fmt.Errorf("the file %q cannot have a URI: %w", safetext.Line(f.Path), errNoSkill)
		}
	}
	return tree, nil
}

// frontmatter returns what the document says of itself now.
func (s *Server) frontmatter(p *packs.Pack, tree *packfs.Tree) (json.RawMessage, error) {
	file, ok := tree.File(address.SkillFile)
	if !ok {
		return nil, fmt.Errorf("%s is not a file: %w", address.SkillFile, errNoSkill)
	}
	dir, err := p.OpenDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	page, err := dir.ReadVerified(address.SkillFile, 0, maxResource, packfs.Limits{Page: maxResource, PageMax: maxResource, File: maxResource}, file.Digest)
	if err != nil {
		return nil, err
	}
	// Bounded as when the packs were found: it may be another document since.
	doc, problems := frontmatter.Inspect(address.SkillFile, page.Data, s.limits.Frontmatter)
	if doc == nil || doc.Name != p.Name || !address.IsVerbatim(problems) {
		return nil, fmt.Errorf("its frontmatter is no longer what it was: %w", errNoSkill)
	}
	matter := doc.JSON()
	if !harmless(matter) {
		return nil, fmt.Errorf("its frontmatter has characters that cannot be seen, or that change what is seen, and it would be given as it is: %w", errNoSkill)
	}
	return matter, nil
}

// harmless reports whether nothing in a frontmatter has to be escaped before it
// is shown. The extension wants it exactly, and clients give it to models unasked.
func harmless(matter json.RawMessage) bool {
	var v any
	if json.Unmarshal(matter, &v) != nil {
		return false
	}
	var walk func(v any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case string:
			return safetext.Text(v) == v
		case []any:
			return !slices.ContainsFunc(v, func(item any) bool { return !walk(item) })
		case map[string]any:
			for k, item := range v {
				if safetext.Line(k) != k || !walk(item) {
					return false
				}
			}
		}
		return true
	}
	return walk(v)
}

// maxSkillDescription is how long the description of a skill may be, in
// characters, by the rules of Agent Skills.
const maxSkillDescription = 1024

// listable says why a skill that can be had is not listed; nil when it is.
func listable(p *packs.Pack) error {
	if n := utf8.RuneCountInString(p.Description); n > maxSkillDescription {
		return fmt.Errorf("its description has %d characters, and Agent Skills allow %d", n, maxSkillDescription)
	}
	return nil
}
