package calls

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A Request is one that is answered before the library sees it: the
// library has no hook for it, or it concerns one chat, while the library's registries
// are shared by all.
type Request struct {
	Method  string
	Params  json.RawMessage
	Modern  bool // of 2026-07-28 or later
	Chat    *chats.Chat
	Catalog *packs.Catalog // as it was at first; a call that the gate decides about looks again
}

// Decode decodes the parameters of a request into v.
func (r *Request) Decode(v any) error {
	if len(r.Params) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Params, v); err != nil {
		return toolerr.BadParams(r.Method)
	}
	return nil
}

// RefusedRequest records that a request answered before the library was refused, with
// one of the tools' error codes, and returns its error.
func (r *Road) RefusedRequest(ctx context.Context, req *Request, code, what string, err *toolerr.RPCError) error {
	r.RefusedEarly(ctx, req.Method, callargs.Read(req.Params), toolerr.New(code, "", "%s: %s", err.Message, safetext.Quote(safetext.Shorten(what, toolerr.MaxQuoted))))
	return err
}

// A PageResult holds what the pages of every list have in common.
type PageResult struct {
	mcp.CacheableResult
	NextCursor string `json:"nextCursor,omitempty"`
}

// CursorParams are the parameters of a list by pages.
type CursorParams struct {
	Cursor string `json:"cursor"`
}

// Tree returns the parameters as arguments.
func (p *CursorParams) Tree() *strictjson.Node {
	return strictjson.NewObject(callargs.Text("cursor", p.Cursor))
}
