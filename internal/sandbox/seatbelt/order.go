package seatbelt

import "time"

// An Order is one program to start and supervise.
type Order struct {
	SandboxExec string // absolute path; empty: the system's
	Profile     Profile

	Argv, Env [][]byte // whole; Argv[0] is the program's path
	Dir       []byte   // absolute; the working folder
	DirID     ID       // the expected identity of Dir
	Mark      []byte   // an entry of Env, KEY=value, unique to this run

	Limits Limits
}

// An ID identifies a folder by its device and inode. The zero ID matches any folder.
type ID struct{ Dev, Ino uint64 }

// Limits are the program's limits; zero sets none. Each is for one process, except
// Processes.
type Limits struct {
	CPU       int64 // seconds
	FileSize  int64 // bytes
	OpenFiles int
	Processes int // at one time; beyond this, all are killed
}

// An Ending says how an Order ended.
type Ending struct {
	Failure *Failure // the program was not started, or how it ended is unknown; nil: neither

	ExitCode int // -1 when a signal ended it
	Signal   int // 0: none
	CPU      time.Duration
	MaxRSS   int64 // as the system counts: bytes on macOS

	TooMany bool // it was killed for more than Limits.Processes
}

// A Failure says why a program was not started or why its end is unknown.
type Failure struct {
	Step  Step
	Errno int    // of the system, or 0
	Text  string // the output of sandbox-exec, or other details
}

// A Step is one of the steps before a program runs.
type Step string

const (
	StepHelper  Step = "starting the supervisor"
	StepChdir   Step = "entering the working folder"
	StepConfine Step = "sandbox-exec"
	StepLimits  Step = "setting the limits"
	StepExec    Step = "starting the program"
	StepWatch   Step = "watching the program" // it was started, and killed when its supervisor was lost
)

// A report is a line from the supervisor to the server.
type report struct {
	PID    int     // a program is being started, with this pid
	Exited bool    // it has ended
	Ending *Ending // no process is left; this is the last line
}

// orderTerminate is what the server may send after the line of an Order. Closing the
// pipe kills everything.
const orderTerminate = 'T'

// Messages of the confined helper on its pipe, which sandbox-exec has as its standard
// error, after that program's own output.
const (
	ready     = "\x00ready"  // the next step is the program itself
	failedFor = "\x00failed" // then the step, a NUL byte, and the number of an error
)

// Modes of a helper: the argument after the one that makes this program one.
const (
	modeSupervise = "supervise"
	modeExec      = "exec"
)

// SandboxExec is the path of the system's program, which nothing on PATH can replace.
const SandboxExec = "/usr/bin/sandbox-exec"
