package toolpack_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolpack"
)

func Example() {
	set, problems := toolpack.Parse("summarize.tool.json", []byte(`{
		"name": "summarize",
		"description": "Sum up a web page.",
		"parameters": {
			"url": {"type": "string", "required": true, "source": "context.url"},
			"length": {"type": "string", "default": "short"}
		},
		"command": {"program": "summarize", "args": ["{{url}}", "--length", "{{length}}"]}
	}`), tools.Limits{})
	fmt.Println(set.Tools[0].Signature(), problems)

	_, problems = toolpack.Parse("list.tool.json", []byte(`{"tools": []}`), tools.Limits{})
	fmt.Println(problems[0])
	// Output:
	// summarize(url?: string = context.url, length?: string = "short") []
	// list.tool.json:1:11: tool-pack-not-a-tool: not a tool, but a list of tools
}
