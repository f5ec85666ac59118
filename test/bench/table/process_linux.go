package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the time of processors that a process had until now, all of its
// threads together; 0 when it cannot be told.
func cpuTime(pid int) time.Duration {
	// MAKE_PROCESS_CPUCLOCK of the kernel: the process is in the upper bits, the
	// lower ones say which clock of it. 2 is what its scheduler counts.
	const ofScheduler = 2
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|ofScheduler), &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// memoryOf looks at what of a process is in memory.
func memoryOf(pid int) memory {
	var m memory
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		for name, at := range map[string]*int64{"RssAnon": &m.anonymous, "RssFile": &m.file, "VmHWM": &m.peak} {
			if n, _ := fmt.Sscanf(line, name+": %d kB", &kib); n == 1 {
				*at = kib << 10
			}
		}
	}
	return m
}
