//go:build amd64 || arm64

package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/probe"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/seccomp"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/disk"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/supervised"
)

// Why a container is not one with Landlock.
var (
	errNoLandlock = errors.New("the container's kernel has not the Landlock of this machine's")
	errOwnKernel  = errors.New("the container has a kernel of its own, without Landlock")
)

// errOtherKernel is why nothing starts in a container that is not like the one that was tried.
var errOtherKernel = errors.New("the container has another kernel than the one that was tried; restart packs-mcp")

// Candidates are a container with Landlock in it and, where it has none, as in a kernel of
// its own (gVisor), one without.
func (s *System) Candidates(*slog.Logger) []level.Candidate {
	gaps := []string{"control groups and the machine's settings can be read in /sys"}
	if os.Getuid() == 0 {
		gaps = append(gaps, "as root: how the machine's memory is used can be read in /proc")
	}
	means := []string{"a container of the engine at " + s.o.Socket, "seccomp"}
	without := &confiner{system: s}
	weaker := level.Candidate{
		Level: without.level(), Confiner: without, Network: true, Means: means,
		Gaps: append([]string{"no Landlock: the container alone keeps the program to its folders"}, gaps...),
	}
	abi := supervised.LandlockABI()
	if abi == 0 {
		return []level.Candidate{weaker}
	}
	with := &confiner{system: s, landlock: abi}
	without.better = with
	return []level.Candidate{{
		Level: with.level(), Confiner: with, Network: true, Means: append(slices.Clone(means), fmt.Sprintf("Landlock ABI %d", abi)), Gaps: gaps,
	}, weaker}
}

// A confiner starts programs in containers.
type confiner struct {
	system   *System
	landlock int       // the ABI of the kernel in the container; 0: not used
	better   *confiner // that was tried before this one; nil: none
	foreign  bool      // the container has a kernel of its own; set by Try, and only without Landlock

	tried      error // what came of Try
	noListener error // why the filter cannot ask the helper; nil: it can. Set by Try.
	noHosts    error // why no run can reach hosts by name; nil: it can. Set by Find.

	removing sync.WaitGroup
}

// level is what runs are confined at. Without Landlock it is what namespaces alone are on
// this machine.
func (c *confiner) level() sandbox.Level {
	if c.landlock > 0 {
		return sandbox.LevelFull
	}
	return sandbox.LevelPartial
}

func (c *confiner) TempDir() string { return "/tmp" }

func (c *confiner) Places() bool { return true }

func (c *confiner) Overlays(string, sandbox.Look) (sandbox.Look, string) {
	return sandbox.Look{}, noOverlay
}

// Close waits until containers whose runs have ended are removed.
func (c *confiner) Close() { c.removing.Wait() }

