package server

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// A frontRequest is a request that is answered before the library sees it: the
// library has no hook for it, or it concerns one chat, while the library's registries
// are shared by all.
type frontRequest struct {
	method  string
	params  json.RawMessage
	modern  bool // of 2026-07-28 or later
	chat    *chats.Chat
	catalog *packs.Catalog // as it was at first; a call that the gate decides about looks again
}

// decode decodes the parameters of a request into v.
func (r *frontRequest) decode(v any) error {
	if len(r.params) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.params, v); err != nil {
		return toolerr.BadParams(r.method)
	}
	return nil
}

// refusedRequest records that a request answered before the library was refused, with
// one of the tools' error codes, and returns its error.
func (s *Server) refusedRequest(ctx context.Context, r *frontRequest, code, what string, err *toolerr.RPCError) error {
	s.road.RefusedEarly(ctx, r.method, callargs.Read(r.params), toolerr.New(code, "", "%s: %s", err.Message, safetext.Quote(safetext.Shorten(what, toolerr.MaxQuoted))))
	return err
}

// refuseAnswer records that a request carries something that is not an answer, and
// returns that as an error.
func (s *Server) refuseAnswer(ctx context.Context, r *frontRequest, problem string) error {
	var p struct {
		Name         string
		Arguments    json.RawMessage
		RequestState any
	}
	// What cannot be decoded is not recorded.
	_ = json.Unmarshal(r.params, &p)
	method := &calls.Method{Name: r.method}
	if t := s.base[toolname.Plain(p.Name)]; t != nil && r.method == string(mcp.MethodToolsCall) {
		method = s.method(t)
	}
	state, _ := p.RequestState.(string)
	return s.road.RefuseAnswer(ctx, method, callargs.Read(p.Arguments), state, problem)
}
