//go:build unix

package userfile

import "syscall"

const openFlags = syscall.O_NONBLOCK
