//go:build unix

package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// claimStdout keeps standard output for the protocol. It returns a new
// descriptor, which no child inherits, and redirects descriptor 1 to standard
// error, for a library or the runtime that still writes there.
func claimStdout(stdout io.Writer) (io.Writer, error) {
	f, ok := stdout.(*os.File)
	if !ok || f != os.Stdout {
		return stdout, nil
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("keeping standard output for the protocol: %w", err)
	}
	if err := redirect(int(os.Stderr.Fd()), int(f.Fd())); err != nil {
		return nil, fmt.Errorf("keeping standard output for the protocol: %w", err)
	}
	return os.NewFile(uintptr(fd), "protocol"), nil
}
