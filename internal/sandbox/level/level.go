// Package level is the border between the runner, which knows no operating system,
// and the packages for one system each: linux, darwin and windows, and plain, which
// confines nothing. A [System] offers levels, a [Starter] starts programs at one of
// them, and a [Process] is a started program.
//
// It confines nothing itself. The runner checks and bounds runs.
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

// A System is the confinement that one operating system offers.
type System interface {
	// Candidates returns the ways to get a level on this system, better ones first.
	Candidates(log *slog.Logger) []Candidate

	// Hint says how this machine could get a better level, or is empty.
	Hint(r *sandbox.Report) string

	// Sweep removes what earlier servers that were killed left in the system.
	Sweep()
}

// A Candidate is one way to get a level. A level may have several.
type Candidate struct {
	Level    sandbox.Level
	Confiner Confiner
	Means    []string // see sandbox.Trial
	Gaps     []string // see sandbox.Trial
	Network  bool     // see sandbox.Report.NetworkEnforced
	Err      error    // it cannot work, so it is not even tried
}

// ErrSkipped says that a level was not tried because the configuration leaves it out.
var ErrSkipped = errors.New("left out by configuration")

// A Confiner is a Starter that is used only after a trial succeeded.
type Confiner interface {
	Starter

	// Try runs this program itself at the level. That attempts what must fail, and
	// reports what succeeded.
	Try(ctx context.Context) error

	// Find returns what else the level can do. It is called after Try succeeded.
	Find(ctx context.Context) Findings

	// Bound finds out why no run can be bounded in this way; nil: every run can. It is
	// called after Try succeeded.
	Bound(ctx context.Context, t sandbox.Together) error
}

// Findings are what a level can do on this machine.
type Findings struct {
	Gaps     []string // that were met while trying, besides those of the Candidate
	Loopback bool     // see sandbox.Report
	Overlay  string   // see sandbox.Report
}

// ErrNoGroups is why nothing bounds the processes of a run together on systems other than
// Linux.
var ErrNoGroups = errors.New("this system has no control groups")

// NoNamespaces is the reason that levels without a file system of their own have no
// layers in memory.
const NoNamespaces = "this sandbox level shows a run no file system of its own"

// A Starter starts programs at one level of one system.
type Starter interface {
	// TempDir returns the path, inside the run, of a private folder for temporary files
	// that the level makes and removes with the run. It is empty if the level makes
	// none.
	TempDir() string

	// Places reports whether the starter mounts the launch's images at their places.
	// Otherwise the runner changes the paths.
	Places() bool

	// Overlays returns why the folder cannot have an overlay, or "" if it can. Pass now
	// as was the next time: if the folder has not changed since, it is not examined
	// again.
	Overlays(dir string, was sandbox.Look) (now sandbox.Look, why string)

	// Start starts the program of l. If it returns an error, which is one that
	// runner.Runner.Run documents, nothing was started. It keeps none of l's files.
	Start(l *Launch) (Process, error)

	// Close releases what is kept for the next run. Runs that are under way continue,
	// and new ones still start, but slower.
	Close()
}

// A Launch is one program, checked and complete, for a starter.
type Launch struct {
	Policy                sandbox.Policy // with its limits filled in
	Command               *sandbox.Command
	Images                images.List       // to mount at their places, if the level does so
	Overlays              []Folder          // the Policy's layers that are overlays
	Cache                 os.FileInfo       // of the Policy's Cache when it was opened; nil: no cache
	Checked               []program.Checked // the verified files
	Argv, Env             []string          // both whole, Argv[0] is the program's path
	Tmp                   string            // value of TMPDIR
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

// A Process is a started program, with everything it starts in turn. Its methods are
// called by one goroutine.
type Process interface {
	// Ended returns a channel that is closed when the program itself has ended.
	Ended() <-chan struct{}

	// Terminate asks every process to end, where the system has a way to ask.
	Terminate()

	// Kill ends everything; Ended closes soon after.
	Kill()

	// Hidden returns how many bytes the run has in unlinked files, as far as the system
	// shows them. Unlike the other methods, any goroutine may call it at any time.
	Hidden() int64

	// Reap is called once Ended is closed. It kills the processes that are left, waits
	// for them, and releases everything that the process held.
	Reap() Ending
}

// An Ending says how a program ended.
type Ending struct {
	Code   int           // -1 when a signal ended it
	Signal string        // "SIGKILL" and so on, or empty
	Cause  sandbox.Cause // if the level knows one; otherwise CauseExit
	Usage  sandbox.Usage
	Lost   bool  // nobody knows whether the program ended by itself
	Err    error // the program was not started after all, or nobody knows how it ended

	// Overlays hold the run's changes in the launch's Overlays, one folder for each, in
	// the same order; fewer if the helper handed over fewer. The caller closes them.
	Overlays []*os.File
}
