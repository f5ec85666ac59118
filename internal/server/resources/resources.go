package resources

import (
	"context"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// mimeDirectory is the type of a resource that is a folder.
const mimeDirectory = "inode/directory"

type resourcesResult struct {
	calls.PageResult
	Resources []mcp.Resource `json:"resources"`
}

type templatesResult struct {
	calls.PageResult
	ResourceTemplates []template `json:"resourceTemplates"`
}

type template struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
}

// List answers resources/list: the entry document of each pack, and the
// index of skills. A pack's other files are in its manifest, and below its folder.
// Names and descriptions are metadata, so nobody is asked.
func (s *Resources) List(ctx context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
	var p calls.CursorParams
	if err := r.Decode(&p); err != nil {
		return nil, err
	}
	page, next, err := pages.Of("resources", p.Cursor, s.opts.Offer.Documents(r.Chat.Lists.GiveCatalog(ctx)), offer.Entry.String)
	if err != nil {
		return nil, err
	}
	return &resourcesResult{PageResult: calls.PageResult{NextCursor: next}, Resources: s.opts.Offer.AsResources(page)}, nil
}

// Templates of our URIs, in the syntax of RFC 6570.
const (
	templateSkill     = address.SchemeSkill + "://{+pack_id}/{+path}"
	templatePack      = address.SchemePack + "://{+pack_id}/{+path}"
	templateWorkspace = address.SchemeWorkspace + "://{workspace}/{+path}"
)

// Templates answers resources/templates/list.
func (s *Resources) Templates(_ context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
	var p calls.CursorParams
	if err := r.Decode(&p); err != nil {
		return nil, err
	}
	page, next, err := pages.Of("templates", p.Cursor, []template{
		{templatePack, "pack", "File of a pack", "A file or folder of an attached pack that is not a skill."},
		{templateSkill, "skill", "File of a skill", "A file or folder of an attached pack with a SKILL.md."},
		{templateWorkspace, "workspace", "File of the workspace", "What programs made in this chat; a run returns the handle."},
	}, func(t template) string { return t.URITemplate })
	if err != nil {
		return nil, err
	}
	return &templatesResult{PageResult: calls.PageResult{NextCursor: next}, ResourceTemplates: page}, nil
}

// notFound returns the error for a resource that does not exist. The error is the
// same for one that may not be seen.
func notFound(r *calls.Request, uri string) *toolerr.RPCError {
	code := mcp.RESOURCE_NOT_FOUND
	if r.Modern || r.Method != string(mcp.MethodResourcesRead) {
		code = wire.CodeInvalidParams // in both eras for the extension's methods
	}
	return &toolerr.RPCError{Code: code, Message: "there is no such resource", Data: map[string]any{"uri": uri}}
}

// A found resource is a file or a folder, with what the gate needs to know about it.
type found struct {
	pack  *packs.Pack // nil: the chat's workspace
	facts gate.Pack
	tree  *packfs.Tree // of pack
	path  string       // "." for the top
	isDir bool
}

// find finds what a URI names. In a pack, that is only what its digest covers: no
// links.
func (s *Resources) find(ctx context.Context, c *calls.Call, u address.URI) (*found, error) {
	if u.Scheme == address.SchemeWorkspace {
		handle, inside, ok := chats.CutHandle(u.Path)
		if !ok || c.InWorkspace(handle) != nil {
			return nil, address.ErrNoResource
		}
		f := &found{facts: gate.Pack{ID: offer.WorkspaceID, Trust: gate.TrustUser}, path: inside}
		dir, err := c.Workspace().Open()
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		f.isDir, err = dir.IsDir(f.path)
		return f, err
	}
	for _, at := range address.Places(c.Catalog, u) {
		facts, tree, err := s.opts.Given.Facts(ctx, at.Pack)
		if err != nil {
			return nil, err
		}
		_, isFile := tree.File(at.Path)
		if isFile || holds(tree, at.Path) {
			return &found{pack: at.Pack, facts: facts, tree: tree.WithoutKept(), path: at.Path, isDir: !isFile}, nil
		}
	}
	return nil, address.ErrNoResource
}

// holds reports whether a folder of a tree contains a file.
func holds(tree *packfs.Tree, dir string) bool {
	if dir == "." {
		return true
	}
	i, _ := slices.BinarySearchFunc(tree.Files, dir+"/", func(f packfs.TreeFile, prefix string) int { return strings.Compare(f.Path, prefix) })
	return i < len(tree.Files) && strings.HasPrefix(tree.Files[i].Path, dir+"/")
}
