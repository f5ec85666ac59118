//go:build !windows

package packfs

import "syscall"

// starving are the errors of who starves.
func starving() []syscall.Errno {
	return []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}
}
