package filetype_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/filetype"
)

func Example() {
	data := []byte("# Notes\n")
	fmt.Println(filetype.Of("notes.md", data, filetype.IsText(data, false)))
	fmt.Println(filetype.IsText([]byte("a\x00b"), false), filetype.ByName("photo.png") == "")
	// Output:
	// text/markdown
	// false true
}
