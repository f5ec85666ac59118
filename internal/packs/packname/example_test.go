package packname_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
)

func Example() {
	fmt.Println(packname.IsValid("PDF Tools (v2)"), packname.Nearest("PDF Tools (v2)"))
	fmt.Println(packname.Segments("Acme Inc/größe"))
	fmt.Println(packname.Refuse("workspace", "acme/workspace/workspace") == "", packname.Refuse("mcp__x", "mcp-x"))
	// Output:
	// false pdf-tools-v2
	// acme-inc/größe
	// true the name "mcp__x" holds two underscores in a row, which part a pack from its tool in the names of tools
}
