//go:build unix

package level

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalName returns the signal's name, such as "SIGKILL".
func SignalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return sig.String() // a real-time signal has no name
}

// spaceOf returns the bytes that argv and env need in a new process: each string with
// its NUL, and a pointer to it.
func spaceOf(argv, env []string) int {
	const pointer = 8
	size := 0
	for _, list := range [][]string{argv, env} {
		for _, s := range list {
			size += len(s) + 1 + pointer
		}
	}
	return size + len(argv[0]) + 1 // the kernel adds the path of the program
}
