// Package tree reads and changes folders through open handles. No operation
// follows a symbolic link or leaves the folder it was given, whatever another
// program does to the names meanwhile.
//
// It does not decide what may be changed, and it keeps no state.
package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Errors that callers distinguish, besides those of package fs.
var (
	// ErrNoSwap says that the file system cannot exchange two names.
	ErrNoSwap = errors.New("the file system cannot exchange two names")
	// ErrNoClone says that the file system cannot share blocks between files.
	ErrNoClone = errors.New("the file system does not clone files")
	// ErrNotFile says that a name is not a regular file.
	ErrNotFile = errors.New("not a regular file")
)

// A Meta is what the system reports about one name.
type Meta struct {
	Type  fs.FileMode `json:"type"` // type bits only: 0 is a regular file
	Perm  uint32      `json:"perm"` // permissions, set-ID bits and sticky bit
	Size  int64       `json:"size"`
	Mtime int64       `json:"mtime"` // nanoseconds
	Ctime int64       `json:"ctime"` // nanoseconds; 0 where the system has none
	Dev   uint64      `json:"dev"`
	Ino   uint64      `json:"ino"` // 0 where the system has none
	Nlink uint64      `json:"nlink"`
	UID   uint32      `json:"uid"`
	GID   uint32      `json:"gid"`
	Rdev  uint64      `json:"rdev,omitempty"`
	// Blocks is the disk space of the content, in bytes.
	Blocks int64 `json:"blocks"`
}

// Set-ID bits of Perm.
const (
	SetUID = 0o4000
	SetGID = 0o2000
)

// IsDir, IsFile and IsLink report the type.
func (m *Meta) IsDir() bool  { return m.Type == fs.ModeDir }
func (m *Meta) IsFile() bool { return m.Type == 0 }
func (m *Meta) IsLink() bool { return m.Type == fs.ModeSymlink }

// IsWhiteout reports whether m is an overlay's mark for a removed name.
func (m *Meta) IsWhiteout() bool {
	return m.Type == fs.ModeDevice|fs.ModeCharDevice && m.Rdev == 0
}

// Same reports whether m and o describe the same file, unchanged. The time of change
// is ignored for a file with several names, since each of them changes it.
func (m *Meta) Same(o *Meta) bool {
	return m.Moved(o) && (m.Ctime == o.Ctime || m.Nlink > 1 || o.Nlink > 1)
}

// Moved reports whether m and o describe the same file, unchanged except perhaps in
// its name.
func (m *Meta) Moved(o *Meta) bool {
	return m.Type == o.Type && m.Dev == o.Dev && m.Ino == o.Ino && m.Perm == o.Perm &&
		(m.IsDir() || m.Size == o.Size && m.Mtime == o.Mtime)
}

// SameAs reports whether m describes the same file as info. Where the system has no
// inodes, it returns true.
func (m *Meta) SameAs(info fs.FileInfo) bool {
	o := MetaOf(info)
	return m.Dev == o.Dev && m.Ino == o.Ino
}

// Valid reports whether path is a path below a folder: names separated by slashes, or
// "." alone. The names need not be UTF-8.
func Valid(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == ".." || name == "." && path != "." || strings.IndexByte(name, 0) >= 0 {
			return false
		}
	}
	return true
}

// Attrs are extended attributes and access control lists, by the system's
// names.
type Attrs map[string][]byte

// Equal reports whether both have the same attributes.
func (a Attrs) Equal(b Attrs) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || string(v) != string(w) {
			return false
		}
	}
	return true
}

// overlayAttr begins the names of an overlay's own attributes.
const overlayAttr = "user.overlay."

// Split removes an overlay's own attributes from a, and returns them without their
// prefix.
func (a Attrs) Split() (overlay map[string]string) {
	for k, v := range a {
		if rest, ok := strings.CutPrefix(k, overlayAttr); ok {
			if overlay == nil {
				overlay = map[string]string{}
			}
			overlay[rest] = string(v)
			delete(a, k)
		}
	}
	return overlay
}

const bufferSize = 128 << 10

// CopyContent copies the regular file from to the empty file to, keeps its
// holes, and returns the digest of its content. It fails if from does not end
// at size.
func CopyContent(to, from *os.File, size int64) (digest string, err error) {
	h := sha256.New()
	if err := eachPart(from, size, func(data []byte, at int64) error {
		h.Write(data)
		if to == nil {
			return nil
		}
		_, err := to.WriteAt(data, at)
		return err
	}, h); err != nil {
		return "", err
	}
	if to != nil {
		if err := to.Truncate(size); err != nil {
			return "", err
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// Digest returns the digest of a regular file's content.
func Digest(f *os.File, size int64) (string, error) { return CopyContent(nil, f, size) }

// eachPart calls part for each piece of a file's data, in order, and writes zeros to
// holes for its holes.
func eachPart(f *os.File, size int64, part func(data []byte, at int64) error, holes io.Writer) error {
	buf := make([]byte, min(bufferSize, max(size, 1)))
	zeros := []byte(nil)
	for at := int64(0); at < size; {
		start, end := nextData(f, at, size)
		for hole := start - at; hole > 0; {
			if zeros == nil {
				zeros = make([]byte, bufferSize)
			}
			n := min(hole, bufferSize)
			_, _ = holes.Write(zeros[:n]) // a hash never fails
			hole -= n
		}
		for at = start; at < end; {
			n, err := f.ReadAt(buf[:min(int64(len(buf)), end-at)], at)
			if n == 0 {
				if err == nil || errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
			if err := part(buf[:n], at); err != nil {
				return err
			}
			at += int64(n)
		}
	}
	var one [1]byte
	if n, _ := f.ReadAt(one[:], size); n != 0 {
		return errors.New("the file grew while it was read")
	}
	return nil
}
