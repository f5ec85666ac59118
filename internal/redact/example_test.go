package redact_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/redact"
)

func Example() {
	secrets := redact.New(redact.Environ([]string{"HOME=/home/ada", "GITHUB_TOKEN=correct horse"})...)
	fmt.Println(secrets.Hide("GET /?q=correct+horse by ada"))
	fmt.Println(secrets.LoggedArgs([]string{"curl", "-u", "ada:battery", "correct horse"}))
	// Output:
	// GET /?q=[redacted] by ada
	// [curl -u ada:[redacted] [redacted]]
}
