package packfs

import (
	"encoding/binary"
	"io/fs"
	"time"
)

// A Stamp tells whether a file or directory is the one it was, unchanged: it
// holds device, inode, size, time of modification and time of the inode's last
// change, the times in nanoseconds. The zero Stamp is of nothing, and matches
// nothing.
//
// Stamps spare reading what was read before. They decide nothing that has to be
// safe: whoever can set the system's clock back, or writes through a mapping,
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

// Settled reports whether whoever reads the file at now, and finds this stamp
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

// CutStamp returns the stamp that b begins with, as [Stamp.AppendBinary] wrote
// it, and the rest; ok is false when there is none.
func CutStamp(b string) (s Stamp, rest string, ok bool) {
	var v [5]uint64
	rest = b
	for i := range v {
		if v[i], rest, ok = cutUvarint(rest); !ok {
			return Stamp{}, b, false
		}
	}
	s.id = identity{device: v[0], inode: v[1], size: int64(v[2]), modified: int64(v[3])}
	s.id.changed = s.id.modified + (int64(v[4]>>1) ^ -int64(v[4]&1))
	return s, rest, true
}

func cutUvarint(b string) (v uint64, rest string, ok bool) {
	for i := 0; i < len(b) && i < binary.MaxVarintLen64; i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, b[i+1:], true
		}
	}
	return 0, b, false
}
