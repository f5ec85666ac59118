//go:build unix

package ownfile_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/config/ownfile"
)

// A file that every user can write is not read.
func ExampleRead() {
	dir, err := os.MkdirTemp("", "ownfile")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "config.yaml")
	for _, mode := range []os.FileMode{0o600, 0o666} {
		if err := write(path, mode); err != nil {
			fmt.Println(err)
			return
		}
		data, wrong := ownfile.Read(path)
		fmt.Printf("%q %q\n", data, wrong)
	}
	// Output:
	// "mode: Work\n" ""
	// "" "can be changed by every user of this machine (mode 0666); chmod 600 makes it yours alone"
}

func write(path string, mode os.FileMode) error {
	if err := os.WriteFile(path, []byte("mode: Work\n"), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // whatever the umask is
}
