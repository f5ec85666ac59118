package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/capture"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/disk"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/egress"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/images"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
)

// Run starts c under p. It returns when the program has ended and, as far as the level can tell,
// nothing that it started is left. A helper that confined it ends a moment later; [Runner.Close]
// waits for that.
//
// A program that was started gives a Result and no error, however it ended. Any error means that
// nothing was started: a [*sandbox.CommandError], a [*program.NotFoundError], a
// [*sandbox.TooLargeError], a [*program.ChangedError], a [*sandbox.StartError], a
// [*sandbox.ConfineError], a [*sandbox.BusyError], ctx's own error if it was done before, or an
// error from preparing the run.
//
// When ctx is done, the timeout passes or the output is too much, everything that the run
// started gets SIGTERM, and SIGKILL after [Options.Grace], or after [Options.ShutdownGrace] when
// the server ends. If there is too much on disk, SIGKILL follows SIGTERM at once, and when the
// program itself ends, the rest gets SIGKILL at once. The [sandbox.Level] determines what
// "everything" covers, and what happens to it when the server itself is killed.
//
// The program finds a private folder for temporary files in TMPDIR (TMP and
// TEMP on Windows), which is gone afterwards.
func (r *Runner) Run(ctx context.Context, p sandbox.Policy, c sandbox.Command) (*sandbox.Result, error) {
	t := &task{r: r}
	defer t.close()
	if err := t.prepare(ctx, p, c); err != nil {
		return nil, err
	}
	res, lost, err := t.carryOut(ctx)
	if err != nil {
		return nil, err
	}
	res.Level = t.level
	t.layers.finish(ctx, &t.Policy, res, lost)
	if t.ws != nil {
		t.ws.report(res, t.Policy.Limits)
	}
	return res, nil
}

// A task is one call of [Runner.Run].
type task struct {
	level.Launch
	r       *Runner
	level   sandbox.Level
	starter level.Starter

	cache  *cache        // nil: none
	proxy  *egress.Proxy // to the Policy's Hosts; nil: none
	ws     *workspace    // nil: none
	temp   *temp.Folder  // the folder of Tmp, if only we bound it; nil: the level makes it
	layers *layers       // nil: none
}

// close releases what prepare opened, in reverse order.
func (t *task) close() {
	t.r.closeLayers(t.layers)
	if t.temp != nil {
		if err := t.temp.Remove(); err != nil {
			t.r.o.Logger.Warn("a run's temporary folder is left", "dir", t.temp.Path, "err", err)
		}
	}
	if t.ws != nil {
		_ = t.ws.root.Close()
	}
	t.cache.close()
}

