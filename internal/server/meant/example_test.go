package meant_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/server/meant"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

func Example() {
	root, err := os.MkdirTemp("", "packs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	if err := example(root); err != nil {
		fmt.Println(err)
	}
	// Output:
	// A program of the pack begins with ./: call again with "command":"./scan.sh","args":["-v"].
}

func example(root string) error {
	dir := filepath.Join(root, "lint")
	for name, text := range map[string]string{"SKILL.md": "---\nname: lint\ndescription: Checks.\n---\n", "scan.sh": "#!/bin/sh\n"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			return err
		}
	}
	lib, err := packs.NewLibrary(context.Background(), packs.Options{Roots: []packs.Root{{Dir: root, Source: "flag", AttachAll: true}}}, nil)
	if err != nil {
		return err
	}
	spaces, err := workspace.NewSet(workspace.Place{Each: filepath.Join(root, "w")})
	if err != nil {
		return err
	}
	defer spaces.Close()
	of := meant.Command{Pack: lib.Catalog(context.Background()).ByID("lint"), Workspace: spaces.First(), Command: "scan.sh", Args: []string{"-v"}}
	fmt.Println(of.Explain(&program.NotFoundError{Name: "scan.sh"}).Hint)
	return nil
}
