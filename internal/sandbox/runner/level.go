package runner

import (
	"context"
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A starter starts programs at one level, in the way of one system.
type starter interface {
	// tempDir is where the program finds its private folder for temporary
	// files, when the level itself makes one that is gone with the run;
	// otherwise it is empty.
	tempDir() string

	// shows reports whether the program of l finds each of im at its At, and
	// nobody can change that while it runs. Otherwise it is started with other
	// paths.
	shows(p *sandbox.Policy, c *sandbox.Command, im images) bool

	// places reports whether the starter puts the launch's images in their places,
	// rather than being given other paths.
	places() bool

	// overlays says why a folder cannot be seen by a run through a layer that
	// takes what the run writes; empty: it can. It does not look again at a folder
	// that is as it was when an earlier call returned was.
	overlays(dir string, was sandbox.Look) (now sandbox.Look, why string)

	// start starts the program of l. Its error means that nothing was started,
	// and is one that [Runner.Run] documents. It keeps none of l's files.
	start(l *launch) (process, error)

	// close gives back what is kept for the next run. Runs that are under way
	// go on, and others may follow, only slower.
	close()
}

// A launch is one program, checked and complete, for a starter.
type launch struct {
	policy                sandbox.Policy // with its limits filled in
	command               *sandbox.Command
	images                images
	layers                *layers
	cache                 *cache            // nil: none
	checked               []program.Checked // that were verified
	argv, env             []string          // both whole, argv[0] is the program's path
	tmp                   string            // what TMPDIR is
	tmpOnDisk             bool              // and nothing bounds it but we
	stdin, stdout, stderr *os.File          // the program's own ends; a nil stdin is at its end
}

// A process is a program that was started, with everything it starts in turn.
// Its methods are called by one goroutine.
type process interface {
	// ended is closed when the program itself has ended.
	ended() <-chan struct{}

	// terminate asks everything to end, where the system has a way to ask.
	terminate()

	// kill ends everything; ended closes soon after.
	kill()

	// hidden is how many bytes the run has in files without a name, as far as that
	// can be seen. Unlike the other methods it may be called at any time, by
	// another goroutine.
	hidden() int64

	// reap is called when ended is closed. It kills what is left, waits until
	// that is gone, and gives back everything that the process held.
	reap() ending
}

// An ending says how a program ended.
type ending struct {
	code   int           // -1 when a signal ended it
	signal string        // "SIGKILL" and so on, or empty
	cause  sandbox.Cause // that the level knows of; CauseExit otherwise
	usage  sandbox.Usage
	lost   bool  // nobody knows whether the program ended by itself
	err    error // the program was not started after all, or nobody knows how it ended
}

// Probe finds out which levels work here, by really running something under
// each that [Options.Skip] leaves, best first, and removes what earlier servers
// left that were killed. It does so once; later calls return the same Report.
func (r *Runner) Probe(ctx context.Context) sandbox.Report {
	r.probing.Lock()
	defer r.probing.Unlock()
	if r.report == nil {
		// What is found is kept, and must not depend on who is in a hurry.
		ctx := context.WithoutCancel(ctx)
		r.sweep()
		r.report, r.starter = r.probe(ctx)
	}
	return *r.report
}

// Close gives back what the Runner keeps ready for the next run. Runs that are
// under way are not disturbed.
func (r *Runner) Close() {
	r.probing.Lock()
	defer r.probing.Unlock()
	if r.starter != nil {
		r.starter.close()
	}
}

// best returns the level of a run and what starts it.
func (r *Runner) best(ctx context.Context) (sandbox.Level, starter) {
	level := r.Probe(ctx).Level
	r.probing.Lock()
	defer r.probing.Unlock()
	return level, r.starter
}