// prepare checks p and c, chooses the level, and opens and makes what the run needs.
// The order matters: the level gets what was checked, folders are examined before the
// run waits for its turn in them, and nothing is made for a refused run.
func (t *task) prepare(ctx context.Context, p sandbox.Policy, c sandbox.Command) error {
	t.Policy, t.Command = p, &c
	for _, step := range []func(context.Context) error{
		t.openPolicy, t.chooseLevel, t.check, t.openWorkspace, t.makeTemp, t.openLayers,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openPolicy checks the Policy, and opens its Cache and Images.
func (t *task) openPolicy(context.Context) (err error) {
	if err := checkPolicy(&t.Policy); err != nil {
		return err
	}
	if t.cache, err = openCache(&t.Policy); err != nil {
		return err
	}
	t.Cache = t.cache.identity()
	t.Policy = withCache(t.Policy)
	t.Images, err = images.Open(&t.Policy)
	return err
}

// chooseLevel takes the best level. If that cannot mount images at their places, the
// run's paths change from here on.
func (t *task) chooseLevel(ctx context.Context) (err error) {
	t.level, t.starter = t.r.best(ctx)
	if t.Images != nil && (!t.starter.Places() || t.Images.Live(&t.Policy, t.Command)) {
		t.Policy, *t.Command, err = t.Images.Rename(t.Policy, *t.Command)
	}
	return err
}

// check checks the Command, and sets the limits.
func (t *task) check(ctx context.Context) error {
	if err := checkCommand(t.Images.Files(t.Command)); err != nil {
		return err
	}
	if !t.r.elsewhere {
		if err := t.Command.CheckSearch(); err != nil {
			return err
		}
	}
	if t.Policy.Network == sandbox.NetworkHosts {
		if !t.r.Probe(ctx).Loopback {
			// With the machine's network, a program need not use the proxy.
			return &sandbox.ConfineError{Level: t.level, Step: "keeping the program to the hosts that it names", Err: errors.New("that takes a network of its own")}
		}
		t.Listener = t.serveHosts
	}
	t.Policy.Limits = t.Policy.Limits.WithDefaults()
	if t.Policy.Together != (sandbox.Together{}) && t.r.Probe(ctx).Together != "" {
		t.Policy.Together = sandbox.Together{} // the question said so
	}
	return nil
}

// openWorkspace opens the workspace, and takes a snapshot of it.
func (t *task) openWorkspace(context.Context) error {
	if t.Command.Workspace == "" {
		return nil
	}
	root, err := openWorkspace(t.Command)
	if err != nil {
		return err
	}
	t.ws = &workspace{root: root, before: scan(root)}
	return nil
}

// makeTemp makes the folder for temporary files, unless the level does.
func (t *task) makeTemp(context.Context) (err error) {
	if t.Tmp = t.starter.TempDir(); t.Tmp != "" {
		return nil
	}
	if t.temp, err = temp.New(t.r.o.TempDir); err != nil {
		t.temp = nil
		return fmt.Errorf("making a temporary folder for the run: %w", err)
	}
	t.Tmp = t.temp.Path
	return nil
}

// openLayers waits for the run's turn in its Layers, and opens them.
func (t *task) openLayers(ctx context.Context) (err error) {
	if t.layers, err = t.r.openLayers(ctx, t.starter, &t.Policy, t.Command); err != nil {
		return err
	}
	t.Overlays = t.layers.overlays()
	t.Policy, *t.Command, t.Images, err = t.layers.place(t.starter, t.Policy, *t.Command, t.Images)
	return err
}

// carryOut starts the program and returns when nothing of it is left. lost says that
// it is unknown whether it ended by itself. An error means that it was not started.
func (t *task) carryOut(ctx context.Context) (_ *sandbox.Result, lost bool, _ error) {
	if err := t.setArguments(); err != nil {
		return nil, false, err
	}
	pipes, err := openPipes(&t.Launch)
	if err != nil {
		return nil, false, fmt.Errorf("making pipes for the run: %w", err)
	}
	defer pipes.close()
	if err := t.verify(ctx); err != nil {
		return nil, false, err
	}
	bounds, err := t.bounds()
	defer closeBounds(bounds)
	if err != nil {
		return nil, false, &sandbox.CommandError{Folder: true, Problem: "nothing could bound what the run writes", Err: err}
	}
	level.KeepDescriptors()
	res := &sandbox.Result{Started: time.Now()}
	proc, err := t.starter.Start(&t.Launch)
	if err != nil {
		return nil, false, err
	}
	pipes.closeChildEnds()
	if t.r.elsewhere {
		res.Started = time.Now() // the program's time excludes making a container
	}

	out := capture.New(t.Command, t.Policy.Limits, t.ws.folder())
	readers, feeder := pipes.read(out), pipes.feed(t.Command.Stdin)
	cause, stopWatching := t.attend(ctx, proc, out, pipes, bounds)
	res.Cause, res.Duration = cause, time.Since(res.Started)
	stopWatching()

	ended := proc.Reap()
	if t.proxy != nil {
		res.Contacts = t.proxy.Close()
	}
	t.layers.give(ended.Overlays)
	pipes.finish(readers, feeder, t.r.o.Drain)
	if ended.Err != nil {
		return nil, false, ended.Err
	}
	t.conclude(res, ended, out, bounds)
	return res, ended.Lost, nil
}

// setArguments sets the arguments and environment, and checks their size.
func (t *task) setArguments() error {
	c := t.Command
	tempNames := []string{"TMPDIR=" + t.Tmp}
	if runtime.GOOS == "windows" {
		tempNames = append(tempNames, "TMP="+t.Tmp, "TEMP="+t.Tmp)
	}
	t.Argv = append([]string{c.Program.Path}, c.Args...)
	t.Env = sandbox.MergeEnv(c.Env, tempNames)
	if t.Policy.Network == sandbox.NetworkHosts {
		t.Env = sandbox.MergeEnv(t.Env, proxyEnv())
	}
	return level.CheckSpace(t.Argv, t.Env)
}

// verify checks for the last time that what was approved is unchanged, and checks the
// log's disk.
func (t *task) verify(ctx context.Context) (err error) {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("starting program %q: %w", t.Command.Program.Name, err)
	}
	here := t.Images.Files(t.Command)
	if !t.r.elsewhere {
		if t.Checked, err = t.r.o.Lookuper.Verify(here.Program); err != nil {
			return err
		}
	}
	if err := checkDirID(here); err != nil { // examining the workspace may have taken a while
		return err
	}
	if !t.r.reserve().Left() {
		return &sandbox.CommandError{Problem: fmt.Sprintf(
			"the disk of the audit log has less than %d MiB free, which are kept for the log", t.r.o.Reserve>>20)}
	}
	return nil
}

// attend returns when the program has ended, by itself or because attend ended it for
// the cause that it returns. The bounds are watched until stopWatching; call that
// before removing anything in them.
func (t *task) attend(ctx context.Context, proc level.Process, out *capture.Output, pipes *pipes, bounds []*disk.Bound) (_ sandbox.Cause, stopWatching func()) {
	limits := t.Policy.Limits
	timeout := time.NewTimer(limits.Timeout)
	defer timeout.Stop()
	if t.cache != nil {
		bounds = append(slices.Clip(bounds), t.cache.bound(limits))
	}
	stop := make(chan struct{})
	watched := disk.Watch(stop, t.r.reserve(), bounds, proc.Hidden)
	stopWatching = func() {
		close(stop)
		for range watched { // until the watcher has ended
		}
	}
	e := ender{proc: proc}
	full, done, over := watched, ctx.Done(), out.Over()
	for {
		select {
		case <-proc.Ended():
			return e.cause, stopWatching
		case <-timeout.C:
			e.end(sandbox.CauseTimeout, t.r.o.Grace)
		case why, ok := <-full:
			if full = nil; ok {
				e.end(why, 0) // with time to end, it would go on writing
			}
		case <-done:
			done = nil
			if errors.Is(context.Cause(ctx), sandbox.ErrShutdown) {
				e.end(sandbox.CauseCancelled, t.r.o.ShutdownGrace)
			} else {
				e.end(sandbox.CauseCancelled, t.r.o.Grace)
			}
		case <-over:
			over = nil
			e.end(sandbox.CauseOutputLimit, t.r.o.Grace)
			// Nothing is read any more. A program that still prints gets EPIPE instead of
			// blocking until SIGKILL.
			pipes.closeReaders()
		case <-e.grace:
			proc.Kill()
		}
	}
}

// An ender ends a process: it asks first, and kills after the grace period.
type ender struct {
	proc  level.Process
	cause sandbox.Cause    // the first of them
	grace <-chan time.Time // nil: end was not called
	until time.Time        // when grace is over
}

// end asks the process to end within d. A later cause can only shorten that.
func (e *ender) end(why sandbox.Cause, d time.Duration) {
	first := e.cause == sandbox.CauseExit
	if first {
		e.cause = why
		e.proc.Terminate()
	}
	if at := time.Now().Add(d); first || at.Before(e.until) {
		e.grace, e.until = time.After(d), at
	}
}

// conclude adds to res how the program ended and what it printed. The cause is the
// one for which attend ended it, or else one that the level or a last check found.
func (t *task) conclude(res *sandbox.Result, ended level.Ending, out *capture.Output, bounds []*disk.Bound) {
	if out.Exceeded() && res.Cause == sandbox.CauseExit {
		res.Cause = sandbox.CauseOutputLimit
	}
	if res.Cause == sandbox.CauseExit {
		res.Cause = ended.Cause
	}
	if res.Cause == sandbox.CauseExit {
		res.Cause = disk.Exceeded(bounds, 0)
	}
	res.Cache = t.cache.use(t.Policy.Limits, res.Cause)
	res.ExitCode, res.Signal, res.Usage = ended.Code, ended.Signal, ended.Usage
	out.Report(res)
}
