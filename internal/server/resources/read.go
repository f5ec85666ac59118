package resources

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/card"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
	"github.com/packs-mcp/packs-mcp/internal/server/skills"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// maxResource is the largest file that is given whole, in bytes: as much as a skill
// may have. A larger file can be read in pages with read_file.
const maxResource = 16 << 20

type uriParams struct {
	URI string `json:"uri"`
}

func (p *uriParams) tree() *strictjson.Node { return strictjson.NewObject(callargs.Text("uri", p.URI)) }

type uriRequest struct {
	uriParams
	calls.RoundTrip
}

// uriInput is the schema of uriParams.
const uriInput = `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"],"additionalProperties":false}`

// Read answers resources/read.
func (s *Resources) Read(ctx context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
	var p uriRequest
	if err := r.Decode(&p); err != nil {
		return nil, err
	}
	if p.URI == calls.CardURI {
		return s.readCard(ctx, p)
	}
	u, ok := address.Parse(p.URI)
	made := s.generated(r.Catalog, p.URI)
	if !ok && made == nil {
		return nil, s.opts.Road.RefusedRequest(ctx, r, toolerr.CodeNotFound, p.URI, notFound(r, p.URI))
	}
	if made != nil {
		return s.readGenerated(ctx, r, p, made)
	}
	if u.Scheme != address.SchemeWorkspace && len(address.Places(r.Catalog, u)) == 0 {
		return nil, s.opts.Road.RefusedRequest(ctx, r, toolerr.CodeNotFound, p.URI, notFound(r, p.URI))
	}
	out, question, err := s.opts.Road.Pass(ctx, &calls.Method{Name: string(mcp.MethodResourcesRead), Input: uriInput, Prepare: s.prepareRead}, p.tree(), p.RoundTrip, nil)
	switch {
	case question != nil:
		return question, nil
	case errors.Is(err, address.ErrNoResource) || toolerr.IsMissing(err):
		return nil, notFound(r, p.URI)
	case err != nil:
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{out.(mcp.ResourceContents)}}, nil
}

// asked finds the file or folder that a request names.
func (s *Resources) asked(ctx context.Context, c *calls.Call, isDir bool) (uri string, _ *found, err error) {
	var p uriParams
	if err := c.Decode(&p); err != nil {
		return "", nil, err
	}
	u, ok := address.Parse(p.URI)
	if !ok {
		return "", nil, address.ErrNoResource
	}
	f, err := s.find(ctx, c, u)
	if err != nil {
		return "", nil, err
	}
	if f.isDir != isDir {
		return "", nil, address.ErrNoResource
	}
	return p.URI, f, nil
}

// prepareRead finds out which file would be given.
func (s *Resources) prepareRead(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	uri, f, err := s.asked(ctx, c, false)
	if err != nil {
		return nil, err
	}
	// Read it before the question, so that the person learns about hidden characters,
	// but do not keep it while they think.
	page, err := s.whole(c, f)
	if err != nil {
		return nil, err
	}
	req := s.readRequest(c, f)
	if page.UTF8 {
		req.Hidden = given.Hidden(page.Data)
	}
	return &calls.Action{Request: req, Perform: func(ctx context.Context, permit *gate.Permit) (any, error) {
		page, err := s.whole(c, f)
		if err != nil {
			return nil, err
		}
		if f.pack != nil {
			if err := s.opts.Road.SameAs(ctx, c, f.pack, permit, false); err != nil {
				return nil, err
			}
		}
		return contents(uri, page), nil
	}}, nil
}

// readRequest returns the request about a file or a folder for the gate.
func (s *Resources) readRequest(c *calls.Call, f *found) gate.Request {
	req := gate.Request{
		Caller: c.Caller, Kind: gate.KindRead, Method: c.Method.Name, Pack: f.facts, Path: f.path,
		Arguments: c.Args.Whole(), Logged: c.Logged(s.opts.Secrets),
	}
	switch {
	case f.pack == nil:
		req.Workspace, req.Scratch = c.Workspace().Dir, c.Workspace().IsOwn
	case f.path == f.pack.Entry:
		req.Kind, req.Path = gate.KindOpen, ""
	}
	return req
}

