package packs

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// sameInMemory fails unless a scan of the same files in memory finds what the scan of
// those on the disk found, to the word.
func sameInMemory(t *testing.T, root Root, onDisk *Catalog) {
	t.Helper()
	root.Memory = packfs.NewMemory(root.Dir)
	must(t, filepath.WalkDir(root.Dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == root.Dir {
			return err
		}
		rel, err := filepath.Rel(root.Dir, at)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		switch {
		case d.IsDir():
			root.Memory.Folder(name)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			root.Memory.Link(name, target)
		default:
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			root.Memory.File(name, false, data)
		}
		return nil
	}))
	// Nothing of it is read from the disk.
	moved := root.Dir + ".moved"
	must(t, os.Rename(root.Dir, moved))
	defer func() { must(t, os.Rename(moved, root.Dir)) }()
	if diff := cmp.Diff(full(onDisk), full(scan(t, Options{Roots: []Root{root}}))); diff != "" {
		t.Errorf("in memory (-disk +memory):\n%s", diff)
	}
}
