package packfs

import "os"

// A Which identifies a directory, whatever is in it and wherever it is, by device and
// inode, or by what the system has instead. The zero Which is none. It is valid only in
// this process, and as long as the directory exists. It is small, since there may be many.
type Which struct {
	other         // what the system has instead of an inode; first, since it may have no size
	device, inode uint64
}

// Which identifies the directory d. It queries the open directory, so it does not matter
// where its path leads now.
func (d *Dir) Which() (Which, error) {
	info, err := d.Info()
	if err != nil {
		return Which{}, err
	}
	return WhichOf(info), nil
}

// WhichOf identifies the directory that info describes. On a system without inodes, info
// must come from [Dir.Info].
func WhichOf(info os.FileInfo) Which {
	if id := identify(info); id.inode != 0 {
		return Which{device: id.device, inode: id.inode}
	}
	return Which{other: otherOf(info)}
}

// Same reports whether both are the same directory. The zero Which equals nothing.
func (w Which) Same(o Which) bool {
	return w.other.same(o.other) || w.inode != 0 && w.device == o.device && w.inode == o.inode
}

// Inode returns the device and the inode; ok is false if the system has none.
func (w Which) Inode() (device, inode uint64, ok bool) { return w.device, w.inode, w.inode != 0 }

// WhichInode returns the Which for the results of [Which.Inode].
func WhichInode(device, inode uint64) Which { return Which{device: device, inode: inode} }

// Which identifies the directory of the stamp.
func (s Stamp) Which() Which { return Which{device: s.id.device, inode: s.id.inode} }
