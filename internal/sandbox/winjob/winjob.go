// Package winjob is the part of the confinement on Windows that does not need Windows:
// the limits of a job object, what the end of a job means, integrity labels as text,
// and which folders are labelled at the moment.
//
// It makes no system calls, so it can be tested on any system. Package sandbox/windows
// does the confining.
package winjob

import (
	"math"
	"time"
)

// Flags of a job object (JOBOBJECT_BASIC_LIMIT_INFORMATION.LimitFlags).
const (
	LimitJobTime        uint32 = 0x0004
	LimitActiveProcess  uint32 = 0x0008
	LimitProcessMemory  uint32 = 0x0100
	LimitJobMemory      uint32 = 0x0200
	LimitDieOnException uint32 = 0x0400 // no dialog of a program that crashed
	LimitKillOnClose    uint32 = 0x2000
)

// UILimits are all restrictions of the user interface that a job can have: other
// programs' windows and hooks, the clipboard in both directions, system and display
// settings, global atoms, desktops, and logging off.
const UILimits uint32 = 0xff

// KillCode is the exit code of a program that was killed with its job. Bit 29 marks
// codes that are not Windows' own.
const KillCode uint32 = 0xe0504b4d

// notEnoughQuota is ERROR_NOT_ENOUGH_QUOTA, the exit code of every program of a
// job whose time is over.
const notEnoughQuota uint32 = 1816

// consoles is how many processes of a run are Windows' own: one conhost.exe, which holds
// the invisible console that the run's programs share.
const consoles = 1

// tick is the unit of a job's times.
const tick = 100 * time.Nanosecond

// Limits are the limits of a run that a job enforces, all above zero.
type Limits struct {
	CPU       time.Duration // of all processes together, in user mode only
	Memory    int64         // bytes that all processes together may commit
	Processes int           // at one time
}

// A Job is Limits as a job object takes them.
type Job struct {
	Flags           uint32
	UserTime        int64 // of the job, in units of 100 ns
	ActiveProcesses uint32
	Memory          uint64 // bytes, of each process and of the job
}

// NewJob returns the job of a run under l. Closing its last handle kills all its
// processes, and no process that is started in it can leave it.
func NewJob(l Limits) Job {
	return Job{
		Flags: LimitJobTime | LimitActiveProcess | LimitProcessMemory | LimitJobMemory |
			LimitDieOnException | LimitKillOnClose,
		UserTime:        max(1, int64(l.CPU/tick)),
		ActiveProcesses: uint32(min(max(1, l.Processes), math.MaxInt32-consoles)) + consoles,
		Memory:          uint64(max(1, l.Memory)),
	}
}

// OutOfTime reports whether a program exited with code because its job, which used
// userTime (in units of 100 ns) in all, ran out of time.
func (j Job) OutOfTime(code uint32, userTime int64) bool {
	return code == notEnoughQuota && userTime >= j.UserTime
}

// Ticks returns the duration of n units of a job's times.
func Ticks(n int64) time.Duration { return time.Duration(n) * tick }

// UTF16Len returns how many 16-bit units s has on Windows. A command line may have
// 32,767, including the 0 at its end.
func UTF16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
