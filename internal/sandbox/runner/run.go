// Package runner runs one program under one [sandbox.Policy] and reports what came
// of it: how it ended, what it printed, which files it made.
//
// A program is looked up first ([program.Lookup]), which fixes its path and the
// digest of its bytes; [Runner.Run] refuses to start anything else under that name.
// It is started without a shell, in a session of its own without a controlling
// terminal, with exactly the environment that it is given and no descriptors but
// its three standard ones. Time and output are bounded. When the program ends, or
// is made to, what is left of the run is killed.
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
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/capture"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/disk"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/images"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
)

// Options are those of a [Runner]. The zero value is ready.
type Options struct {
	// Grace is how long a program that is to end has between SIGTERM and
	// SIGKILL; 0 stands for 5 seconds. Windows kills at once.
	Grace time.Duration

	// ShutdownGrace takes the place of Grace when the cause of the end of Run's
	// context is [sandbox.ErrShutdown]; 0 stands for 1 second. It is never longer than
	// Grace.
	ShutdownGrace time.Duration

	// Drain is how long output is still read when the program has ended and a
	// child that left its process group holds the other end; 0 stands for 250
	// milliseconds.
	Drain time.Duration

	// Changes keeps what runs changed in their Layers; nil: every layered folder is
	// read-only.
	Changes *changes.Store

	// CopyDir is the existing folder for copies that runs get of layered folders;
	// best on the file system of the user's projects. Empty: the system's temporary
	// folder.
	CopyDir string

	// TurnWait is how long a run waits for its turn in its Layers while other runs
	// have it; 0 stands for 5 minutes. See [sandbox.BusyError].
	TurnWait time.Duration

	// ReserveDir is a folder on the disk of the audit log, and Reserve how many
	// bytes of that disk stay free: with less, nothing is started, and runs are
	// ended, so that no run keeps the next call from being recorded. Empty or 0: no
	// reserve.
	ReserveDir string
	Reserve    int64

	TempDir  string            // existing parent of the runs' temporary folders; empty: the system's
	Lookuper *program.Lookuper // shares its digests, so that a check before a start is quick; nil: one of its own
	Logger   *slog.Logger      // what went wrong beside a run; nil: nobody is told

	// Skip are levels that are not tried, as if this machine did not have them.
	Skip []sandbox.Level
}

// A Runner starts programs. Safe for concurrent use.
type Runner struct {
	o Options

	probing sync.Mutex
	report  *sandbox.Report // guarded by probing; nil: not probed yet
	starter level.Starter         // of report.Level; guarded by probing
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
	return &Runner{o: o}
}

// Run starts c under p and returns when the program has ended and nothing that it
// started is left as far as the level can tell. A helper that confined it ends a
// moment later; [Runner.Close] waits for that.
//
// A program that was started gives a Result and no error, however it ended.
// Any error means that nothing was started: a [*sandbox.CommandError], a
// [*program.NotFoundError], a [*sandbox.TooLargeError], a [*program.ChangedError], a [*sandbox.StartError], a [*sandbox.ConfineError],
// a [*sandbox.BusyError], ctx's own error when it was done before, or one of preparing the run.
//
// When ctx is done, the timeout passes or the output is too much, everything
// that the run started gets SIGTERM, and SIGKILL after [Options.Grace], or after
// [Options.ShutdownGrace] when the server ends. When there is too much on disk,
// SIGKILL follows SIGTERM at once, and when the program itself ends, the rest
// gets SIGKILL at once. What "everything" is, and what becomes of it
// when the server itself is killed, depends on the [sandbox.Level].
//
// The program finds a private folder for temporary files in TMPDIR (TMP and
// TEMP on Windows), which is gone afterwards.
func (r *Runner) Run(ctx context.Context, p sandbox.Policy, c sandbox.Command) (*sandbox.Result, error) {
	if err := checkPolicy(&p); err != nil {
		return nil, err
	}
	cache, err := openCache(&p)
	if err != nil {
		return nil, err
	}
	defer cache.close()
	p = withCache(p)
	im, err := images.Open(&p)
	if err != nil {
		return nil, err
	}
	best, s := r.best(ctx)
	if im != nil && (!s.Places() || im.Live(&p, &c)) {
		if p, c, err = im.Rename(p, c); err != nil {
			return nil, err
		}
	}
	if err := checkCommand(im.Files(&c)); err != nil {
		return nil, err
	}
	if err := c.CheckSearch(); err != nil {
		return nil, err
	}
	p.Limits = p.Limits.WithDefaults()

	var ws *workspace
	if c.Workspace != "" {
		root, err := openWorkspace(&c)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		ws = &workspace{root: root, before: scan(root)}
	}
	tmp := s.TempDir()
	if tmp == "" {
		folder, err := temp.New(r.o.TempDir)
		if err != nil {
			return nil, fmt.Errorf("making a temporary folder for the run: %w", err)
		}
		tmp = folder.Path
		defer func() {
			if err := folder.Remove(); err != nil {
				r.o.Logger.Warn("a run's temporary folder is left", "dir", tmp, "err", err)
			}
		}()
	}

	over, err := r.openLayers(ctx, s, &p, &c)
	if err != nil {
		return nil, err
	}
	defer r.closeLayers(over)
	if p, c, im, err = over.place(s, p, c, im); err != nil {
		return nil, err
	}
	res, lost, err := r.run(ctx, s, &launch{
		Launch: level.Launch{Policy: p, Command: &c, Images: im, Overlays: over.overlays(), Cache: cache.identity(), Tmp: tmp},
		layers: over, cache: cache, tmpOnDisk: s.TempDir() == "",
	}, ws)
	if err != nil {
		return nil, err
	}
	res.Level = best
	over.finish(ctx, &p, res, lost)
	if ws != nil {
		ws.report(res, p.Limits)
	}
	return res, nil
}

