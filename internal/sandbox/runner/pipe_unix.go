//go:build unix

package runner

import (
	"os"

	"golang.org/x/sys/unix"
)

// holds reports whether a pipe has unread data.
func holds(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false // closed
	}
	ready := []unix.PollFd{{Events: unix.POLLIN}}
	n := 0
	if err := conn.Control(func(fd uintptr) {
		ready[0].Fd = int32(fd)
		n, err = unix.Poll(ready, 0)
	}); err != nil {
		return false
	}
	return n == 1 && ready[0].Revents&unix.POLLIN != 0
}
