package packfs

import (
	"encoding/binary"
	"io/fs"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
)

// A Stamp tells whether a file or directory is the one it was, unchanged: it
// holds device, inode, size, time of modification and time of the inode's last
// change, the times in nanoseconds. The zero Stamp is of nothing, and matches
// nothing.
//
// Stamps spare reading what was read before. They decide nothing that has to be
// safe: anyone who can set the system's clock back, or writes through a mapping,
// changes a file and not its stamp. What a person approves is digested.
type Stamp struct{ id identity }

// StampOf returns the stamp of what info describes. It is zero where the system
// does not say what a stamp is made of.
func StampOf(info fs.FileInfo) Stamp {
	id := identify(info)
	if id.inode == 0 || id.changed == 0 {
		return Stamp{}
	}
	return Stamp{id}
}

// IsZero reports whether s is of nothing.
func (s Stamp) IsZero() bool { return s == Stamp{} }

// Device is where the file is. Inodes of two devices have nothing to do with
// each other.
func (s Stamp) Device() uint64 { return s.id.device }

// Settled reports whether a reader of the file at now, who finds this stamp
// on it before and afterwards, has what every later reader gets who finds the
// same stamp. It is not so of a file whose inode changed, which it does with every
// write, less than two seconds ago, or in the future: a change within the same step of the file system's
// clock, which is two seconds on the coarsest, would leave no mark; and when the
// clock was set back, it can come to the same time again. now has to be taken
// before the file is read.
func (s Stamp) Settled(now time.Time) bool {
	return !s.IsZero() && now.Sub(time.Unix(0, s.id.changed)) >= settled
}

// AppendBinary appends the stamp in 5 to 50 bytes, mostly less than 20: there are
// many of them. They mean something on the machine they were made on only. The
// error is nil.
func (s Stamp) AppendBinary(b []byte) ([]byte, error) {
	b = binary.AppendUvarint(b, s.id.device)
	b = binary.AppendUvarint(b, s.id.inode)
	b = binary.AppendUvarint(b, uint64(s.id.size))
	b = binary.AppendUvarint(b, uint64(s.id.modified))
	return binary.AppendVarint(b, s.id.changed-s.id.modified), nil // mostly the same
}

// ReadStamp takes a stamp, as [Stamp.AppendBinary] wrote it, from r.
func ReadStamp(r *packed.Reader) (s Stamp) {
	s.id = identity{device: r.Number(), inode: r.Number(), size: int64(r.Number()), modified: int64(r.Number())}
	s.id.changed = s.id.modified + r.Signed()
	if r.IsBad() {
		return Stamp{}
	}
	return s
}
