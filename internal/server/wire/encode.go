package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// encodeLine encodes a message as a line.
func encodeLine(message any) ([]byte, error) {
	b, err := Encode(message)
	if err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	return append(b, '\n'), nil
}

// Encode returns the JSON of a message, without a line break. It equals that of
// [json.Marshal] except for the order of names. json.Marshal reads the output of
// a result's MarshalJSON once more, and JSON embedded in it twice. For results
// that hold documents and program output, that takes longer than everything
// else.
func Encode(message any) ([]byte, error) {
	response, ok := message.(mcp.JSONRPCResponse)
	if !ok {
		return json.Marshal(message)
	}
	id, err := json.Marshal(response.ID)
	if err != nil {
		return nil, err
	}
	result, err := encodeResult(response.Result)
	if err != nil {
		return nil, err
	}
	version, err := json.Marshal(response.JSONRPC)
	if err != nil {
		return nil, err
	}
	const names = `{"jsonrpc":,"id":,"result":}` + "\n" // room for the line break that a caller adds
	b := make([]byte, 0, len(names)+len(version)+len(id)+len(result))
	b = append(append(b, `{"jsonrpc":`...), version...)
	b = append(append(b, `,"id":`...), id...)
	b = append(append(b, `,"result":`...), result...)
	return append(b, '}'), nil
}

// encodeResult returns the JSON of a result.
func encodeResult(result any) ([]byte, error) {
	var call mcp.CallToolResult
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if r == nil {
			return json.Marshal(result)
		}
		call = *r
	case mcp.CallToolResult:
		call = r
	default:
		return json.Marshal(result)
	}
	// Raw content was made by [encode]: it is JSON on one line.
	structured := call.RawStructuredContent
	if len(structured) == 0 || bytes.ContainsAny(structured, "\n\r") {
		return call.MarshalJSON()
	}
	call.RawStructuredContent, call.StructuredContent = nil, nil
	rest, err := call.MarshalJSON()
	if err != nil {
		return nil, err
	}
	// It is never empty: it has the content, if only an empty list.
	rest = append(rest[:len(rest)-1], `,"structuredContent":`...)
	return append(append(rest, structured...), '}'), nil
}
