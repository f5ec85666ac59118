package letters_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
)

func Example() {
	fmt.Printf("%q %q\n", letters.Normal("cu\u200brl\u00a0“x”"), letters.Unsplit(`c\url cu""rl`))
	fmt.Printf("%q %q\n", letters.Lookalike("a pаypal link"), letters.Lookalike("привет"))
	fmt.Println(letters.FromBase64("Y3VybCBodHRwczovL2V4YW1wbGUuY29t"))
	// Output:
	// "curl \"x\"" "curl curl"
	// "pаypal" ""
	// curl https://example.com true
}
