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
	result, structured, err := encodeResult(response.Result)
	if err != nil {
		return nil, err
	}
	version, err := json.Marshal(response.JSONRPC)
	if err != nil {
		return nil, err
	}
	const names = `{"jsonrpc":,"id":,"result":,"structuredContent":}` + "\n" // encodeLine adds the line break
	b := make([]byte, 0, len(names)+len(version)+len(id)+len(result)+len(structured))
	b = append(append(b, `{"jsonrpc":`...), version...)
	b = append(append(b, `,"id":`...), id...)
	b = append(append(b, `,"result":`...), result...)
	if structured != nil {
		// The content always comes before it, if only as an empty list.
		b = append(append(b[:len(b)-1], `,"structuredContent":`...), structured...)
		b = append(b, '}')
	}
	return append(b, '}'), nil
}

// encodeResult returns the JSON of a result. If its structured content is raw JSON,
// that is returned separately.
func encodeResult(result any) (rest, structured []byte, err error) {
	var call mcp.CallToolResult
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if r == nil {
			rest, err = json.Marshal(result)
			return rest, nil, err
		}
		call = *r
	case mcp.CallToolResult:
		call = r
	default:
		rest, err = json.Marshal(result)
		return rest, nil, err
	}
	// Raw content was made by [encode]: it is JSON, and on one line.
	structured = call.RawStructuredContent
	if len(structured) == 0 || bytes.IndexByte(structured, '\n') >= 0 || bytes.IndexByte(structured, '\r') >= 0 { // each call takes a tenth of the time of ContainsAny
		structured = nil
	} else {
		call.RawStructuredContent, call.StructuredContent = nil, nil
	}
	rest, err = call.MarshalJSON()
	return rest, structured, err
}
