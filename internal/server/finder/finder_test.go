package finder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/testdata"
)

func Example() {
	root, err := os.MkdirTemp("", "packs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	for name, description := range map[string]string{"invoices": "Writes invoices.", "notes": "Keeps notes."} {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			fmt.Println(err)
			return
		}
		document := fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n", name, description)
		if err := os.WriteFile(filepath.Join(root, name, "SKILL.md"), []byte(document), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	lib, err := packs.NewLibrary(context.Background(), packs.Options{Roots: []packs.Root{{Dir: root, Source: "flag", AttachAll: true}}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	f := New(lib.Catalog, toolfiles.New(tools.Limits{}, ""))
	for _, m := range f.Best(context.Background(), "write an invoice", 5, lib.Catalog(context.Background()).ByID) {
		fmt.Println(m.Pack.ID)
	}
	// Output:
	// invoices
}

// A world is a finder of the packs in a folder.
type world struct {
	*Finder
	t    *testing.T
	root string
	lib  *packs.Library
}

// newWorld returns a finder for the packs in a txtar tree; all of them are attached
// if none are named.
func newWorld(t *testing.T, tree string, attached ...string) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir()}
	testdata.Plant(t, w.root, tree)
	root := packs.Root{Dir: w.root, Source: "flag", Trust: packs.TrustUser, AttachAll: len(attached) == 0, Attach: attached}
	var err error
	if w.lib, err = packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{root}}, nil); err != nil {
		t.Fatal(err)
	}
	w.Finder = New(w.lib.Catalog, toolfiles.New(tools.Limits{}, ""))
	return w
}

// put writes a file below the folder of packs.
func (w *world) put(path, data string, mode os.FileMode) {
	w.t.Helper()
	path = filepath.Join(w.root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) refresh() {
	w.t.Helper()
	if err := w.lib.Rescan(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// pack returns the txtar tree of a pack.
func pack(id, description string) string {
	return fmt.Sprintf("-- %s/SKILL.md --\n---\nname: %s\ndescription: %s\n---\nBody of %s.\n", id, id, description, id)
}
