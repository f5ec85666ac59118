package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// An Envelope holds what the transport needs from a message before passing it to
// the library. Its values are slices of the line, as written.
type Envelope struct {
	JSONRPC string
	ID      json.RawMessage
	Method  *string // nil: none
	Params  json.RawMessage
	Result  json.RawMessage
	Error   json.RawMessage
}

// A Problem says why a message is refused, as a JSON-RPC error.
type Problem struct {
	Code    int
	Message string
}

// notAMessage is the problem of JSON that is none of the three kinds of message.
var notAMessage = &Problem{CodeInvalidRequest, "the message is not a JSON-RPC request, notification or response"}

// parse reads the top level of a message. Each name must be exact and occur
// once: the library's decoder would accept "ID" for "id", and would take the
// last of two. If there is a problem, e has the ID if it could be read.
func parse(data []byte) (e Envelope, _ *Problem) {
	switch {
	case !utf8.Valid(data):
		return e, &Problem{CodeParse, "the message is not UTF-8"}
	case !json.Valid(data):
		return e, &Problem{CodeParse, "the message is not JSON"}
	case data[0] == '[':
		return e, &Problem{CodeInvalidRequest, "batches are not supported; send one message a line"}
	case data[0] != '{':
		return e, notAMessage
	}
	fields := map[string]*json.RawMessage{
		"jsonrpc": new(json.RawMessage), "id": &e.ID, "method": new(json.RawMessage),
		"params": &e.Params, "result": &e.Result, "error": &e.Error,
	}
	for key, value := range members(data) {
		field := fields[key]
		if field == nil {
			for name := range fields {
				if strings.EqualFold(key, name) {
					return Envelope{}, &Problem{CodeInvalidRequest, fmt.Sprintf("the message has %q, which must be written %q", key, name)}
				}
			}
			continue
		}
		if *field != nil {
			return Envelope{}, &Problem{CodeInvalidRequest, fmt.Sprintf("the message has %q twice", key)}
		}
		*field = value
	}
	if v := *fields["jsonrpc"]; v != nil && json.Unmarshal(v, &e.JSONRPC) != nil {
		return e, notAMessage
	}
	if v := *fields["method"]; v != nil && json.Unmarshal(v, &e.Method) != nil {
		return e, notAMessage
	}
	return e, nil
}

// members yields the members of a JSON object as slices of it. The JSON must be
// valid. Unlike a decoder, it copies no value.
func members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		i := 1 // after the brace
		next := func(skip string) {
			for strings.IndexByte(skip, object[i]) >= 0 {
				i++
			}
		}
		for {
			next(" \t\r\n,")
			if object[i] == '}' {
				return
			}
			end := valueEnd(object, i)
			var key string
			if json.Unmarshal(object[i:end], &key) != nil {
				return
			}
			i = end
			next(" \t\r\n:")
			end = valueEnd(object, i)
			if !yield(key, json.RawMessage(object[i:end:end])) {
				return
			}
			i = end
		}
	}
}

// valueEnd returns where the value that begins at i ends. The JSON must be valid.
func valueEnd(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth == 0 { // a number or a word
				for i < len(b) && strings.IndexByte(" \t\r\n,:]}", b[i]) < 0 {
					i++
				}
				return i
			}
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(b)
}

// requestID reports whether raw is a valid request id, and returns it as
// written.
func requestID(raw json.RawMessage) (json.RawMessage, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	if raw[0] == '"' {
		return raw, true
	}
	digits := bytes.TrimPrefix(raw, []byte("-"))
	if len(digits) == 0 || len(digits) > 18 {
		return nil, false
	}
	for _, b := range digits {
		if b < '0' || b > '9' {
			return nil, false
		}
	}
	return raw, true
}

// IsModern reports whether a request itself names a protocol version of
// 2026-07-28 or later.
func IsModern(params json.RawMessage) bool {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	var version string
	if json.Unmarshal(p.Meta[mcp.MetaKeyProtocolVersion], &version) != nil {
		return false
	}
	return mcp.IsModernProtocol(version)
}

// maxParams is how many names the parameters of a request may have: several
// times as many as any method needs.
const maxParams = 64

// ambiguous returns the problem of parameters that can be read in two ways; nil
// if there is none. The library's decoder accepts "Name" for "name" and takes
// the last of two, while a proxy before the server may take the first.
func ambiguous(params json.RawMessage) *Problem {
	if len(params) == 0 || params[0] != '{' {
		return nil
	}
	var names []string
	for key := range members(params) {
		for _, have := range names {
			if strings.EqualFold(have, key) {
				return &Problem{CodeInvalidParams, fmt.Sprintf("the parameters have %q twice", key)}
			}
		}
		if names = append(names, key); len(names) > maxParams {
			return &Problem{CodeInvalidParams, fmt.Sprintf("the parameters have more than %d names", maxParams)}
		}
	}
	return nil
}

// maxSaid is how many bytes a client may say about itself, with initialize or
// with a request of the newer era.
const maxSaid = 64 << 10

// saysTooMuch refuses a request whose client says too much about itself; nil if
// there is no problem. The rest of a request is bounded as a whole.
func saysTooMuch(method string, params json.RawMessage) *Problem {
	if len(params) <= maxSaid {
		return nil
	}
	if method == string(mcp.MethodInitialize) {
		return &Problem{CodeInvalidRequest, fmt.Sprintf("the parameters of initialize are larger than %d bytes", maxSaid)}
	}
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil // malformed parameters are refused elsewhere
	}
	if len(p.Meta[mcp.MetaKeyClientInfo])+len(p.Meta[mcp.MetaKeyClientCapabilities]) > maxSaid {
		return &Problem{CodeInvalidParams, fmt.Sprintf("what _meta says of the client is larger than %d bytes", maxSaid)}
	}
	return nil
}

// hasCursor reports whether a request asks for another page of a list.
func hasCursor(params json.RawMessage) bool {
	var p struct {
		Cursor *string `json:"cursor"`
	}
	return json.Unmarshal(params, &p) == nil && p.Cursor != nil && *p.Cursor != ""
}