func (c *confiner) Start(l *level.Launch) (level.Process, error) {
	fail := func(step string, err error) (level.Process, error) {
		if ce, ok := errors.AsType[*sandbox.CommandError](err); ok {
			return nil, ce
		}
		return nil, &sandbox.ConfineError{Level: c.level(), Step: step, Err: err}
	}
	if n := l.Policy.Network; n != sandbox.NetworkNone && !n.OwnLoopback() {
		return fail("giving the container a network", errors.New("a run in a container has none but its own"))
	}
	if l.Policy.Network == sandbox.NetworkHosts && c.noHosts != nil {
		return fail("giving the program a way to its hosts", c.noHosts)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	p, err := c.system.open(ctx)
	if err != nil {
		return fail("making a container", err)
	}
	job, err := c.job(l)
	if err != nil {
		return nil, err
	}
	s := newSpec(p, c.system.o.Runtime, l.Policy.Limits)
	s.together(l.Policy.Together)
	if err := show(s, l); err != nil {
		return nil, err
	}
	b, err := c.system.launch(ctx, p, s)
	if err != nil {
		return fail("making a container", err)
	}
	q := request{Given: givenOf(s), Verify: &l.Command.Program}
	q.Given.Alone = c.landlock == 0
	if l.Listener != nil {
		q.Listen = level.ListenPort
	}
	if err := c.verify(b, s, q, job, l.Command); err != nil {
		b.discard()
		return nil, err
	}
	message := job.Message()
	if message == nil {
		b.discard()
		return nil, level.TooLarge(l.Argv, l.Env)
	}
	socket, err := b.socket()
	if err == nil {
		socket.Listener = l.Listener
		if err = socket.Send(message, l); err != nil {
			socket.Close()
		}
	}
	if err != nil {
		b.discard()
		return fail("telling the container's helper what to start", err)
	}
	r := &running{confiner: c, box: b, socket: socket, launch: l, done: make(chan struct{})}
	go func() {
		if r.report, _ = socket.Answer(); r.report == nil { // nobody knows how the run ended
			r.full = b.memory.OutOfMemory() // at once: the engine removes the group
		}
		close(r.done)
	}()
	return r, nil
}

// socket returns the connection to the helper, for its job.
func (b *box) socket() (*supervised.Socket, error) {
	file, err := b.conn.File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	_ = b.conn.Close()
	b.conn = nil
	return supervised.NewSocket(fd), nil
}

// verify has the helper look whether the container is as it was asked for, and the program,
// as the container has it, the one that was approved. The job gets what the helper compares
// once more when it starts it.
func (c *confiner) verify(b *box, s *spec, q request, job *confine.Job, cmd *sandbox.Command) error {
	a, err := b.ask(s, q)
	switch {
	case err != nil:
	case c.landlock > 0 && a.Foreign:
		err = errOwnKernel
	case c.landlock > 0 && a.Landlock != c.landlock:
		err = errNoLandlock
	case a.Foreign != c.foreign:
		err = errOtherKernel
	}
	if err != nil {
		return &sandbox.ConfineError{Level: c.level(), Step: "looking at the container", Err: err}
	}
	if err := a.err(); err != nil {
		return err
	}
	for _, f := range a.Checked {
		job.Files = append(job.Files, confine.File{Path: f.Path, State: f.State, System: true})
	}
	if !a.Foreign || job.DirID == (confine.ID{}) {
		return nil
	}
	// The container's kernel numbers files in its own way, so the folder is compared here, as it
	// was before the engine mounted it.
	if info, err := os.Lstat(cmd.Dir); err != nil || !os.SameFile(info, cmd.DirID) {
		return &sandbox.CommandError{Folder: true, Problem: "the working folder " + confine.Replaced}
	}
	job.DirID = confine.ID{}
	return nil
}

// show gives the container the run's folders.
func show(s *spec, l *level.Launch) error {
	add := func(path string, writable bool) error {
		if l.Images.Covers(path) {
			return nil // only the image may be there
		}
		stops, _ := paths.Trail(path)
		if len(stops) == 0 {
			return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("folder %q", path), Err: os.ErrNotExist}
		}
		end := stops[len(stops)-1]
		if l.Images.Covers(end) {
			return nil
		}
		s.bind(end, end, writable)
		if path != end {
			s.bind(end, path, writable)
		}
		return nil
	}
	for _, path := range l.Policy.ReadOnly {
		if err := add(path, false); err != nil {
			return err
		}
	}
	for _, path := range l.Policy.Writable {
		if err := add(path, true); err != nil {
			return err
		}
	}
	for _, i := range l.Images {
		s.bind(i.From, i.At, i.Writable)
	}
	return nil
}

