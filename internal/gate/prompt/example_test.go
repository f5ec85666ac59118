package prompt_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
)

// A question is a card of facts. A terminal and a client's form are two renderings
// of it. What others chose is escaped.
func Example() {
	r := call.Request{
		Caller:    call.Caller{Client: "Ex\x1b[2J", ChatEnd: "until this client closes"},
		Kind:      call.KindOpen,
		Pack:      call.Pack{ID: "triage", Dir: "/packs/triage", Trust: call.TrustUser, Digest: "sha256:1c5d3f4e90ab"},
		Arguments: call.ParseArguments([]byte(`{"pack_id":"triage"}`)),
	}
	card, err := prompt.New(&r, prompt.Ask{Since: "since your answer of today", Changed: []string{"the file SKILL.md changed"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(card.Text(80))
	form := prompt.Form{Card: card, Pack: "triage", See: "packs-mcp approvals show K7QM-2F9X", Answers: []string{"Deny: it does not happen."}}
	fmt.Println(form.Text())
	// Output:
	// Open the documents of pack triage? (changed)
	//   CAUTION: changed since your answer of today
	//   reads only, starts nothing
	//
	// What changed
	//   CHANGED      since your answer of today
	//                the file SKILL.md changed
	//
	// What was asked for
	//   effect       the model reads them and may do what they say
	//   asked by     a client that calls itself "Ex\x1b[2J"
	//
	// The pack
	//   pack         "/packs/triage"
	//   trust        yours, from a folder you named or own
	//   digest       1c5d3f4e90ab
	//
	// Open the documents of pack triage? (changed)
	// ▸ CHANGED since your answer, reads only, starts nothing
	// ▸ Pack triage. See all: packs-mcp approvals show K7QM-2F9X
	//
	//     ▸ Open the documents of pack triage? (changed)
	//     ▸ Deny: it does not happen.
	//     ▸ CHANGED: since your answer of today
	//     ▸ CHANGED: the file SKILL.md changed
	//     ▸ effect: the model reads them and may do what they say
	//     ▸ asked by: a client that calls itself "Ex\x1b[2J"
	//     ▸ pack: "/packs/triage"
	//     ▸ trust: yours, from a folder you named or own
	//     ▸ digest: 1c5d3f4e90ab
}