// whole reads a file, exactly the bytes that the pack's digest covers.
func (s *Resources) whole(c *calls.Call, f *found) (*packfs.Page, error) {
	limits := packfs.Limits{Page: maxResource, PageMax: maxResource, File: min(maxResource, s.opts.ReadFile)}
	var page *packfs.Page
	if f.pack == nil {
		dir, err := c.Workspace().Open()
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		page, err = dir.Read(f.path, 0, maxResource, limits)
		return page, s.tooLargeForOne(err)
	}
	dir, err := f.pack.OpenDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, _ := f.tree.File(f.path)
	page, err = dir.ReadVerified(f.path, 0, maxResource, limits, file.Digest)
	return page, s.tooLargeForOne(err)
}

// tooLargeForOne adds a hint about how to get a file that is too large to be given at
// once, if there is a way: read_file has a limit, too.
func (s *Resources) tooLargeForOne(err error) error {
	if e, ok := errors.AsType[*packfs.TooLargeError](err); ok && e.Size <= s.opts.ReadFile {
		return toolerr.New(toolerr.CodeTooLarge, "It is there by pages: call "+s.opts.ReadFileTool+" with its pack_id and path.", "%v", e)
	}
	return err
}

// contents returns a file as resources/read gives it: if it is text, as text, byte
// for byte.
func contents(uri string, page *packfs.Page) mcp.ResourceContents {
	if page.UTF8 && utf8.Valid(page.Data) {
		return mcp.TextResourceContents{URI: uri, MIMEType: page.MIME, Text: string(page.Data)}
	}
	return mcp.BlobResourceContents{URI: uri, MIMEType: page.MIME, Blob: base64.StdEncoding.EncodeToString(page.Data)}
}

// A generated resource is one that is not a file: the index of skills, or a skill's
// manifest. Both are metadata.
type generated func(context.Context) (any, error)

// readGenerated returns a generated resource. It is recorded, and nobody is asked.
func (s *Resources) readGenerated(ctx context.Context, r *calls.Request, p uriRequest, made generated) (mcp.ResultMetadata, error) {
	out, _, err := s.opts.Road.Pass(ctx, s.metadataMethod(string(mcp.MethodResourcesRead), made), p.tree(), p.RoundTrip, nil)
	if skills.IsNone(err) {
		return nil, notFound(r, p.URI)
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{
		mcp.TextResourceContents{URI: p.URI, MIMEType: "application/json", Text: string(text)},
	}}, nil
}

// metadataMethod returns a method that shows metadata.
func (s *Resources) metadataMethod(name string, give func(context.Context) (any, error)) *calls.Method {
	return &calls.Method{Name: name, Prepare: func(_ context.Context, c *calls.Call) (*calls.Action, error) {
		return &calls.Action{
			Request: gate.Request{Caller: c.Caller, Kind: gate.KindList, Method: name, Arguments: c.Args.Whole(), Logged: c.Logged(s.opts.Secrets)},
			Perform: func(ctx context.Context, _ *gate.Permit) (any, error) { return give(ctx) },
		}, nil
	}}
}

// readCard returns the document of the card.
func (s *Resources) readCard(ctx context.Context, p uriRequest) (mcp.ResultMetadata, error) {
	method := s.metadataMethod(string(mcp.MethodResourcesRead), func(context.Context) (any, error) { return card.Chat(), nil })
	out, question, err := s.opts.Road.Pass(ctx, method, p.tree(), p.RoundTrip, nil)
	switch {
	case question != nil:
		return question, nil
	case err != nil:
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.TextResourceContents{
		URI: p.URI, MIMEType: wire.AppsMIME, Text: out.(string),
		// No domains: the card loads nothing, and talks only to the client.
		Meta: map[string]any{"ui": map[string]any{"prefersBorder": false}},
	}}}, nil
}
