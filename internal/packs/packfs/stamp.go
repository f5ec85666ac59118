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
// same stamp. It is not so of a file that was changed less than two seconds
// ago, or in the future: a change within the same step of the file system's
// clock, which is two seconds on the coarsest, would leave no mark; and when the
// clock was set back, it can come to the same time again. now has to be taken
// before the file is read.
func (s Stamp) Settled(now time.Time) bool {
	return !s.IsZero() && now.Sub(time.Unix(0, max(s.id.modified, s.id.changed))) >= settled
}

// stampSize is how many bytes a stamp has in a file.
const stampSize = 5 * 8

// AppendBinary appends the stamp's 40 bytes. They mean something on the machine
// they were made on only. The error is nil.
func (s Stamp) AppendBinary(b []byte) ([]byte, error) {
	for _, v := range [...]uint64{s.id.device, s.id.inode, uint64(s.id.size), uint64(s.id.modified), uint64(s.id.changed)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b, nil
}

// CutStamp returns the stamp that b begins with, as [Stamp.AppendBinary] wrote
// it, and the rest; ok is false when b is too short.
func CutStamp(b string) (s Stamp, rest string, ok bool) {
	if len(b) < stampSize {
		return Stamp{}, b, false
	}
	number := func(i int) uint64 {
		var v uint64
		for j := 7; j >= 0; j-- {
			v = v<<8 | uint64(b[8*i+j])
		}
		return v
	}
	s.id = identity{device: number(0), inode: number(1), size: int64(number(2)), modified: int64(number(3)), changed: int64(number(4))}
	return s, b[stampSize:], true
}
