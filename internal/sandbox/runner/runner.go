// Package runner runs one program under one [sandbox.Policy] and reports what came
// of it: how it ended, what it printed, which files it made.
//
// A program is looked up first ([program.Lookup]), which fixes its path and the
// digest of its bytes; [Runner.Run] refuses to start anything else under that name.
// It is started without a shell, in a session of its own without a controlling
// terminal, with exactly the environment that it is given and only its three standard
// descriptors. Time and output are bounded. When the program ends or is ended, what
// is left of the run is killed.
//
// How far the operating system confines a run is its [sandbox.Level], which
// [Runner.Probe] finds out by trying. At [sandbox.LevelNone], the limits on time,
// output and the workspace hold. The Policy's folders, its network and its limits
// on CPU, memory, processes, open files and file size are not enforced, and a child
// that leaves its process group (setsid, a daemon) is not killed.
//
// The package does not decide whether a program may run: package gate does.
package runner

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
)

// Options configure a [Runner]. The zero value is ready.
type Options struct {
	// Grace is the time between SIGTERM and SIGKILL for a program that must end; 0
	// stands for 5 seconds. Windows kills at once.
	Grace time.Duration

	// ShutdownGrace replaces Grace when Run's context was cancelled with
	// [sandbox.ErrShutdown]; 0 stands for 1 second. It is never longer than Grace.
	ShutdownGrace time.Duration

	// Drain is how long output is still read after the program has ended, when a child
	// that left its process group holds the pipe open; 0 stands for 250 milliseconds.
	Drain time.Duration

	// Changes stores what runs changed in their Layers; nil: every layered folder is
	// read-only.
	Changes *changes.Store

	// CopyDir is an existing folder for the runs' copies of layered folders, best on the
	// file system of the user's projects. Empty: the system's temporary folder.
	CopyDir string

	// TurnWait is how long a run waits for its turn in its Layers while other runs
	// have it; 0 stands for 5 minutes. See [sandbox.BusyError].
	TurnWait time.Duration

	// ReserveDir is a folder on the disk of the audit log, and Reserve is how many bytes
	// of that disk must stay free. With less, nothing is started and running programs
	// are ended, so that no run keeps the next call from being recorded. Empty or 0: no
	// reserve.
	ReserveDir string
	Reserve    int64

	TempDir  string            // existing parent of the runs' temporary folders; empty: the system's
	Lookuper *program.Lookuper // shares its digests, so that a check before a start is quick; nil: one of its own
	Logger   *slog.Logger      // gets problems that end no run; nil: they are dropped

	// System confines runs; nil: this machine's operating system. With another one,
	// programs are not on this machine: the System's starters, not the Runner, check
	// that they are what was approved, and a probe that found no level is not
	// remembered.
	System level.System

	// Together is what runs will ask for. Probe finds out whether it can be had.
	Together sandbox.Together

	// Skip lists levels that are not tried, as if this machine lacked them.
	Skip []sandbox.Level
}

// A Runner starts programs. Safe for concurrent use.
type Runner struct {
	o         Options
	elsewhere bool // programs are not on this machine

	mu     sync.Mutex
	probed *probe // the last one, which may go on; guarded by mu; nil: there was none
}

// New returns a Runner.
func New(o Options) *Runner {
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.ShutdownGrace = min(cmp.Or(o.ShutdownGrace, time.Second), o.Grace)
	o.Drain = cmp.Or(o.Drain, 250*time.Millisecond)
	o.TurnWait = cmp.Or(o.TurnWait, 5*time.Minute)
	if o.Lookuper == nil {
		o.Lookuper = new(program.Lookuper)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runner{o: o, elsewhere: o.System != nil}
	if !r.elsewhere {
		r.o.System = host{}
	}
	return r
}

// sweep removes what killed servers left behind.
func (r *Runner) sweep() {
	parents := []string{""}
	for _, dir := range []string{r.o.TempDir, r.o.CopyDir} {
		if dir != "" && !slices.Contains(parents, dir) {
			parents = append(parents, dir)
		}
	}
	for _, parent := range parents {
		if err := temp.Sweep(parent); err != nil {
			r.o.Logger.Warn("could not remove everything that an earlier server left", "err", err)
		}
	}
	r.o.System.Sweep()
}
