package runner

import (
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/disk"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// reserve is what stays free on the disk of the audit log.
func (r *Runner) reserve() disk.Reserve { return disk.Reserve{Dir: r.o.ReserveDir, Bytes: r.o.Reserve} }

// bounds are the folders on disk that the run fills, for disk.Watch; close them.
// A folder that cannot be looked at is an error: nothing would bound it.
func (l *launch) bounds(ws *workspace) (all []*disk.Bound, err error) {
	limits := l.Policy.Limits
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
	if ws != nil && !paths.Inside(l.Policy.LayerFolders(), l.Command.Workspace) {
		root, err := ws.root.OpenRoot(".")
		if err := add(root, err, limits.Workspace, false); err != nil {
			return all, err
		}
	}
	if l.tmpOnDisk {
		root, err := os.OpenRoot(l.Tmp)
		if err := add(root, err, limits.Workspace, true); err != nil {
			return all, err
		}
	}
	if l.layers != nil {
		for _, one := range l.layers.all {
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
