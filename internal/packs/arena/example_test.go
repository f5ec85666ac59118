package arena_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/arena"
)

func Example() {
	line := []byte("name: git-helper") // a buffer that is used again
	var names arena.Strings
	first := names.Bytes(line[6:])
	copy(line[6:], "pdf-tools!")
	fmt.Println(first, names.Text("pdf-tools"))
	// Output: git-helper pdf-tools
}
