package toolfiles

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// writeTree writes the files of a txtar tree to a new folder.
func writeTree(t *testing.T, tree string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	testdata.Plant(t, dir, tree)
	return dir
}

func scan(t *testing.T, opts packs.Options) *packs.Catalog {
	t.Helper()
	c, err := packs.Scan(t.Context(), opts)
	must(t, err)
	return c
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
