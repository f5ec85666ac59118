//go:build amd64 || arm64

package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
)

// A confiner starts programs by a helper (package confine), confined by
// namespaces, by Landlock, or by both, and always by seccomp.
type confiner struct {
	level      sandbox.Level
	namespaces bool
	landlock   int // the kernel's ABI; 0: not used

	noListener error // why the filter cannot ask the helper; nil: it can. Set by try alone.
	// overlay says why there are no layers in memory; empty: there are. It is set
	// by the probe.
	overlay string

	etc    publicRules
	spares spares
	mounts mounts
}

func (s *confiner) tempDir() string {
	if s.namespaces {
		return "/tmp"
	}
	return ""
}

func (s *confiner) shows(p *sandbox.Policy, c *sandbox.Command, im images) bool {
	return s.namespaces && !im.live(p, c)
}

func (s *confiner) places() bool { return s.namespaces }

func (s *confiner) close() {
	s.spares.close()
	s.mounts.close()
	if !s.namespaces {
		adoptOrphans(false)
	}
}

func (s *confiner) start(l *launch) (process, error) {
	if !s.namespaces {
		adoptOrphans(true)
	}
	job, err := s.job(l)
	if err != nil {
		return nil, err
	}
	message := job.Message()
	if message == nil {
		return nil, &sandbox.TooLargeError{What: allStrings, Size: spaceOf(l.argv, l.env)}
	}
	h, err := s.tell(job.Group, message, l)
	if err != nil {
		return nil, &sandbox.ConfineError{Level: s.level, Step: "starting the helper", Err: err}
	}
	p := &confined{helper: h, spares: &s.spares, level: s.level, launch: l, namespaces: s.namespaces, done: make(chan struct{})}
	s.spares.refill(p.done)
	go func() {
		p.report, _ = h.answer() // whatever is wrong with it, nobody knows how the run ended
		l.layers.give(h.layers)
		close(p.done)
	}()
	return p, nil
}

// tell gives a helper its job. One that waited may have been killed meanwhile;
// then another one gets it.
func (s *confiner) tell(group string, message []byte, l *launch) (*helper, error) {
	for attempt := 0; ; attempt++ {
		h, err := s.spares.take()
		if err != nil {
			return nil, err
		}
		h.group = group
		err = h.send(message, l)
		if err == nil {
			return h, nil
		}
		h.close()
		h.tidy()
		if attempt > 0 {
			return nil, err
		}
	}
}

// A confined is a program under a helper.
type confined struct {
	helper *helper
	spares *spares
	level  sandbox.Level
	launch *launch

	namespaces bool // everything ends with the init, which ends with the helper

	done chan struct{} // closed by the goroutine that reads the answer

	late   *time.Timer     // kills a helper that does not obey
	report *confine.Report // when done is closed; nil: the helper said nothing
}

func (p *confined) ended() <-chan struct{} { return p.done }
func (p *confined) hidden() int64          { return hiddenBelow(p.helper.cmd.Process.Pid, false) }
func (p *confined) terminate()             { p.order(confine.OrderTerminate) }

// obeyTime bounds how long a helper that is to kill everything takes. When it
// is killed itself, everything goes with it, or falls to us.
const obeyTime = 5 * time.Second

func (p *confined) kill() {
	p.order(confine.OrderKill)
	if p.late == nil {
		p.late = time.AfterFunc(obeyTime, func() { _ = p.helper.cmd.Process.Kill() })
	}
}

// order does not wait. What cannot be said goes without saying: the socket is
// full of orders, or the helper is gone.
func (p *confined) order(b byte) { _, _ = p.helper.socket.Write([]byte{b}) }

func (p *confined) reap() ending {
	answered := false
	select {
	case <-p.done:
		answered = p.report != nil
	default:
	}
	if answered {
		p.spares.dismiss(p.helper) // there is nothing left to watch over
	} else {
		p.helper.close()
		<-p.done // a socket that is closed has no more to say
	}
	if p.late != nil {
		p.late.Stop()
	}
	if p.report == nil {
		// The helper was killed. In namespaces that was the end of the run.
		if !p.namespaces {
			killOrphans()
		}
		p.helper.tidy()
		return ending{code: -1, signal: "SIGKILL", lost: true}
	}
	if p.report.Failed {
		return ending{code: -1, err: p.failure()}
	}
	return endOfReport(p.report)
}

