package markdown_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/markdown"
)

const document = `# Git

### git_log

Show the last commits.

#### Parameters

| Name | Type | Required | Description |
|---|---|---|---|
| count | integer | no | How many (default: 10) |

#### Command

~~~
git log -n {{count}}
~~~

### Notes

Nothing here is a tool.
`

func Example() {
	set, problems := markdown.Parse("SKILL.md", []byte(document), markdown.Defaults{ReadOnly: true}, tools.Limits{})
	for _, t := range set.Tools {
		fmt.Println(t.Signature(), t.Command.Program, t.Command.Args, t.Policy.ReadOnly)
	}
	fmt.Println(problems, markdown.Names([]byte(document)))
	// Output:
	// git_log(count?: integer = 10) git [log -n {{count}}] true
	// [] [git_log]
}
