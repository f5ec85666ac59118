//go:build unix

package auditcmd

import (
	"errors"
	"syscall"
)

// processGone reports whether there is certainly no process with this number
// here. Another one may have the number by now.
func processGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
