package server

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// refuseAnswer records that a request carries something that is not an answer, and
// returns that as an error.
func (s *Server) refuseAnswer(ctx context.Context, r *calls.Request, problem string) error {
	var p struct {
		Name         string
		Arguments    json.RawMessage
		RequestState any
	}
	// What cannot be decoded is not recorded.
	_ = json.Unmarshal(r.Params, &p)
	method := &calls.Method{Name: r.Method}
	if t := s.base[toolname.Plain(p.Name)]; t != nil && r.Method == string(mcp.MethodToolsCall) {
		method = s.method(t)
	}
	state, _ := p.RequestState.(string)
	return s.road.RefuseAnswer(ctx, method, callargs.Read(p.Arguments), state, problem)
}
