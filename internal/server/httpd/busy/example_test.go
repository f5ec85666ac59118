package busy_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/busy"
)

func Example() {
	r := busy.New(10, quota.Limits{Each: 1})
	done, _, _ := r.Begin("ada", nil)
	_, status, why := r.Begin("ada", nil)
	fmt.Println(status, why)
	done()

	left, _ := r.Close()
	_, status, _ = r.Begin("bob", nil)
	fmt.Println(left, status)
	// Output:
	// 429 too many calls of yours are under way; call again when one has ended
	// 0 503
}
