package toolerr

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// RPCNotGiven is the code for a request about something that exists but is not given:
// it was denied, waits for a person, or is too large. The code is outside the ranges
// that JSON-RPC and MCP reserve. The error's data holds what a tool call would get.
const RPCNotGiven = 403

// An RPCError is the answer to a request that fails.
type RPCError struct {
	Code    int
	Message string
	Data    any // nil: none
}

func (e *RPCError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// Reply returns the message that answers the request with this id with the error.
func Reply(id json.RawMessage, e *RPCError) mcp.JSONRPCError {
	return mcp.NewJSONRPCError(mcp.NewRequestId(id), e.Code, e.Message, e.Data)
}

// BadParams returns the error for parameters that do not have the protocol's types.
func BadParams(method string) *RPCError {
	return &RPCError{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("the parameters of %s are not as the protocol has them", method)}
}

// Plain replaces the library's error for parameters that it could not decode:
// its words describe its implementation, and its code is a different one.
func Plain(method string, e mcp.JSONRPCErrorDetails) mcp.JSONRPCErrorDetails {
	for _, words := range []string{"json:", "Go struct", "Go value", "illegal base64"} {
		if strings.Contains(e.Message, words) {
			return mcp.NewJSONRPCErrorDetails(wire.CodeInvalidParams, BadParams(method).Message, nil)
		}
	}
	return e
}
