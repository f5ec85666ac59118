//go:build unix

package auditcmd

import (
	"errors"
	"syscall"
)

// processGone reports whether there is certainly no process with this id. If
// there is one, it may be another process that reused the id.
func processGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
