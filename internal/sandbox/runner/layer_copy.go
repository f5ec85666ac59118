package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
)

// Bounds on a folder that is copied for a run. Larger copies would take too long.
const (
	maxCopied      = 5_000 // names
	maxCopiedBytes = 64 << 20

	maxCloned = 20_000 // names, if files share their blocks
)

var errTooMuch = errors.New("too much")

// copyable returns how dir can be copied for a run, and why there is no better layer.
func (r *Runner) copyable(dir string) (sandbox.LayerKind, string) {
	names, bytes, err := measure(dir, maxCloned)
	switch {
	case errors.Is(err, errTooMuch):
		return sandbox.LayerReadOnly, fmt.Sprintf("it has more than %d names, too many for a copy", maxCloned)
	case err != nil:
		return sandbox.LayerReadOnly, "it cannot be copied: " + paths.Cause(err)
	}
	if clones(dir, r.o.CopyDir) {
		return sandbox.LayerClone, ""
	}
	switch {
	case names > maxCopied:
		return sandbox.LayerReadOnly, fmt.Sprintf("it has more than %d names, too many for a copy", maxCopied)
	case bytes > maxCopiedBytes:
		return sandbox.LayerReadOnly, fmt.Sprintf("it holds more than %d MiB, too much for a copy", maxCopiedBytes>>20)
	}
	return sandbox.LayerCopy, ""
}

// measure counts the names in dir and the bytes of its files, without following
// links. It gives up after most names.
func measure(dir string, most int) (names int, bytes int64, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && name != dir {
			return nil // gone meanwhile, or left out of the copy
		}
		if err != nil {
			return err
		}
		if names++; names > most {
			return errTooMuch
		}
		if d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return names, bytes, err
}

// clones reports whether files of dir can be cloned into the folder parent.
func clones(dir, parent string) bool {
	if parent == "" {
		parent = os.TempDir()
	}
	a, err := os.Stat(dir)
	if err != nil {
		return false
	}
	b, err := os.Stat(parent)
	return err == nil && sameDevice(a, b) && clonesIn(parent)
}

// clonesIn tries to clone a file in the folder.
func clonesIn(parent string) bool {
	folder, err := temp.New(parent)
	if err != nil {
		return false
	}
	defer func() { _ = folder.Remove() }()
	dir := folder.Path
	from := filepath.Join(dir, "a")
	if err := os.WriteFile(from, make([]byte, 4096), 0o600); err != nil {
		return false
	}
	return cloneFile(from, filepath.Join(dir, "b")) == nil
}