// job builds the job for the helper. It is confined by the container already.
func (c *confiner) job(l *level.Launch) (*confine.Job, error) {
	dir := l.Command.Dir
	j := &confine.Job{Path: l.Argv[0], Args: l.Argv[1:], Env: l.Env, Dir: dir, Filter: c.filter(l), Contained: true}
	if !l.Images.Covers(dir) {
		j.DirID = supervised.IDOf(l.Command.DirID)
	}
	supervised.SetLimits(j, l.Policy.Limits)
	allow := func(path string, access uint64, id confine.ID) {
		j.Landlock.Rules = append(j.Landlock.Rules, confine.Rule{Path: path, Access: access, ID: id})
	}
	allow("/", supervised.AccessRead, confine.ID{})
	for _, path := range supervised.Devices() {
		access := uint64(supervised.AccessDevice)
		if path == "/dev/zero" && c.noListener != nil { // memory that the filter does not see
			access = unix.LANDLOCK_ACCESS_FS_READ_FILE
		}
		allow(path, access, confine.ID{})
	}
	for _, path := range []string{l.Tmp, "/dev/shm"} {
		allow(path, supervised.AccessWrite, confine.ID{})
	}
	allow("/dev/pts", supervised.AccessDevice|unix.LANDLOCK_ACCESS_FS_READ_DIR, confine.ID{})
	writable := func(path, host string, id confine.ID) error {
		info, err := os.Lstat(host)
		if err != nil {
			return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("folder %q", path), Err: err}
		}
		access := uint64(supervised.AccessWrite)
		if !info.IsDir() {
			access &= supervised.AccessFile
		}
		// The engine mounts by path: this is what was there before.
		allow(path, access, cmp.Or(id, supervised.IDOf(info)))
		return nil
	}
	for _, path := range l.Policy.Writable {
		var id confine.ID
		switch {
		case path == l.Policy.Cache:
			id = supervised.IDOf(l.Cache)
		case path == l.Command.Workspace:
			id = supervised.IDOf(l.Command.WorkspaceID)
		}
		end, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("folder %q", path), Err: err}
		}
		if err := writable(end, end, id); err != nil {
			return nil, err
		}
	}
	for _, i := range l.Images {
		if i.Writable {
			if err := writable(i.At, i.From, confine.ID{}); err != nil {
				return nil, err
			}
		}
	}
	supervised.Restrict(&j.Landlock, c.landlock, l.Policy.Network != sandbox.NetworkNone)
	return j, nil
}

// filter returns what seccomp must refuse.
func (c *confiner) filter(l *level.Launch) seccomp.Filter {
	f := seccomp.Filter{Counted: true, NoScope: c.landlock < 6}
	if c.noListener != nil {
		f.NoListener, f.Piece = true, supervised.PieceOf(l.Policy.Limits)
	}
	switch {
	case l.Policy.Network == sandbox.NetworkNone:
	case c.landlock >= 9 || !sees(l):
		f.Network = seccomp.NetworkLocal
	default:
		f.Network = seccomp.NetworkInternet
	}
	return f
}

// sees reports whether a run sees a folder in which other programs may listen on a
// socket.
func sees(l *level.Launch) bool {
	return slices.ContainsFunc(slices.Concat(l.Policy.ReadOnly, l.Policy.Writable), func(path string) bool {
		return !l.Images.Covers(path) && !slices.Contains(l.Policy.Private, path)
	})
}

// A running program is one in a container.
type running struct {
	confiner *confiner
	box      *box
	socket   *supervised.Socket
	launch   *level.Launch

	done   chan struct{}   // closed by the goroutine that reads the answer
	late   *time.Timer     // kills a helper that does not obey
	report *confine.Report // when done is closed; nil: the helper said nothing
	full   bool            // when done is closed: the control group shows that memory ran out
}

func (r *running) Ended() <-chan struct{} { return r.done }
func (r *running) Terminate()             { r.socket.Order(confine.OrderTerminate) }

func (r *running) Hidden() int64 {
	if r.box.pid == 0 {
		return 0
	}
	return disk.HiddenBelow(r.box.pid, false)
}

// obeyTime bounds how long a helper may take to kill a run. Then its container is
// killed.
const obeyTime = 5 * time.Second

func (r *running) Kill() {
	r.socket.Order(confine.OrderKill)
	if r.late == nil {
		r.late = time.AfterFunc(obeyTime, func() {
			if r.box.kill(); r.box.pidfd < 0 {
				r.box.discard()
			}
		})
	}
}

func (r *running) Reap() level.Ending {
	select {
	case <-r.done:
	default:
		r.box.kill()
	}
	r.socket.Close()
	<-r.done
	if r.late != nil {
		r.late.Stop()
	}
	if r.report == nil {
		// The helper was killed, and its container with it.
		e := level.Ending{Code: -1, Signal: "SIGKILL", Lost: true}
		if r.full || r.box.outOfMemory() {
			e.Cause = sandbox.CauseMemoryLimit
		}
		r.box.discard()
		return e
	}
	// Nothing of the run is left in it. The engine takes its time.
	r.confiner.removing.Go(r.box.discard)
	if r.report.Failed {
		return level.Ending{Code: -1, Err: supervised.Failure(r.report, r.confiner.level(), r.launch)}
	}
	return supervised.Ending(r.report)
}

// tryTime bounds a trial run once its container is there.
const tryTime = 20 * time.Second

