package secrets_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/scan/secrets"
)

func Example() {
	_, ok := secrets.InLine("token = ghp_your_token_here_000000000000000000")
	fmt.Println(ok)
	_, ok = secrets.InLine("nothing")
	fmt.Println(ok, secrets.IsKeyLine("MII..."))
	// Output:
	// false
	// false false
}
