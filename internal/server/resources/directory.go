package resources

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs/filetype"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// MethodDirectoryRead is a method for which the library has no constant.
const MethodDirectoryRead = "resources/directory/read"

type directoryParams struct {
	uriParams
	Cursor string `json:"cursor"`
	calls.RoundTrip
}

// Directory answers resources/directory/read: it returns the direct children of a
// folder.
func (s *Resources) Directory(ctx context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
	var p directoryParams
	if err := r.Decode(&p); err != nil {
		return nil, err
	}
	list := "directory " + p.URI
	if _, err := pages.After(list, p.Cursor); err != nil {
		return nil, err
	}
	if u, ok := address.Parse(p.URI); !ok || u.Scheme != address.SchemeWorkspace && len(address.Places(r.Catalog, u)) == 0 {
		return nil, s.opts.Road.RefusedRequest(ctx, r, toolerr.CodeNotFound, p.URI, notFound(r, p.URI))
	}
	// Only the protocol's own methods can return a result that asks for input, so the
	// caller of this one is asked elsewhere.
	out, _, err := s.opts.Road.Pass(ctx, &calls.Method{Name: MethodDirectoryRead, Input: uriInput, Prepare: s.prepareDirectory}, p.tree(), p.RoundTrip, func(c *calls.Call) { c.Caller.CanAsk = c.Caller.CanAsk && !r.Modern })
	switch {
	case errors.Is(err, address.ErrNoResource) || toolerr.IsMissing(err):
		return nil, notFound(r, p.URI)
	case err != nil:
		return nil, err
	}
	page, next, err := pages.Of(list, p.Cursor, out.([]mcp.Resource), func(e mcp.Resource) string { return e.URI })
	if err != nil {
		return nil, err
	}
	return &resourcesResult{PageResult: calls.PageResult{NextCursor: next}, Resources: page}, nil
}

func (s *Resources) prepareDirectory(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	_, f, err := s.asked(ctx, c, true)
	if err != nil {
		return nil, err
	}
	return &calls.Action{Request: s.readRequest(c, f), Perform: func(ctx context.Context, permit *gate.Permit) (any, error) {
		if f.pack == nil {
			return workspaceChildren(c, f.path)
		}
		if err := s.opts.Road.SameAs(ctx, c, f.pack, permit, false); err != nil {
			return nil, err
		}
		return s.packChildren(f), nil
	}}, nil
}

// packChildren returns the files in a pack's folder, and the subfolders that contain
// files, sorted by their URIs.
func (s *Resources) packChildren(f *found) []mcp.Resource {
	prefix := f.path + "/"
	if f.path == "." {
		prefix = ""
	}
	var all []mcp.Resource
	folders := make(map[string]bool)
	for _, file := range f.tree.Files {
		rest, ok := strings.CutPrefix(file.Path, prefix)
		if !ok {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		at := path.Join(f.path, name)
		switch {
		case deeper && !folders[name]:
			folders[name] = true
			all = append(all, folderResource(address.OfPack(f.pack, at), name))
		case deeper:
		case at == f.pack.Entry:
			r := s.opts.Offer.Document(f.pack)
			r.Size = &file.Size
			all = append(all, r)
		default:
			all = append(all, mcp.Resource{URI: address.OfPack(f.pack, at), Name: safetext.Line(name), MIMEType: offer.TypeOf(f.pack, at), Size: &file.Size})
		}
	}
	slices.SortFunc(all, func(a, b mcp.Resource) int { return strings.Compare(a.URI, b.URI) })
	return all
}

func folderResource(uri, name string) mcp.Resource {
	return mcp.Resource{URI: uri, Name: safetext.Line(name), MIMEType: mimeDirectory}
}

// workspaceChildren returns the regular files and folders in a folder of the
// workspace, up to the bound for one listing.
func workspaceChildren(c *calls.Call, dir string) ([]mcp.Resource, error) {
	d, err := c.Workspace().Open()
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, _, err := d.List(dir)
	if err != nil {
		return nil, err
	}
	var all []mcp.Resource
	for _, e := range entries {
		uri := c.Workspace().URI(path.Join(dir, e.Name))
		switch e.Type {
		case packfs.TypeDir:
			all = append(all, folderResource(uri, e.Name))
		case packfs.TypeFile:
			all = append(all, mcp.Resource{URI: uri, Name: safetext.Line(e.Name), MIMEType: filetype.ByName(e.Name), Size: &e.Size})
		}
	}
	slices.SortFunc(all, func(a, b mcp.Resource) int { return strings.Compare(a.URI, b.URI) })
	return all, nil
}
