package call

import (
	"encoding/json"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A Kept is what another replica needs of a call to show and record a question about it.
// Nothing can be run from it: it has no environment, no input and no policy.
type Kept struct {
	Caller    Caller             `json:"caller"`
	Kind      Kind               `json:"kind"`
	Method    string             `json:"method"`
	Pack      Pack               `json:"pack"` // without Files
	Tool      string             `json:"tool,omitempty"`
	Run       bool               `json:"run,omitempty"`
	Arguments json.RawMessage    `json:"arguments,omitempty"` // in one spelling
	Logged    strictjson.Compact `json:"logged,omitzero"`
	Fields    []Field            `json:"fields,omitempty"`
	Level     sandbox.Level      `json:"level"`
	Digest    string             `json:"digest"` // of the call
	Facts     string             `json:"facts"`  // digest of the facts
}

// Keep returns what other replicas need of a call.
func (c *Call) Keep() Kept {
	k := Kept{
		Caller: c.Caller, Kind: c.Kind, Method: c.Method, Pack: c.Pack, Arguments: json.RawMessage(c.Arguments.Canonical()),
		Logged: c.Logged, Fields: c.Fields, Level: c.level, Digest: c.digest, Facts: c.FactsDigest(),
	}
	k.Pack.Files, k.Pack.From.Updated = nil, nil
	if c.Run != nil {
		k.Run, k.Tool = true, c.Run.Tool
	}
	return k
}

// Call returns the call of which a replica kept this. It has the digests of the whole
// call, but no facts.
func (k Kept) Call() *Call {
	r := Request{
		Caller: k.Caller, Kind: k.Kind, Method: k.Method, Pack: k.Pack, Arguments: ParseArguments(k.Arguments), Logged: k.Logged, Fields: k.Fields,
	}
	if k.Run {
		r.Run = &Run{Tool: k.Tool}
	}
	return &Call{Request: r, level: k.Level, digest: k.Digest, kept: k.Facts}
}

// FactsDigest returns [DigestOf] of the facts of a call.
func (c *Call) FactsDigest() string {
	if c.kept != "" {
		return c.kept
	}
	return DigestOf(c.Facts())
}
