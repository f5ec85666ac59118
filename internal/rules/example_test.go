package rules_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/rules"
)

func ExampleDecide() {
	all := []rules.Rule{
		{Effect: rules.Allow, Argv: []string{"git", "**"}},
		{Effect: rules.Deny, Argv: []string{"git", "push", "**"}},
	}
	for _, args := range [][]string{{"status"}, {"push", "-f"}, {"-c", "x", "push"}} {
		v := rules.Decide(all, rules.Call{
			Pack: "acme/deploy", Kind: "exec", Usual: true,
			Program: []string{"git", "/usr/bin/git"}, Args: args, Bare: true,
		})
		fmt.Println(args, v.Effect, v.Near, v.Rule)
	}
	// Output:
	// [status] allow false allow {argv: [git, "**"]}
	// [push -f] deny false deny {argv: [git, push, "**"]}
	// [-c x push] ask true deny {argv: [git, push, "**"]}
}
