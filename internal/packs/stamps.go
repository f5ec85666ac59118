package packs

import (
	"encoding/binary"
	"hash/fnv"
	"io/fs"
	"os"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// A stamper says which stamps can be relied on.
type stamper struct {
	device uint64    // of the root; 0: none, since its file system keeps no good ones
	now    time.Time // before anything was read
}

func newStamper(dir string, now time.Time) stamper {
	st := stamper{now: now}
	if info, err := os.Lstat(dir); err == nil && packfs.Local(dir) {
		st.device = packfs.StampOf(info).Device()
	}
	return st
}

// last reports whether stamps that can be relied on mean the same in another process.
func (st stamper) last() bool { return st.device != 0 }

// of returns the stamp of info, which was taken before what it describes is
// read; zero when it cannot be relied on later.
func (st stamper) of(info fs.FileInfo) packfs.Stamp {
	stamp := packfs.StampOf(info)
	if stamp.IsZero() || stamp.Device() != st.device || !stamp.Settled(st.now) {
		return packfs.Stamp{}
	}
	return stamp
}

// same reports whether info describes what had the stamp.
func (st stamper) same(stamp packfs.Stamp, info fs.FileInfo) bool {
	return !stamp.IsZero() && stamp == packfs.StampOf(info) && stamp.Device() == st.device
}

// A fingerprint tells two states of some files apart.
type fingerprint struct {
	sum    uint64
	st     stamper
	doubt  bool // a file changes too fast for its stamp
	linked bool // one is a link, so that it can change where nobody looks
}

// newFingerprint returns the fingerprint of no files. st says which stamps it relies on.
func newFingerprint(st stamper) fingerprint { return fingerprint{st: st} }

// add takes the file at path as it is now; one that is not there counts as well,
// and of a link, what it leads to.
func (f *fingerprint) add(path string) {
	info, err := os.Lstat(path)
	if err != nil {
		info = nil
	}
	f.addInfo(info)
	if info != nil && info.Mode()&fs.ModeSymlink != 0 {
		f.linked = true
		if info, err = os.Stat(path); err != nil {
			info = nil
		}
		f.addInfo(info)
	}
}

// addInfo takes a file of which info was said; nil: it is not there.
func (f *fingerprint) addInfo(info os.FileInfo) {
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
		if f.st.device != 0 && f.st.of(info).IsZero() {
			f.doubt = true
		}
	}
	f.sum = h.Sum64()
}

// value returns a number for the state. If a stamp is in doubt, every scan gets
// another number, even if the stamps are the same.
func (f *fingerprint) value() uint64 {
	if f.doubt {
		return f.sum ^ uint64(f.st.now.UnixNano())
	}
	return f.sum
}
