package packfs

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"syscall"
)

// A direntry is an entry with a known name and type.
type direntry struct {
	name string
	mode fs.FileMode
}

func (e direntry) Name() string               { return e.name }
func (e direntry) IsDir() bool                { return e.mode.IsDir() }
func (e direntry) Type() fs.FileMode          { return e.mode }
func (e direntry) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// readNames returns at most limit entries of an open directory for which keep returns
// true. For files opened through an [os.Root], ReadDir queries each entry; this uses the
// type in the directory itself, if there is one.
func readNames(root *os.Root, f *os.File, limit int, keep func(string, fs.FileMode) bool) (entries []fs.DirEntry, truncated bool, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, false, err
	}
	var buffer [16 << 10]byte
	for seen := 0; ; {
		var n int
		var failed error
		err := conn.Control(func(fd uintptr) {
			for {
				if n, failed = syscall.ReadDirent(int(fd), buffer[:]); failed != syscall.EINTR {
					return
				}
			}
		})
		if err == nil && failed != nil {
			err = os.NewSyscallError("readdirent", failed)
		}
		if err != nil {
			return nil, false, err
		}
		if n <= 0 {
			return entries, false, nil
		}
		for rest := buffer[:n]; len(rest) >= headLen; {
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			if size < headLen || size > len(rest) {
				break
			}
			inode, kind, raw := binary.NativeEndian.Uint64(rest), rest[18], rest[headLen:size]
			rest = rest[size:]
			if i := bytes.IndexByte(raw, 0); i >= 0 {
				raw = raw[:i]
			}
			name := string(raw)
			if inode == 0 || name == "." || name == ".." {
				continue
			}
			if seen++; seen > limit {
				return entries, true, nil
			}
			mode, known := modeOf(kind)
			if !known {
				info, err := root.Lstat(name)
				if err != nil {
					continue // removed meanwhile
				}
				mode = info.Mode().Type()
			}
			if keep != nil && !keep(name, mode) {
				continue
			}
			entries = append(entries, direntry{name, mode})
		}
	}
}

// headLen is the length of an entry without its name: inode, offset, length and type.
const headLen = 8 + 8 + 2 + 1

// modeOf returns the mode for an entry's type.
func modeOf(kind byte) (mode fs.FileMode, known bool) {
	switch kind {
	case syscall.DT_REG:
		return 0, true
	case syscall.DT_DIR:
		return fs.ModeDir, true
	case syscall.DT_LNK:
		return fs.ModeSymlink, true
	case syscall.DT_FIFO:
		return fs.ModeNamedPipe, true
	case syscall.DT_SOCK:
		return fs.ModeSocket, true
	case syscall.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice, true
	case syscall.DT_BLK:
		return fs.ModeDevice, true
	}
	return 0, false
}
