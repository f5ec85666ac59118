package packfs

import (
	"encoding/binary"
	"io/fs"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
)

// A Stamp tells whether a file or directory is unchanged. It consists of device, inode,
// size, modification time and inode change time; times are in nanoseconds. The zero Stamp
// matches nothing.
//
// Stamps avoid reading a file again. No security decision depends on them: anyone who can
// set the system's clock back, or who writes through a mapping, can change a file without
// changing its stamp. What a person approves is digested.
type Stamp struct{ id identity }

// StampOf returns the stamp for info. It is zero if the system does not provide its parts.
func StampOf(info fs.FileInfo) Stamp {
	id := identify(info)
	if id.inode == 0 || id.changed == 0 {
		return Stamp{}
	}
	return Stamp{id}
}

// IsZero reports whether s is the zero Stamp.
func (s Stamp) IsZero() bool { return s == Stamp{} }

// Device returns the device of the file. Inodes of two devices are unrelated.
func (s Stamp) Device() uint64 { return s.id.device }

// Settled reports whether a reader that finds this stamp on a file before and after
// reading it, at now, gets the same content as every later reader that finds the same
// stamp. It returns false if the inode changed, as it does with every write, less than two
// seconds ago or in the future: another change within the same tick of the file system's
// clock, at most two seconds, would not show, and a clock that was set back can reach the
// same time again. Take now before reading the file.
func (s Stamp) Settled(now time.Time) bool {
	return !s.IsZero() && now.Sub(time.Unix(0, s.id.changed)) >= settled
}

// AppendBinary appends the stamp in 5 to 50 bytes, mostly fewer than 20, since there are
// many of them. The result is valid only on this machine. The error is always nil.
func (s Stamp) AppendBinary(b []byte) ([]byte, error) {
	b = binary.AppendUvarint(b, s.id.device)
	b = binary.AppendUvarint(b, s.id.inode)
	b = binary.AppendUvarint(b, uint64(s.id.size))
	b = binary.AppendUvarint(b, uint64(s.id.modified))
	return binary.AppendVarint(b, s.id.changed-s.id.modified), nil // usually the same
}

// ReadStamp reads a stamp from r, as [Stamp.AppendBinary] wrote it.
func ReadStamp(r *packed.Reader) (s Stamp) {
	s.id = identity{device: r.Number(), inode: r.Number(), size: int64(r.Number()), modified: int64(r.Number())}
	s.id.changed = s.id.modified + r.Signed()
	if r.IsBad() {
		return Stamp{}
	}
	return s
}
