package node_test

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
)

// A value of the wrong kind is reported with its place, and the others are read.
func Example() {
	r := &node.Reader{Name: "config.yaml", Report: func(where, key, message string) { fmt.Printf("%s: %s: %s\n", where, key, message) }}
	root := r.Parse([]byte("names:\n  - ada\n  - [bob]\n"))
	r.Mapping(root, "", func(_, v *yaml.Node, path string) {
		for i, item := range r.Items(v, path) {
			if text, ok := r.Text(item, fmt.Sprintf("%s[%d]", path, i)); ok {
				fmt.Println(text)
			}
		}
	})
	// Output:
	// ada
	// config.yaml:3:5: names[1]: is a list; want text
}
