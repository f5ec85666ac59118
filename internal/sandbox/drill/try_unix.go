//go:build unix

package drill

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

func errorName(err error) string {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
	}
	return "error"
}

// trySystem does the operations of Unix systems.
func trySystem(op []string) error {
	if len(op) < 2 {
		return tryOwn(op, 0)
	}
	switch op[0] {
	case "open-device":
		fd, err := unix.Open(op[1], unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	case "setuid-file":
		return os.Chmod(op[1], fs.ModeSetuid|0o755)
	case "signal": // signal 0 checks the permission and sends nothing
		pid, err := strconv.Atoi(op[1])
		if err != nil {
			return err
		}
		return unix.Kill(pid, 0)
	case "see-process", "read-environment", "trace":
		pid, err := strconv.Atoi(op[1])
		if err != nil {
			return err
		}
		return tryOwn(op, pid)
	}
	return tryOwn(op, 0)
}

// memory asks for so many MiB, and does not touch them.
func memory(mib int) error {
	const piece = 16
	for n := 0; n < mib; n += piece {
		if _, err := unix.Mmap(-1, 0, piece<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
			return err
		}
	}
	return nil
}

// ignoreFileSize makes writes beyond the limit fail instead of ending this process.
func ignoreFileSize() { signal.Ignore(unix.SIGXFSZ) }

// apart puts a process into a session of its own.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
