package seatbelt

import (
	"bytes"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A pathBuffer is what F_GETPATH fills: MAXPATHLEN bytes. That it is also large
// enough for, and aligned like, an Fstore_t is what lets it go through
// [unix.FcntlFstore], the one way to pass a pointer to fcntl.
type pathBuffer struct {
	_    [0]unix.Fstore_t
	path [1024]byte
}

// pathOf returns the path of an open file as the kernel spells it.
func pathOf(fd int) (string, error) {
	var b pathBuffer
	if err := unix.FcntlFstore(uintptr(fd), unix.F_GETPATH, (*unix.Fstore_t)(unsafe.Pointer(&b))); err != nil {
		return "", err
	}
	path, _, _ := bytes.Cut(b.path[:], []byte{0})
	return string(path), nil
}
