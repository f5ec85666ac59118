package strictjson_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

func Example() {
	src := []byte(`{"tools": [{"name": "a"}, {"name": "b", "size": 1.0}]}`)
	root, err := strictjson.Parse(src)
	if err != nil {
		fmt.Println(err)
		return
	}
	name := root.Get("tools").Items[1].Get("name")
	fmt.Printf("%s, which is %s, is %q at byte %d\n", name.Pointer(), name.Kind, name.Text, name.Start)
	fmt.Printf("%s\n", strictjson.Canonical(root.Get("tools").Items[1].Value()))

	_, err = strictjson.Parse([]byte(`{"a": 1, "a": 2}`))
	fmt.Printf("%s at byte %d: %s; %s\n", err.Code, err.Offset, err.Problem, err.Hint)
	// Output:
	// /tools/1/name, which is a string, is "b" at byte 35
	// {"name":"b","size":1.0}
	// json-duplicate-key at byte 9: key "a" occurs twice; keep one of them
}
