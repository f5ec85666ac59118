package packfs

import "os"

// A Which tells one directory from another, whatever is in it and wherever it
// is: by device and inode, or what else the system has. The zero Which is none.
// It may be kept for as long as the directory is meant, and means nothing
// outside of this process. There may be many of them, so it is small.
type Which struct {
	other         // what the system has instead of an inode; first, since it may be nothing
	device, inode uint64
}

// Which says which directory d is. It is taken from the open directory, so that
// it is about this one whatever its path means now.
func (d *Dir) Which() (Which, error) {
	info, err := d.Info()
	if err != nil {
		return Which{}, err
	}
	return WhichOf(info), nil
}

// WhichOf says which directory info describes. On a system without inodes, info
// has to come from [Dir.Info].
func WhichOf(info os.FileInfo) Which {
	if id := identify(info); id.inode != 0 {
		return Which{device: id.device, inode: id.inode}
	}
	return Which{other: otherOf(info)}
}

// Same reports whether both are the same directory; no directory is none.
func (w Which) Same(o Which) bool {
	return w.other.same(o.other) || w.inode != 0 && w.device == o.device && w.inode == o.inode
}

// Inode returns the device and the inode; ok is false when the system has none.
func (w Which) Inode() (device, inode uint64, ok bool) { return w.device, w.inode, w.inode != 0 }

// WhichInode is the Which of which [Which.Inode] returned these.
func WhichInode(device, inode uint64) Which { return Which{device: device, inode: inode} }

// Which says which directory the stamp is of.
func (s Stamp) Which() Which { return Which{device: s.id.device, inode: s.id.inode} }
