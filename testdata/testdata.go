// Package testdata has the packs that tests of several packages share. It knows
// nothing about packs: it holds files, and writes them to a folder.
//
// A pack that only one test needs is written in that test. The package is not
// part of any program.
package testdata

import (
	"bytes"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed packs
var packs embed.FS

// Packs returns these folders of "packs" as one txtar tree for [Plant], to which
// a test can add files of its own.
func Packs(names ...string) string {
	var a txtar.Archive
	for _, name := range names {
		err := fs.WalkDir(packs, "packs/"+name, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := packs.ReadFile(file)
			a.Files = append(a.Files, txtar.File{Name: strings.TrimPrefix(file, "packs/"), Data: data})
			return err
		})
		if err != nil {
			panic(err) // a test's mistake: there is no such pack
		}
	}
	return string(txtar.Format(&a))
}

// Plant writes the files of a txtar tree below root. A file that begins with
// "#!", or whose name ends in "*", is made executable. A file called "NAME -> TARGET"
// is a symlink. A later file replaces an earlier one of the same name.
func Plant(t testing.TB, root, tree string) {
	t.Helper()
	for _, f := range txtar.Parse([]byte(tree)).Files {
		name, target, isLink := strings.Cut(f.Name, " -> ")
		name, exec := strings.CutSuffix(name, "*")
		mode := os.FileMode(0o644)
		if exec || bytes.HasPrefix(f.Data, []byte("#!")) {
			mode = 0o755
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if isLink {
			if err := os.Symlink(filepath.FromSlash(target), path); err != nil {
				t.Skipf("symlinks: %v", err)
			}
			continue
		}
		if err := os.WriteFile(path, f.Data, mode); err != nil {
			t.Fatal(err)
		}
	}
}
