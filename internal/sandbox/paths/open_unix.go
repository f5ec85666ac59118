//go:build unix

package paths

import "syscall"

// Nonblock keeps an open from waiting for the other end of a FIFO.
const Nonblock = syscall.O_NONBLOCK

// DirOnly makes an open of anything but a directory fail.
const DirOnly = syscall.O_DIRECTORY | syscall.O_NONBLOCK
