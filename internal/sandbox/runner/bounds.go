package runner

import (
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/disk"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// reserve returns what must stay free on the disk of the audit log.
func (r *Runner) reserve() disk.Reserve { return disk.Reserve{Dir: r.o.ReserveDir, Bytes: r.o.Reserve} }

// bounds returns the folders on disk that the run fills, for disk.Watch; the caller
// closes them. A folder that cannot be examined is an error, since nothing would
// bound it.
func (t *task) bounds() (all []*disk.Bound, err error) {
	limits := t.Policy.Limits
	add := func(root *os.Root, err error, bytes int64, added bool) error {
		if err != nil {
			return err
		}
		folder, err := disk.Open(root)
		if err == nil {
			all = append(all, disk.NewBound(folder, bytes, int64(limits.LayerNames), added))
		}
		return err
	}
	if t.ws != nil && !paths.Inside(t.Policy.LayerFolders(), t.Command.Workspace) {
		root, err := t.ws.root.OpenRoot(".")
		if err := add(root, err, limits.Workspace, false); err != nil {
			return all, err
		}
	}
	if t.temp != nil {
		root, err := os.OpenRoot(t.Tmp)
		if err := add(root, err, limits.Workspace, true); err != nil {
			return all, err
		}
	}
	if t.layers != nil {
		for _, one := range t.layers.all {
			if one.copy == nil {
				continue
			}
			root, err := os.OpenRoot(one.from)
			if err := add(root, err, limits.Layer, true); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

func closeBounds(all []*disk.Bound) {
	for _, b := range all {
		b.Folder.Close()
	}
}
