// Package level is the border between the runner, which knows no operating system,
// and the packages that know one each: linux, darwin and windows, and plain, which
// confines nothing. A [System] offers levels, a [Starter] starts programs at one of
// them, and a [Process] is a program that was started.
//
// It confines nothing itself, and neither checks a run nor bounds it: the runner
// does.
package level

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/images"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A System is what one operating system has.
type System interface {
	// Candidates are the ways of having a level on this system, better ones first.
	Candidates(log *slog.Logger) []Candidate

	// Hint says what would give this machine a better level, or is empty.
	Hint(r *sandbox.Report) string

	// Sweep removes what earlier servers that were killed left in the system.
	Sweep()
}

// A Candidate is one way of having a level. There may be more than one of a level.
type Candidate struct {
	Level    sandbox.Level
	Confiner Confiner
	Means    []string // see sandbox.Trial
	Gaps     []string // see sandbox.Trial
	Network  bool     // see sandbox.Report.NetworkEnforced
	Err      error    // it cannot work, so it is not even tried
}

// ErrSkipped is why a level that the configuration leaves out was not tried.
var ErrSkipped = errors.New("left out by configuration")

// A Confiner is a Starter that counts only when it was seen to work.
type Confiner interface {
	Starter

	// Try runs this program itself at the level, which tries what must fail, and
	// says what is amiss.
	Try(ctx context.Context) error

	// Find finds out what else the level can do. It is called after Try succeeded.
	Find(ctx context.Context) Findings
}

// Findings are what a level can do on this machine.
type Findings struct {
	Gaps     []string // that were met while trying, besides those of the Candidate
	Loopback bool     // see sandbox.Report
	Overlay  string   // see sandbox.Report
}

// NoNamespaces is why a level that shows a run the user's own file system has no
// layers in memory.
const NoNamespaces = "this sandbox level shows a run no file system of its own"

// A Starter starts programs at one level, in the way of one system.
type Starter interface {
	// TempDir is where the program finds its private folder for temporary
	// files, when the level itself makes one that is gone with the run;
	// otherwise it is empty.
	TempDir() string

	// Places reports whether the starter puts the launch's images in their places,
	// rather than being given other paths.
	Places() bool

	// Overlays says why a folder cannot be seen by a run through a layer that
	// takes what the run writes; empty: it can. now is what to pass as was the next
	// time: a folder that is still as was says is not looked at again.
	Overlays(dir string, was sandbox.Look) (now sandbox.Look, why string)

	// Start starts the program of l. Its error means that nothing was started,
	// and is one that runner.Runner.Run documents. It keeps none of l's files.
	Start(l *Launch) (Process, error)

	// Close releases what is kept for the next run. Runs that are under way
	// continue, and new ones can start, only slower.
	Close()
}

// A Launch is one program, checked and complete, for a starter.
type Launch struct {
	Policy                sandbox.Policy // with its limits filled in
	Command               *sandbox.Command
	Images                images.List       // to be put in their places, where the level does so
	Overlays              []Folder          // the Policy's layers that are overlays
	Cache                 os.FileInfo       // of the Policy's Cache, when it was opened; nil: there is none
	Checked               []program.Checked // that were verified
	Argv, Env             []string          // both whole, Argv[0] is the program's path
	Tmp                   string            // what TMPDIR is
	Stdin, Stdout, Stderr *os.File          // the program's own ends; a nil Stdin is at its end

	// Listener gets a listener that the program reaches at [ListenPort] of its own
	// loopback interface, and owns it. It is called at most once, before the program
	// starts. Nil: there is none.
	Listener func(*os.File)
}

// ListenPort is where a program finds the launch's listener.
const ListenPort = 3128

// A Folder is a folder, and its identity when it was opened.
type Folder struct {
	Path string
	Info os.FileInfo
}

// A Process is a program that was started, with everything it starts in turn.
// Its methods are called by one goroutine.
type Process interface {
	// Ended returns a channel that is closed when the program itself has ended.
	Ended() <-chan struct{}

	// Terminate asks every process to end, where the system has a way to ask.
	Terminate()

	// Kill ends everything; Ended closes soon after.
	Kill()

	// Hidden returns how many bytes the run has in unlinked files, as far as that can
	// be seen. Unlike the other methods, any goroutine may call it at any time.
	Hidden() int64

	// Reap is called once Ended is closed. It kills what is left, waits until that is
	// gone, and releases everything that the process held.
	Reap() Ending
}

// An Ending says how a program ended.
type Ending struct {
	Code   int           // -1 when a signal ended it
	Signal string        // "SIGKILL" and so on, or empty
	Cause  sandbox.Cause // that the level knows of; CauseExit otherwise
	Usage  sandbox.Usage
	Lost   bool  // nobody knows whether the program ended by itself
	Err    error // the program was not started after all, or nobody knows how it ended

	// Overlays hold what the run changed in the launch's Overlays, one folder for each,
	// in their order; fewer if they were not handed over. The caller closes them.
	Overlays []*os.File
}
