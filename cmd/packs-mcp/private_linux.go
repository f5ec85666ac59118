package main

import "golang.org/x/sys/unix"

// keepPrivate hides this process's environment and memory from other programs
// of the same user, the ones it starts included: a client's keys are often in
// the environment it gives its servers. It does not stop root.
func keepPrivate() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