// failure sorts out why the program was not started.
func (p *confined) failure() error {
	r, c := p.report, p.launch.command
	errno := syscall.Errno(r.Errno)
	interpreter, isInterpreter := strings.CutPrefix(r.Step, confine.StepInterpreter)
	switch {
	case errno == syscall.ESTALE && r.Step == confine.StepProgram:
		return &program.ChangedError{Name: c.Program.Name, Path: c.Program.Path}
	case errno == syscall.ESTALE && isInterpreter:
		return &program.ChangedError{Name: c.Program.Name, Path: interpreter}
	case r.Step == confine.StepStart && errno == syscall.E2BIG:
		return &sandbox.TooLargeError{What: allStrings, Size: spaceOf(p.launch.argv, p.launch.env)}
	case r.Step == confine.StepStart:
		return &sandbox.StartError{Program: c.Program, Err: errno}
	case r.Step == confine.StepFolder:
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: errno}
	case errno == syscall.ESTALE && strings.HasSuffix(r.Step, confine.Replaced):
		return &sandbox.CommandError{Folder: true, Problem: r.Step}
	}
	return &sandbox.ConfineError{Level: p.level, Step: r.Step, Err: errno}
}

func endOfReport(r *confine.Report) ending {
	status := syscall.WaitStatus(r.Status)
	e := ending{code: -1, usage: sandbox.Usage{CPU: time.Duration(r.CPU) * time.Microsecond, MaxRSS: r.MaxRSS << 10}}
	if status.Exited() {
		e.code = status.ExitStatus()
	}
	if status.Signaled() {
		e.signal = signalName(status.Signal())
		switch status.Signal() {
		case unix.SIGXCPU:
			e.cause = sandbox.CauseCPULimit
		case unix.SIGXFSZ:
			e.cause = sandbox.CauseFileSizeLimit
		}
	}
	if r.TooMany {
		e.cause = sandbox.CauseProcessLimit
	}
	return e
}

// candidates are the ways to confine a program on Linux.
func candidates(Options) []candidate {
	abi := landlockABI()
	const spaces = "namespaces for users, processes, network, IPC, host name and mounts"
	landlock := fmt.Sprintf("Landlock ABI %d", abi)
	alone := []string{
		"attributes of the user's files can be seen and changed: modes, owners, times",
		"names and command lines of other processes can be seen",
		"what the user's other programs share in /dev/shm can be reached",
		"no network of its own: loopback is not available",
	}
	if os.Getuid() == 0 {
		alone = append(alone, "as root: how the machine's memory is used can be read in /proc")
	}
	if abi < 6 {
		alone = append(alone, "signals to the user's other processes are not all held back, and a program that tries can outlive its run")
	}
	var sockets []string
	if abi < 9 {
		sockets = []string{"unix sockets that services of the system keep in /usr, /etc or /opt can be reached by a run with a network"}
	}
	if abi == 0 {
		missing := errors.New("the kernel has no Landlock, or it is switched off")
		if os.Getuid() == 0 {
			// Nothing else keeps root's programs from what only root may read.
			return []candidate{{level: sandbox.LevelFull, err: missing}, {level: sandbox.LevelPartial, err: missing}}
		}
		return []candidate{
			{level: sandbox.LevelFull, err: missing},
			{level: sandbox.LevelPartial, starter: &confiner{level: sandbox.LevelPartial, namespaces: true}, network: true, alone: true, means: []string{spaces, "seccomp"},
				gaps: append(sockets, "no Landlock: the mounts alone keep the program to its folders")},
		}
	}
	return []candidate{
		{level: sandbox.LevelFull, starter: &confiner{level: sandbox.LevelFull, namespaces: true, landlock: abi}, network: true, alone: true, means: []string{spaces, landlock, "seccomp"}, gaps: sockets},
		{level: sandbox.LevelPartial, starter: &confiner{level: sandbox.LevelPartial, landlock: abi}, network: true, means: []string{landlock, "seccomp", "a supervisor"}, gaps: alone},
	}
}

// landlockABI asks the kernel what it has of Landlock; 0 is nothing.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// tryTime bounds a trial: it takes some milliseconds.
const tryTime = 10 * time.Second

// try runs this program itself under s, which looks around and says what is
// amiss. Where no filter can ask the helper, s has one that asks nothing from
// then on.
func try(ctx context.Context, s starter) error {
	c, ok := s.(*confiner)
	if !ok {
		return nil
	}
	var checks []string
	if c.namespaces {
		checks = append(checks, confine.CheckNamespaces)
	}
	if c.landlock > 0 {
		checks = append(checks, confine.CheckLandlock)
	}
	err := c.try(ctx, sandbox.Policy{}, nil, checks)
	if ce, ok := errors.AsType[*sandbox.ConfineError](err); ok && ce.Step == confine.StepListen {
		c.noListener = ce.Err
		err = c.try(ctx, sandbox.Policy{}, nil, checks)
	}
	if ce, ok := errors.AsType[*sandbox.ConfineError](err); ok {
		return fmt.Errorf("%s: %w", ce.Step, ce.Err)
	}
	return err
}

