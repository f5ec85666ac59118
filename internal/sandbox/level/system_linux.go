package level

import "golang.org/x/sys/unix"

// KeepDescriptors keeps whatever this process itself inherited, or a library
// opened carelessly, from the programs that it starts. Go opens everything so
// that it is closed in them.
func KeepDescriptors() {
	// Kernels before 5.11 do not know the flag.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

// argSpace is how much of argv and env the kernel passes on: a quarter of the
// stack's limit, at least 128 KiB and at most 6 MiB (fs/exec.c).
func argSpace() int {
	const least, most = 128 << 10, 6 << 20
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		return least
	}
	return int(max(least, min(most, stack.Cur/4)))
}
