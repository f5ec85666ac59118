package server

import (
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// Methods that the library has no constant for.
const (
	methodSkillsList    = "skills/list"
	methodSkillsGet     = "skills/get"
	methodDirectoryRead = "resources/directory/read"
)

// codeNotGiven is the code of a request for something that is there and is not
// given: denied, waiting for a person, or too large. It is outside of what
// JSON-RPC and MCP reserve. The error's data has what a tool call would get.
const codeNotGiven = 403

// A rpcError is the answer to a request that gets no result.
type rpcError struct {
	code    int
	message string
	data    any // nil: none
}

func (e *rpcError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.message) }

func errorReply(id json.RawMessage, e *rpcError) mcp.JSONRPCError {
	return mcp.NewJSONRPCError(mcp.NewRequestId(id), e.code, e.message, e.data)
}

// badParams is the error for parameters of another type than the protocol's.
func badParams(method string) *rpcError {
	return &rpcError{code: wire.CodeInvalidParams, message: fmt.Sprintf("the parameters of %s are not as the protocol has them", method)}
}