// gaps returns what a filter that cannot ask the helper does not cover.
func (s *confiner) gaps() []string {
	if s.noListener == nil {
		return nil
	}
	refused := "System V memory, message queues and semaphores are refused"
	if !s.namespaces {
		refused = "inotify is refused"
	}
	zero := "/dev/zero cannot be written"
	if s.landlock == 0 {
		zero = "there is no /dev/zero"
	}
	return []string{fmt.Sprintf("the seccomp filter can ask nobody (%v): the size of each mapping of shared memory is bounded, by default to 8 MiB, and not that of all together; %s; %s",
		s.noListener, refused, zero)}
}

// tryOverlay runs this program under s in a folder with a layer, which it writes
// to. It returns why that cannot be done; empty: it can.
func tryOverlay(ctx context.Context, s starter) string {
	c, ok := s.(*confiner)
	if !ok || !c.namespaces {
		return noNamespaces
	}
	if err := c.tryOverlay(ctx); err != nil {
		c.overlay = "no overlay in memory: " + err.Error()
	}
	return c.overlay
}

func (s *confiner) tryOverlay(ctx context.Context) error {
	folder, err := temp.New("")
	if err != nil {
		return err
	}
	defer func() { _ = folder.Remove() }()
	dir, err := filepath.EvalSymlinks(folder.Path)
	if err != nil {
		return err
	}
	if err := confine.PrepareLayer(dir); err != nil {
		return err
	}
	policy := sandbox.Policy{Layers: []sandbox.Layer{{Folder: dir, Kind: sandbox.LayerOverlay}}}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	one := &layer{Layer: policy.Layers[0], info: info}
	l := &layers{all: []*layer{one}}
	defer func() {
		if one.dir != nil {
			_ = one.dir.Close()
		}
	}()
	if err := s.try(ctx, policy, l, []string{confine.CheckLayer, dir}); err != nil {
		return err
	}
	return confine.InspectLayer(dir, one.dir)
}

// tryLoopback runs this program under s with a network of its own, which it
// uses.
func tryLoopback(ctx context.Context, s starter) error {
	c, ok := s.(*confiner)
	if !ok {
		return nil
	}
	return c.try(ctx, sandbox.Policy{Network: sandbox.NetworkLoopback}, nil, []string{confine.CheckLoopback})
}

func (s *confiner) try(ctx context.Context, policy sandbox.Policy, layers *layers, checks []string) error {
	exe, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	tmp := s.tempDir()
	if tmp == "" {
		folder, err := temp.New("")
		if err != nil {
			return err
		}
		tmp = folder.Path
		defer func() { _ = folder.Remove() }()
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	policy.ReadOnly, policy.Limits = append(policy.ReadOnly, exe), sandbox.DefaultLimits()
	p, err := s.start(&launch{
		policy:  policy,
		layers:  layers,
		command: &sandbox.Command{Program: program.Program{Name: "packs-mcp", Path: exe, Resolved: exe}, Dir: "/"},
		argv:    append([]string{exe, confine.CheckArg}, checks...),
		env:     []string{"TMPDIR=" + tmp, "GORACE=atexit_sleep_ms=0"}, tmp: tmp, stdout: w, stderr: w,
	})
	_ = w.Close()
	if err != nil {
		return err
	}
	late := false
	select {
	case <-p.ended():
	case <-ctx.Done():
		late = true
	case <-time.After(tryTime):
		late = true
	}
	end := p.reap()
	text, _ := io.ReadAll(io.LimitReader(r, 1<<10))
	switch {
	case end.err != nil:
		if ce, ok := errors.AsType[*sandbox.ConfineError](end.err); ok {
			return ce
		}
		return end.err
	case late:
		return fmt.Errorf("a trial run did not end within %v", tryTime)
	case end.code != 0 && len(text) > 0:
		return fmt.Errorf("a trial run was not confined as it should be: %s", strings.TrimSpace(string(text)))
	case end.code != 0:
		return fmt.Errorf("a trial run ended with status %d %s", end.code, end.signal)
	}
	return nil
}
