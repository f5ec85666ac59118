package toolerr

import (
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// RPCNotGiven is the code of a request for something that is there and is not
// given: denied, waiting for a person, or too large. It is outside of what
// JSON-RPC and MCP reserve. The error's data has what a tool call would get.
const RPCNotGiven = 403

// An RPCError is the answer to a request that gets no result.
type RPCError struct {
	Code    int
	Message string
	Data    any // nil: none
}

func (e *RPCError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// Reply is the message that says so to the request with this id.
func Reply(id json.RawMessage, e *RPCError) mcp.JSONRPCError {
	return mcp.NewJSONRPCError(mcp.NewRequestId(id), e.Code, e.Message, e.Data)
}

// BadParams is the error for parameters of another type than the protocol's.
func BadParams(method string) *RPCError {
	return &RPCError{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("the parameters of %s are not as the protocol has them", method)}
}
