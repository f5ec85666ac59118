package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the processor time of a process so far, for all its threads; 0 if unknown.
func cpuTime(pid int) time.Duration {
	// MAKE_PROCESS_CPUCLOCK of the kernel: the upper bits are the process, the lower ones
	// select its clock. 2 is the scheduler's.
	const ofScheduler = 2
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|ofScheduler), &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// memoryOf returns how much memory a process uses.
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
