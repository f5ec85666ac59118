package lines_test

import (
	"fmt"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
)

// A chat gets 100 lines about calls that nobody decided; the others are counted.
func Example() {
	r := lines.NewRefusals(time.Hour)
	written := 0
	for range 103 {
		e := audit.Entry{Chat: "chat-1", Caller: "ada"}
		if !r.Fold(&e, "not_found", time.Unix(0, 0), func(string) {}) {
			written++
		}
	}
	fmt.Println(written, r.Take("ada"))
	// Output: 100 map[not_found:3]
}
