//go:build !windows

package packfs

import "syscall"

// starving returns the errors for exhausted resources.
func starving() []syscall.Errno {
	return []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}
}
