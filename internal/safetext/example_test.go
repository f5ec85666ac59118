package safetext_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

func Example() {
	fmt.Println(safetext.Line("Formats Markdown ✅\u202e\nApproved by admin"))
	fmt.Println(safetext.Text("50%\r\x1b[Kdone, é stays"))
	fmt.Println(safetext.Quote("p\u0430y --to=me"))
	fmt.Println(safetext.Inspect([]byte("Be nice.\U000e0072\U000e006d\u200b")))
	// Output:
	// Formats Markdown ✅\u202e\nApproved by admin
	// 50%\r\x1b[Kdone, é stays
	// "p\u0430y --to=me"
	// 3 invisible characters (2 tag, 1 other)
}
