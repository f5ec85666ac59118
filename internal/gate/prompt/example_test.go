package prompt_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A question says what happens, and what changed since an earlier answer. What others
// chose is escaped.
func Example() {
	r := call.Request{
		Caller:    call.Caller{Client: "Ex\x1b[2J", ChatEnd: "until this client closes"},
		Kind:      call.KindOpen,
		Pack:      call.Pack{ID: "triage", Dir: "/packs/triage", Trust: call.TrustUser, Digest: "sha256:1c5d3f4e90ab"},
		Arguments: call.ParseArguments([]byte(`{"pack_id":"triage"}`)),
	}
	text, err := prompt.Text(&r, sandbox.Report{}, "since your answer of today", []string{"the file SKILL.md changed"}, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(text)
	fmt.Println(prompt.Scope(&r), prompt.Until(&r))
	// Output:
	// Open the documents of pack triage? (changed)
	//
	//     CHANGED    since your answer of today:
	//                - the file SKILL.md changed
	//     effect     the model reads them and may do what they say
	//     pack       "/packs/triage"
	//     trust      yours: from a folder you named or own
	//     digest     1c5d3f4e90ab
	//     asked by   a client that calls itself "Ex\x1b[2J"
	//
	// opening this pack's documents until this client closes
}
