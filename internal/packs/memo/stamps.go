package memo

import (
	"encoding/binary"
	"hash/fnv"
	"io/fs"
	"os"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// A Stamper says which stamps can be relied on: those of files on the root's own
// device, if that is local, which did not change within the last seconds.
type Stamper struct {
	device uint64    // of the root; 0: its file system has no reliable stamps
	now    time.Time // taken before anything was read
}

// NewStamper returns the Stamper of the root dir, whose scan begins now.
func NewStamper(dir string, now time.Time) Stamper {
	st := Stamper{now: now}
	if info, err := os.Lstat(dir); err == nil && packfs.Local(dir) {
		st.device = packfs.StampOf(info).Device()
	}
	return st
}

// Last reports whether stamps that can be relied on mean the same in another process.
func (st Stamper) Last() bool { return st.device != 0 }

// Of returns the stamp for info, which was taken before the file was read. It is zero
// if the stamp cannot be relied on later.
func (st Stamper) Of(info fs.FileInfo) packfs.Stamp {
	stamp := packfs.StampOf(info)
	if stamp.IsZero() || stamp.Device() != st.device || !stamp.Settled(st.now) {
		return packfs.Stamp{}
	}
	return stamp
}

// Same reports whether info still matches the stamp.
func (st Stamper) Same(stamp packfs.Stamp, info fs.FileInfo) bool {
	return !stamp.IsZero() && stamp == packfs.StampOf(info) && stamp.Device() == st.device
}

// A Fingerprint identifies the state of some files.
type Fingerprint struct {
	files  Files
	sum    uint64
	st     Stamper
	doubt  bool // a file changes too fast for its stamp
	Linked bool // a file is a link, so it can change unnoticed
}

// Files say what is at a path, as [os.Lstat] and [os.Stat] do.
type Files interface {
	Lstat(path string) (fs.FileInfo, error)
	Stat(path string) (fs.FileInfo, error)
}

// NewFingerprint returns the fingerprint of none of some files. st says which stamps it
// relies on.
func NewFingerprint(st Stamper, files Files) Fingerprint { return Fingerprint{st: st, files: files} }

// Add adds the file at path as it is now. A missing file counts too. If it is a link,
// its target is added as well.
func (f *Fingerprint) Add(path string) {
	info, err := f.files.Lstat(path)
	if err != nil {
		info = nil
	}
	f.AddInfo(info)
	if info != nil && info.Mode()&fs.ModeSymlink != 0 {
		f.Linked = true
		if info, err = f.files.Stat(path); err != nil {
			info = nil
		}
		f.AddInfo(info)
	}
}

// AddInfo adds a file by its information; nil: it does not exist.
func (f *Fingerprint) AddInfo(info os.FileInfo) {
	h := fnv.New64a()
	var b [8]byte
	number := func(v uint64) {
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	number(f.sum)
	if info != nil {
		stamp := packfs.StampOf(info)
		number(uint64(info.Size()))
		number(uint64(info.ModTime().UnixNano()))
		raw, _ := stamp.AppendBinary(make([]byte, 0, 64))
		h.Write(raw)
		if f.st.device != 0 && f.st.Of(info).IsZero() {
			f.doubt = true
		}
	}
	f.sum = h.Sum64()
}

// Value returns a number for the state. If a stamp is in doubt, every scan gets a
// different number, even if the stamps are the same.
func (f *Fingerprint) Value() uint64 {
	if f.doubt {
		return f.sum ^ uint64(f.st.now.UnixNano())
	}
	return f.sum
}
