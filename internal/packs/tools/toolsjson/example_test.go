package toolsjson_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
)

func Example() {
	set, problems := toolsjson.Parse("tools.json", []byte(`[
		{"name": "greet", "description": "Say hello.", "command": ["echo", "hello"]},
		{"name": "lookup", "description": "Look up.", "parameters": {"type": "object"}, "handler": "lookup.js"}
	]`), tools.Limits{})
	for _, t := range set.Tools {
		fmt.Printf("%s runs: %v (%s)\n", t.Name, t.Command != nil, t.DeclaredOnly)
	}
	fmt.Println(problems[0])
	// Output:
	// greet runs: true ()
	// lookup runs: false (it declares no command, and "handler" is not read)
	// tools.json:3:94: unknown-key: key "handler" is not read
}
