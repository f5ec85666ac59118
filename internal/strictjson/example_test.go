package strictjson_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Two spellings of a value are written alike, and a key that is there twice is an
// error.
func Example() {
	for _, raw := range []string{`{"b": 1.0, "a": "\u003c"}`, `{"a":"<","b":1.0}`, `{"a": 1, "a": 2}`, `{} {}`} {
		v, err := strictjson.Decode([]byte(raw))
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(strictjson.Format(v))
	}
	// Output:
	// {"a":"<","b":1.0}
	// {"a":"<","b":1.0}
	// "a" is there twice
	// not one JSON value
}