// Try runs this program itself in a container. It tries what must fail, and reports what
// did not. If the filter cannot ask the helper here, c uses one that asks nothing from
// then on.
func (c *confiner) Try(ctx context.Context) (err error) {
	if c.better != nil && !errors.Is(c.better.tried, errNoLandlock) && !errors.Is(c.better.tried, errOwnKernel) {
		return c.better.tried // it is the same without Landlock
	}
	c.foreign = c.better != nil && errors.Is(c.better.tried, errOwnKernel)
	checks := []string{c.check()}
	if c.landlock > 0 {
		checks = append(checks, probe.Landlock)
	}
	defer func() { c.tried = err }()
	for {
		err := c.try(ctx, sandbox.Policy{}, nil, checks)
		ce, ok := errors.AsType[*sandbox.ConfineError](err)
		switch {
		case !ok:
			return err
		case ce.Step == confine.StepListen && c.noListener == nil:
			c.noListener = ce.Err
		default:
			return fmt.Errorf("%s: %w", ce.Step, ce.Err)
		}
	}
}

// check is what a confined process checks about its container.
func (c *confiner) check() string {
	if c.foreign {
		return probe.OwnKernel
	}
	return probe.Container
}

// Find finds out whether a network of a container's own works, and its listener.
func (c *confiner) Find(ctx context.Context) level.Findings {
	f := level.Findings{Overlay: noOverlay}
	came := false
	listener := func(l *os.File) {
		came = true
		_ = l.Close()
	}
	err := c.try(ctx, sandbox.Policy{Network: sandbox.NetworkHosts}, listener, []string{probe.Loopback})
	if f.Loopback = err == nil && came; !f.Loopback {
		f.Loopback = c.try(ctx, sandbox.Policy{Network: sandbox.NetworkLoopback}, nil, []string{probe.Loopback}) == nil
		c.noHosts = cmp.Or(err, errors.New("no listener came out of the container"))
		f.Gaps = append(f.Gaps, fmt.Sprintf("no run reaches hosts by name (%v)", c.noHosts))
	}
	if c.foreign {
		f.Gaps = append(f.Gaps, "the container has a kernel of its own: limits.memory is for all processes together and not for each, and a program can end its helper, and its own run with it")
	}
	if c.noListener != nil {
		f.Gaps = append(f.Gaps, fmt.Sprintf("the seccomp filter can ask nobody (%v): the size of each mapping of shared memory is bounded, and not that of all together", c.noListener))
	}
	return f
}

// Bound finds out whether the engine gives a container the bounds of t.
func (c *confiner) Bound(ctx context.Context, t sandbox.Together) error {
	err := c.try(ctx, sandbox.Policy{Together: t}, nil, []string{c.check()})
	if ce, ok := errors.AsType[*sandbox.ConfineError](err); ok {
		return ce.Err
	}
	return err
}

// try runs this program's own checks. The listener is as in level.Launch.
func (c *confiner) try(ctx context.Context, policy sandbox.Policy, listener func(*os.File), checks []string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	policy.Limits = sandbox.DefaultLimits()
	p, err := c.Start(&level.Launch{
		Policy:  policy,
		Command: &sandbox.Command{Dir: "/"},
		Argv:    append([]string{helperPath, confine.CheckArg}, checks...),
		Env:     []string{"TMPDIR=/tmp", "GORACE=atexit_sleep_ms=0"}, Tmp: "/tmp", Stdout: w, Stderr: w, Listener: listener,
	})
	_ = w.Close()
	if err != nil {
		return err
	}
	late := false
	select {
	case <-p.Ended():
	case <-ctx.Done():
		late = true
	case <-time.After(tryTime):
		late = true
	}
	end := p.Reap()
	text, _ := io.ReadAll(io.LimitReader(r, 1<<10))
	switch {
	case end.Err != nil:
		return end.Err
	case late:
		return fmt.Errorf("a trial run did not end within %v", tryTime)
	case end.Code != 0 && len(text) > 0:
		return fmt.Errorf("a trial run was not confined as it should be: %s", strings.TrimSpace(string(text)))
	case end.Code != 0:
		return fmt.Errorf("a trial run ended with status %d %s", end.Code, end.Signal)
	}
	return nil
}
