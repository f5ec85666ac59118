package wire

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// Params are the parameters of a message, as written. An object is split into its
// members once, where the message arrives, so that code that needs one of them does not
// read the others: the arguments of a call may be most of a message.
type Params struct {
	raw     json.RawMessage // a slice of the message; nil: there are none
	members []param         // in their order, at most maxParams and one more
}

// A param is one member of parameters.
type param struct {
	name  string
	value json.RawMessage // a slice of raw
}

// maxParams is how many names the parameters of a request may have: several
// times as many as any method needs.
const maxParams = 64

// ReadParams returns the parameters in raw, which must be valid JSON. It keeps raw.
func ReadParams(raw json.RawMessage) Params {
	if len(raw) == 0 {
		return Params{}
	}
	p, _ := splitParams(raw, 0)
	return p
}

// splitParams returns the parameters that begin at b[at], and where they end. The
// JSON must be valid.
func splitParams(b []byte, at int) (p Params, end int) {
	if b[at] != '{' {
		end = valueEnd(b, at)
		return Params{raw: b[at:end:end]}, end
	}
	m := members{b: b, at: at}
	for {
		if len(p.members) > maxParams {
			end = valueEnd(b, at) // the request is refused, so the rest does not matter
			break
		}
		if !m.next() {
			end = m.at
			break
		}
		p.members = append(p.members, param{m.key, m.skip()})
	}
	p.raw = b[at:end:end]
	return p, end
}

// Raw returns the parameters as written; nil if there are none.
func (p Params) Raw() json.RawMessage { return p.raw }

// IsObject reports whether the parameters are an object.
func (p Params) IsObject() bool { return len(p.raw) > 0 && p.raw[0] == '{' }

// Get returns the value with this name, as written; nil if there is none. It finds
// what the library's decoder finds: a name in any letter case, and the last of
// several, which no request has (see [Early]).
func (p Params) Get(name string) (value json.RawMessage) {
	for _, m := range p.members {
		if strings.EqualFold(m.name, name) {
			value = m.value
		}
	}
	return value
}

// meta returns the members of _meta; none if it is not an object.
func (p Params) meta() (meta map[string]json.RawMessage) {
	if json.Unmarshal(p.Get("_meta"), &meta) != nil {
		return nil
	}
	return meta
}

// Version returns the protocol version that _meta names; empty if it names none.
func (p Params) Version() (version string) {
	if json.Unmarshal(p.meta()[mcp.MetaKeyProtocolVersion], &version) != nil {
		return ""
	}
	return version
}

// IsModern reports whether a request itself names a protocol version of
// 2026-07-28 or later.
func (p Params) IsModern() bool { return mcp.IsModernProtocol(p.Version()) }

// ambiguous returns the problem of parameters that can be read in two ways; nil
// if there is none. The library's decoder accepts "Name" for "name" and takes
// the last of two, while a proxy before the server may take the first.
func (p Params) ambiguous() *Problem {
	for i, m := range p.members {
		for _, have := range p.members[:i] {
			if strings.EqualFold(have.name, m.name) {
				return &Problem{CodeInvalidParams, fmt.Sprintf("the parameters have %q twice", m.name)}
			}
		}
	}
	if len(p.members) > maxParams {
		return &Problem{CodeInvalidParams, fmt.Sprintf("the parameters have more than %d names", maxParams)}
	}
	return nil
}

// maxSaid is how many bytes a client may say about itself, with initialize or
// with a request of the newer era.
const maxSaid = 64 << 10

// saysTooMuch refuses a request whose client says too much about itself; nil if
// there is no problem. The rest of a request is bounded as a whole.
func (p Params) saysTooMuch(method string) *Problem {
	if len(p.raw) <= maxSaid {
		return nil
	}
	if method == string(mcp.MethodInitialize) {
		return &Problem{CodeInvalidRequest, fmt.Sprintf("the parameters of initialize are larger than %d bytes", maxSaid)}
	}
	meta := p.meta() // malformed parameters are refused elsewhere
	if len(meta[mcp.MetaKeyClientInfo])+len(meta[mcp.MetaKeyClientCapabilities]) > maxSaid {
		return &Problem{CodeInvalidParams, fmt.Sprintf("what _meta says of the client is larger than %d bytes", maxSaid)}
	}
	return nil
}

// hasCursor reports whether a request asks for another page of a list.
func (p Params) hasCursor() bool {
	var cursor *string
	return json.Unmarshal(p.Get("cursor"), &cursor) == nil && cursor != nil && *cursor != ""
}

// CancelledID returns the id, as written, that a client's notification cancels;
// empty if it cannot be read, which cancels nothing.
func (p Params) CancelledID() string { return string(p.Get("requestId")) }
