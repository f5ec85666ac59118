package calls_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
)

// A call decodes its arguments into what its method takes. The error shows a model
// the schema that it should have followed.
func ExampleCall_Decode() {
	c := &calls.Call{
		Method: &calls.Method{Name: "greet", Input: `{"type":"object"}`},
		Args:   callargs.Read([]byte(`{"who":"Ada"}`)),
	}
	var p struct {
		Who string `json:"who"`
	}
	fmt.Println(c.Decode(&p), p.Who)
	c.Args = callargs.Read([]byte(`{"who":7}`))
	fmt.Println(c.Decode(&p))
	// Output:
	// <nil> Ada
	// invalid_arguments: who is a number and must be a string
}
