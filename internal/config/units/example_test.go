package units_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/config/units"
)

func Example() {
	n, ok := units.ParseSize("64 MiB")
	fmt.Println(n, ok, units.SizeText(n))
	_, ok = units.ParseSize("64 MB")
	fmt.Println(ok)
	// Output:
	// 67108864 true 64MiB
	// false
}
