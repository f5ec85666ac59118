package policy_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

func Example() {
	open := call.Request{
		Caller: call.Caller{Chat: "chat", Client: "client"}, Kind: call.KindOpen,
		Pack: call.Pack{ID: "git-helper", Dir: "/packs/git-helper", Digest: "sha256:1", Trust: call.TrustUser},
	}
	for _, under := range []string{policy.EveryCall, policy.Balanced} {
		c := policy.Case{Call: call.Freeze(open, sandbox.LevelFull), Policy: under, Keeps: true}
		for _, choice := range c.Choices() {
			fmt.Println(under, choice.Value, choice.Title)
		}
	}
	// Output:
	// every-call once Once: this exact call
	// every-call chat Chat: use git-helper
	// every-call always Always: use git-helper
	// every-call deny Deny
	// balanced once Once: this exact call
	// balanced chat Chat: use it, and run what only reads
	// balanced always Always: use it, and run what only reads
	// balanced deny Deny
}
