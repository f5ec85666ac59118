package toolfiles_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

func Example() {
	dir, err := os.MkdirTemp("", "packs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"SKILL.md":        "---\nname: greeter\ndescription: Greets people.\n---\n",
		"greet.tool.json": `{"name": "greet", "description": "Greets.", "command": {"program": "echo", "args": ["hello"]}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	catalog, err := packs.Scan(context.Background(), packs.Options{Roots: []packs.Root{{Dir: dir}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	files := toolfiles.New(tools.Limits{}, "")
	for _, p := range catalog.All() {
		set, problems, err := files.Load(p)
		fmt.Println(p.ID, set.Tools[0].Name, len(problems), err)
	}
	// Output: greeter greet 0 <nil>
}
