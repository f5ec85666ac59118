//go:build unix

package level

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalName returns "SIGKILL" and so on.
func SignalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return sig.String() // a real-time signal has no name
}

// spaceOf is what argv and env need in a new process: their bytes, each with a
// NUL, and a pointer to each.
func spaceOf(argv, env []string) int {
	const pointer = 8
	size := 0
	for _, list := range [][]string{argv, env} {
		for _, s := range list {
			size += len(s) + 1 + pointer
		}
	}
	return size + len(argv[0]) + 1 // the kernel adds the path that is executed
}
