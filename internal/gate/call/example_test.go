package call_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A call is frozen once. Another spelling of its arguments is the same call, and
// later changes to the request do not affect it.
func Example() {
	request := func(arguments string) call.Request {
		return call.Request{
			Caller:    call.Caller{Chat: "stdio-1"},
			Kind:      call.KindOpen,
			Method:    "capability_packs_open_docs",
			Pack:      call.Pack{ID: "triage", Dir: "/packs/triage", Trust: call.TrustUser, Digest: "sha256:1c5d3f4e90ab"},
			Arguments: call.ParseArguments([]byte(arguments)),
			Tools:     []string{"greet"},
		}
	}
	r := request(`{"pack_id": "triage"}`)
	c := call.Freeze(r, sandbox.LevelFull)
	r.Tools[0] = "another"
	fmt.Println(c.Tools[0], c.Arguments.Canonical())

	same, other := request(`{"pack_id":"tr\u0069age"}`), request(`{"pack_id":"lint"}`)
	fmt.Println(c.Is(&same, sandbox.LevelFull), c.Is(&other, sandbox.LevelFull), c.IsLike(&other, sandbox.LevelFull))
	// Output:
	// greet {"pack_id":"triage"}
	// true false true
}