// A launch is one run, checked and complete.
type launch struct {
	level.Launch
	layers    *layers
	cache     *cache // nil: none
	tmpOnDisk bool   // nothing bounds Tmp but we
}

func (r *Runner) run(ctx context.Context, s level.Starter, l *launch, ws *workspace) (_ *sandbox.Result, lost bool, _ error) {
	c, limits := l.Command, l.Policy.Limits
	tempNames := []string{"TMPDIR=" + l.Tmp}
	if runtime.GOOS == "windows" {
		tempNames = append(tempNames, "TMP="+l.Tmp, "TEMP="+l.Tmp)
	}
	l.Argv = append([]string{c.Program.Path}, c.Args...)
	l.Env = sandbox.MergeEnv(c.Env, tempNames)
	if err := level.CheckSpace(l.Argv, l.Env); err != nil {
		return nil, false, err
	}
	pipes, err := openPipes(l, c)
	if err != nil {
		return nil, false, fmt.Errorf("making pipes for the run: %w", err)
	}
	defer pipes.close()

	if err := ctx.Err(); err != nil {
		return nil, false, fmt.Errorf("starting program %q: %w", c.Program.Name, err)
	}
	here := l.Images.Files(c)
	if l.Checked, err = r.o.Lookuper.Verify(here.Program); err != nil {
		return nil, false, err
	}
	if err := checkDirID(here); err != nil { // looking at the workspace may have taken its time
		return nil, false, err
	}
	if !r.reserve().Left() {
		return nil, false, &sandbox.CommandError{Problem: fmt.Sprintf(
			"the disk of the audit log has less than %d MiB free, which are kept for the log", r.o.Reserve>>20)}
	}
	bounds, err := l.bounds(ws)
	defer closeBounds(bounds)
	if err != nil {
		return nil, false, &sandbox.CommandError{Folder: true, Problem: "nothing could bound what the run writes", Err: err}
	}
	level.KeepDescriptors()
	res := &sandbox.Result{Started: time.Now()}
	proc, err := s.Start(&l.Launch)
	if err != nil {
		return nil, false, err
	}
	pipes.closeChildEnds()

	out := capture.New(c, limits, ws.folder())
	readers := pipes.read(out)
	feeder := pipes.feed(c.Stdin)

	timeout := time.NewTimer(limits.Timeout)
	defer timeout.Stop()
	var grace <-chan time.Time
	var end time.Time // when grace is over
	stop := func(why sandbox.Cause, d time.Duration) {
		first := res.Cause == sandbox.CauseExit
		if first {
			res.Cause = why
			proc.Terminate()
		}
		if at := time.Now().Add(d); first || at.Before(end) {
			grace, end = time.After(d), at
		}
	}
	stopWatching := make(chan struct{})
	watching := bounds
	if l.cache != nil {
		watching = append(slices.Clip(bounds), l.cache.bound(limits))
	}
	watched := disk.Watch(stopWatching, r.reserve(), watching, proc.Hidden)
	full := watched
	done, over := ctx.Done(), out.Over()
	for running := true; running; {
		select {
		case <-proc.Ended():
			running = false
		case <-timeout.C:
			stop(sandbox.CauseTimeout, r.o.Grace)
		case why, ok := <-full:
			if full = nil; ok {
				stop(why, 0) // with time to end, it would write on
			}
		case <-done:
			done = nil
			if errors.Is(context.Cause(ctx), sandbox.ErrShutdown) {
				stop(sandbox.CauseCancelled, r.o.ShutdownGrace)
			} else {
				stop(sandbox.CauseCancelled, r.o.Grace)
			}
		case <-over:
			over = nil
			stop(sandbox.CauseOutputLimit, r.o.Grace)
			// Nothing is read any more; a program that prints on its way out
			// gets EPIPE rather than waiting for SIGKILL.
			pipes.closeReaders()
		case <-grace:
			proc.Kill()
		}
	}
	res.Duration = time.Since(res.Started)
	close(stopWatching)
	for range watched { // until nobody looks at what is about to be gone
	}

	// When nothing of the run is left, nobody prints any more, and the readers
	// come to an end, unless somebody got away.
	ended := proc.Reap()
	l.layers.give(ended.Overlays)
	pipes.drained(readers, r.o.Drain)
	pipes.closeReaders()
	<-readers
	pipes.closeFeed()
	<-feeder

	if ended.Err != nil {
		return nil, false, ended.Err
	}
	if out.Exceeded() && res.Cause == sandbox.CauseExit {
		res.Cause = sandbox.CauseOutputLimit
	}
	if res.Cause == sandbox.CauseExit {
		res.Cause = ended.Cause
	}
	if res.Cause == sandbox.CauseExit {
		res.Cause = disk.Exceeded(bounds, 0)
	}
	res.Cache = l.cache.use(limits, res.Cause)
	res.ExitCode, res.Signal, res.Usage = ended.Code, ended.Signal, ended.Usage
	out.Report(res)
	return res, ended.Lost, nil
}

