package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// refusedHere lists refused calls that only this architecture has.
func refusedHere() []int { return nil }

// shadowStack has nothing to refuse: prctl does it here.
func (w *filterWriter) shadowStack() {}

func modeCallsHere() []modeCall { return nil }

func inotifyInitsHere() []int { return nil }
