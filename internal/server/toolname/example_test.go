package toolname_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

func Example() {
	used := make(map[string]bool)
	for _, tool := range []string{"status", "Status", "a-tool-with-a-name-that-some-clients-would-cut"} {
		name := toolname.OfPack("git-helper", tool, func(folded string) bool { return used[folded] })
		used[toolname.Fold(name)] = true
		fmt.Println(name)
	}
	for rest, certain := range toolname.WithoutPrefix("packs.git__status") {
		fmt.Println(rest, certain)
	}
	// Output:
	// git-helper__status
	// git-helper__Status_7d065e
	// git-helper__a-tool-with-a-name-th_632d9b
	// git__status true
	// status true
}
