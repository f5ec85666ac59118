package plant

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"testing"
)

// print returns a digest of a tree's names and bytes.
func print(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	tree := os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		fmt.Fprintf(h, "%s %d\n", name, len(data))
		h.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	prints := make(map[string]int)
	for _, seed := range []uint64{1, 1, 2} {
		dir := t.TempDir()
		packs, err := Write(dir, seed, 50)
		if err != nil {
			t.Fatal(err)
		}
		if len(packs) != 50 {
			t.Errorf("Write gave %d packs, want 50", len(packs))
		}
		prints[print(t, dir)]++
	}
	if len(prints) != 2 {
		t.Errorf("two seeds, one of them twice, gave %d trees, want 2", len(prints))
	}
}
