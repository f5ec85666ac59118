package loose_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/loose"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

func Example() {
	t, problems := loose.Parse("sum.tool.json", []byte(`{"name": "sum_up", "description": "Sums a page up.", "parameters": {},
		"command": {"program": "cat", "args": ["--", "notes.txt"]}}`), tools.Limits{})
	fmt.Println(len(problems), loose.Document(t).Description)
	fmt.Printf("%s…\n", loose.Text(t, 40))

	_, problems = loose.Parse("own.tool.json", []byte(`{"name": "own", "description": "d", "parameters": {}, "command": {"program": "./own.sh"}}`), tools.Limits{})
	fmt.Println(problems[len(problems)-1].Code)
	// Output:
	// 0 Sums a page up.
	// # sum_up
	//
	// Sums a page up.
	//
	// ## Parameters…
	// loose-tool-folder
}
