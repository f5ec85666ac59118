package seatbelt

import (
	"bytes"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A pathBuffer holds the MAXPATHLEN bytes that F_GETPATH fills. It is as large and
// aligned as an Fstore_t requires, so it can be passed to [unix.FcntlFstore], the
// only function that passes a pointer to fcntl.
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