// maxDrains is how many times as long as usual output is read that is there, when
// the machine has so much to do that nobody came to read it.
const maxDrains = 20

// drained waits for readers to be done: for d, and some more while there is
// something to read.
func (p *pipes) drained(readers <-chan struct{}, d time.Duration) {
	t := time.NewTicker(d)
	defer t.Stop()
	for range maxDrains {
		select {
		case <-readers:
			return
		case <-t.C:
			if !holds(p.stdout) && !holds(p.stderr) {
				return
			}
		}
	}
}

// pipes are the ends of a run's standard streams.
type pipes struct {
	child          []*os.File // the program's ends
	stdin          *os.File   // ours; nil: the program reads an end of file
	stdout, stderr *os.File   // ours
}

func openPipes(l *launch, c *sandbox.Command) (_ *pipes, err error) {
	p := &pipes{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if len(c.Stdin) > 0 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.stdin, l.Stdin = w, r
		p.child = append(p.child, r)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdout, l.Stdout = r, w
	p.child = append(p.child, w)
	if r, w, err = os.Pipe(); err != nil {
		return nil, err
	}
	p.stderr, l.Stderr = r, w
	p.child = append(p.child, w)
	return p, nil
}

// read copies the program's output to out; the channel is closed when no
// goroutine reads any more.
func (p *pipes) read(out *capture.Output) <-chan struct{} {
	var wg sync.WaitGroup
	wg.Go(func() { out.ReadStdout(p.stdout) })
	wg.Go(func() { out.ReadStderr(p.stderr) })
	return waiting(&wg)
}

// feed writes the program's input; the channel is closed when that is over.
func (p *pipes) feed(input []byte) <-chan struct{} {
	var wg sync.WaitGroup
	if p.stdin != nil {
		wg.Go(func() {
			// A program need not read what it is given.
			_, _ = p.stdin.Write(input)
			p.closeFeed()
		})
	}
	return waiting(&wg)
}

func waiting(wg *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

func (p *pipes) closeChildEnds() {
	for _, f := range p.child {
		_ = f.Close()
	}
	p.child = nil
}

func (p *pipes) closeReaders() {
	if p.stdout != nil {
		_ = p.stdout.Close()
	}
	if p.stderr != nil {
		_ = p.stderr.Close()
	}
}

func (p *pipes) closeFeed() {
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
}

func (p *pipes) close() {
	p.closeChildEnds()
	p.closeReaders()
	p.closeFeed()
}

// sweep removes what servers that were killed have left.
func (r *Runner) sweep() {
	parents := []string{""}
	for _, dir := range []string{r.o.TempDir, r.o.CopyDir} {
		if dir != "" && !slices.Contains(parents, dir) {
			parents = append(parents, dir)
		}
	}
	for _, parent := range parents {
		if err := temp.Sweep(parent); err != nil {
			r.o.Logger.Warn("what an earlier server left is not all removed", "err", err)
		}
	}
	host{}.Sweep()
}
