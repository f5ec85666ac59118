//go:build linux || darwin

package store

import (
	"fmt"
	"os"
	"path"
)

// between calls do with the open folders of two paths.
func between(root *os.Root, a, b string, do func(adir int, a string, bdir int, b string) error) error {
	adir, err := root.Open(path.Dir(a))
	if err != nil {
		return err
	}
	defer adir.Close()
	bdir, err := root.Open(path.Dir(b))
	if err != nil {
		return err
	}
	defer bdir.Close()
	if err := do(int(adir.Fd()), path.Base(a), int(bdir.Fd()), path.Base(b)); err != nil {
		return fmt.Errorf("exchanging %q and %q: %w", a, b, err)
	}
	return nil
}
