package given_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
)

// What changed after it was digested is not given.
func Example() {
	root, err := os.MkdirTemp("", "given")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	write := func(name, text string) {
		name = filepath.Join(root, "notes", name)
		_ = os.MkdirAll(filepath.Dir(name), 0o700)
		_ = os.WriteFile(name, []byte(text), 0o600)
	}
	write("SKILL.md", "---\nname: notes\ndescription: Use it.\n---\n")
	write("more.txt", "More.")
	catalog, err := packs.Scan(context.Background(), packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	pack := catalog.ByID("notes")
	g := given.New(given.Options{
		Digests:      new(packfs.DigestCache),
		HoldsPrivate: func(string) bool { return false },
		Limits:       packfs.Limits{Page: 100, PageMax: 100, File: 1000},
	})
	_, tree, err := g.Facts(context.Background(), pack)
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := pack.OpenDir()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dir.Close()
	page, err := g.Page(dir, tree, "more.txt", 0, 0)
	fmt.Printf("%s %v\n", page.Data, err)
	write("more.txt", "Less.")
	_, err = g.Page(dir, tree, "more.txt", 0, 0)
	fmt.Println(err)
	// Output:
	// More. <nil>
	// reading "more.txt": the file changed while it was read
}
