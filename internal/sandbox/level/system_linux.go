package level

import "golang.org/x/sys/unix"

// KeepDescriptors keeps programs from inheriting descriptors that this process
// inherited itself, or that a library opened without close-on-exec. Go sets the flag
// on everything that it opens.
func KeepDescriptors() {
	// Kernels before 5.11 do not know the flag.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

// argSpace returns how many bytes of argv and env the kernel accepts: a quarter of the
// stack limit, at least 128 KiB and at most 6 MiB (fs/exec.c).
func argSpace() int {
	const least, most = 128 << 10, 6 << 20
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		return least
	}
	return int(max(least, min(most, stack.Cur/4)))
}
