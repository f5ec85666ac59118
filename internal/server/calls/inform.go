package calls

import (
	"context"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// inform adds to the span what the call turned out to be.
func inform(ctx context.Context, req gate.Request) {
	span := spans.From(ctx)
	if span == nil {
		return
	}
	tool := ""
	if req.Run != nil {
		tool = req.Run.Tool
	}
	span.About(string(req.Kind), req.Pack.ID, tool)
}
