package tools_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A declaration becomes a tool, arguments become values, and both become a
// program and its arguments, which somebody else has to approve and run.
func Example() {
	set, problems := toolsjson.Parse("tools.json", []byte(`{"tools": [{
		"name": "open_ticket",
		"description": "Open an incident ticket.",
		"inputSchema": {
			"properties": {"title": {"type": "string"}, "severity": {"type": "integer", "default": 3}},
			"required": ["title"]
		},
		"command": ["./ticket.py", "--severity={{severity}}", "--", "{{title}}"]
	}]}`), tools.Limits{})
	if set == nil {
		fmt.Println(problems)
		return
	}
	tool := set.Lookup("open_ticket")
	fmt.Println(tool.Signature())

	args, problem := strictjson.Parse([]byte(`{"title": "$(disk) is full"}`))
	if problem != nil {
		fmt.Println(problem)
		return
	}
	values, err := tool.Check(args)
	if err != nil {
		fmt.Println(err)
		return
	}
	inv, err := tool.Expand(values, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %q in the %s\n", inv.Program, inv.Args, inv.Cwd)

	args, _ = strictjson.Parse([]byte(`{"severity": "high"}`))
	_, err = tool.Check(args)
	fmt.Println(err)

	// Output:
	// open_ticket(title: string, severity?: integer = 3)
	// ./ticket.py ["--severity=3" "--" "$(disk) is full"] in the workspace
	// invalid arguments: missing "title"; /severity: got string, want integer
}
