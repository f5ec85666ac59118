package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// An Envelope holds what the transport needs from a message before passing it to
// the library. Its values are slices of the line, as written.
type Envelope struct {
	JSONRPC string
	ID      json.RawMessage
	Method  *string // nil: none
	Params  Params
	Result  json.RawMessage
	Error   json.RawMessage
}

// A Problem says why a message is refused, as a JSON-RPC error.
type Problem struct {
	Code    int
	Message string
}

// notAMessage is the problem of JSON that is not a request, a notification or a
// response.
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
		"params": &e.Params.raw, "result": &e.Result, "error": &e.Error,
	}
	for top := (members{b: data}); top.next(); {
		field := fields[top.key]
		if field == nil {
			for name := range fields {
				if strings.EqualFold(top.key, name) {
					return Envelope{}, &Problem{CodeInvalidRequest, fmt.Sprintf("the message has %q, which must be written %q", top.key, name)}
				}
			}
			top.skip()
			continue
		}
		if *field != nil {
			return Envelope{}, &Problem{CodeInvalidRequest, fmt.Sprintf("the message has %q twice", top.key)}
		}
		if top.key == "params" {
			e.Params, top.at = splitParams(data, top.at)
			continue
		}
		*field = top.skip()
	}
	if v := *fields["jsonrpc"]; v != nil && json.Unmarshal(v, &e.JSONRPC) != nil {
		return e, notAMessage
	}
	if v := *fields["method"]; v != nil && json.Unmarshal(v, &e.Method) != nil {
		return e, notAMessage
	}
	return e, nil
}

// members walks through the members of a JSON object. The JSON must be valid. Unlike
// a decoder, it copies no value.
type members struct {
	b   []byte
	at  int    // where the object begins, at first; then where the member's value begins, or what follows it
	key string // of the member
	in  bool   // the walk has begun
}

// next moves to the next member. If there is none, it reports false, and at is where
// the object ends. The value must have been passed before next is called again.
func (m *members) next() bool {
	if !m.in {
		m.in = true
		m.at++ // after the brace
	}
	m.pass(" \t\r\n,")
	if m.b[m.at] == '}' {
		m.at++
		return false
	}
	end := valueEnd(m.b, m.at)
	if json.Unmarshal(m.b[m.at:end], &m.key) != nil {
		return false
	}
	m.at = end
	m.pass(" \t\r\n:")
	return true
}

func (m *members) pass(skip string) {
	for strings.IndexByte(skip, m.b[m.at]) >= 0 {
		m.at++
	}
}

// skip returns the member's value, as written, and moves past it.
func (m *members) skip() json.RawMessage {
	end := valueEnd(m.b, m.at)
	value := json.RawMessage(m.b[m.at:end:end])
	m.at = end
	return value
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
