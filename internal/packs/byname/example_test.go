package byname_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/byname"
)

func Example() {
	fmt.Println(byname.IsSkill("Skill.md"), byname.IsToolPack("sum.tool.json"), byname.IsSkipped(".git"))
	for _, name := range []string{"SKILL.md", "docs/guide.md", "tools/sum.tool.json", "run.sh"} {
		fmt.Println(name, byname.Matters(name, true))
	}
	// Output:
	// true true true
	// SKILL.md true
	// docs/guide.md false
	// tools/sum.tool.json true
	// run.sh false
}
