package places_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/config/places"
)

func ExampleResolve() {
	p, err := places.Resolve([]string{"PACKS_MCP_HOME=/srv/packs", "HOME=/home/ada"}, "linux")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Config)
	fmt.Println(p.Audit)
	// Output:
	// /srv/packs/config.yaml
	// /srv/packs/audit.jsonl
}
