//go:build linux && (amd64 || arm64)

package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/groups"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/probe"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/disk"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/supervised"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
)

// A confiner starts programs by a helper (package confine), confined by
// namespaces, by Landlock, or by both, and always by seccomp.
type confiner struct {
	level      sandbox.Level
	namespaces bool
	landlock   int // the kernel's ABI; 0: not used

	noListener error // why the filter cannot ask the helper; nil: it can. Set by Try.
	// overlay is why there are no layers in memory; empty: there are. Set by Find.
	overlay string

	etc    publicRules
	spares spares
	mounts mounts
}

func (s *confiner) TempDir() string {
	if s.namespaces {
		return "/tmp"
	}
	return ""
}

func (s *confiner) Places() bool { return s.namespaces }

func (s *confiner) Close() {
	s.spares.close()
	s.mounts.close()
	if !s.namespaces {
		adoptOrphans(false)
	}
}

func (s *confiner) Start(l *level.Launch) (level.Process, error) {
	if !s.namespaces {
		adoptOrphans(true)
	}
	job, err := s.job(l)
	if err != nil {
		return nil, err
	}
	message := job.Message()
	if message == nil {
		return nil, level.TooLarge(l.Argv, l.Env)
	}
	h, err := s.tell(job.Group, message, l)
	if err != nil {
		return nil, &sandbox.ConfineError{Level: s.level, Step: "starting the helper", Err: err}
	}
	p := &confined{helper: h, spares: &s.spares, level: s.level, launch: l, namespaces: s.namespaces, done: make(chan struct{})}
	s.spares.refill(p.done)
	go func() {
		p.report, _ = h.socket.Answer() // on an error, how the run ended is unknown
		close(p.done)
	}()
	return p, nil
}

// tell gives a helper its job. If the idle helper was killed meanwhile, it starts
// another.
func (s *confiner) tell(group string, message []byte, l *level.Launch) (*helper, error) {
	for attempt := 0; ; attempt++ {
		h, err := s.spares.take()
		if err != nil {
			return nil, err
		}
		h.group = group
		h.socket.Listener = l.Listener
		err = h.socket.Send(message, l)
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

// A confined is a program that a helper supervises.
type confined struct {
	helper *helper
	spares *spares
	level  sandbox.Level
	launch *level.Launch

	namespaces bool // the run ends with its init, which ends with the helper

	done chan struct{} // closed by the goroutine that reads the answer

	late   *time.Timer     // kills a helper that does not obey
	report *confine.Report // set when done is closed; nil: the helper sent none
}

func (p *confined) Ended() <-chan struct{} { return p.done }
func (p *confined) Hidden() int64          { return disk.HiddenBelow(p.helper.cmd.Process.Pid, false) }
func (p *confined) Terminate()             { p.helper.socket.Order(confine.OrderTerminate) }

// obeyTime bounds how long a helper may take to kill a run. After that, the helper is
// killed: its run ends with it, or the run's processes become our children.
const obeyTime = 5 * time.Second

func (p *confined) Kill() {
	p.helper.socket.Order(confine.OrderKill)
	if p.late == nil {
		p.late = time.AfterFunc(obeyTime, func() { _ = p.helper.cmd.Process.Kill() })
	}
}

func (p *confined) Reap() level.Ending {
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
		<-p.done // nothing more comes from a closed socket
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
		return level.Ending{Code: -1, Signal: "SIGKILL", Lost: true, Overlays: p.helper.socket.Layers}
	}
	if p.report.Failed {
		return level.Ending{Code: -1, Err: supervised.Failure(p.report, p.level, p.launch), Overlays: p.helper.socket.Layers}
	}
	e := supervised.Ending(p.report)
	e.Overlays = p.helper.socket.Layers
	return e
}

// System is Linux. Its levels need a kernel for amd64 or arm64.
type System struct{}

// Candidates are the ways to confine a program on Linux.
func (System) Candidates(*slog.Logger) []level.Candidate {
	abi := supervised.LandlockABI()
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
			// Only this keeps root's programs from files that only root may read.
			return []level.Candidate{{Level: sandbox.LevelFull, Err: missing}, {Level: sandbox.LevelPartial, Err: missing}}
		}
		return []level.Candidate{
			{Level: sandbox.LevelFull, Err: missing},
			{Level: sandbox.LevelPartial, Confiner: &confiner{level: sandbox.LevelPartial, namespaces: true}, Network: true, Means: []string{spaces, "seccomp"},
				Gaps: append(sockets, "no Landlock: the mounts alone keep the program to its folders")},
		}
	}
	return []level.Candidate{
		{Level: sandbox.LevelFull, Confiner: &confiner{level: sandbox.LevelFull, namespaces: true, landlock: abi}, Network: true, Means: []string{spaces, landlock, "seccomp"}, Gaps: sockets},
		{Level: sandbox.LevelPartial, Confiner: &confiner{level: sandbox.LevelPartial, landlock: abi}, Network: true, Means: []string{landlock, "seccomp", "a supervisor"}, Gaps: alone},
	}
}

// Sweep removes what killed helpers left in the system.
func (System) Sweep() {
	groups.Sweep()
}

// tryTime bounds a trial: it takes some milliseconds.
const tryTime = 10 * time.Second

// Try runs this program itself under s. It attempts what must fail, and reports what
// succeeded. If the filter cannot ask the helper here, s uses a filter that asks
// nothing from then on.
func (s *confiner) Try(ctx context.Context) error {
	var checks []string
	if s.namespaces {
		checks = append(checks, probe.Namespaces)
	}
	if s.landlock > 0 {
		checks = append(checks, probe.Landlock)
	}
	_, err := s.try(ctx, sandbox.Policy{}, nil, checks)
	if ce, ok := errors.AsType[*sandbox.ConfineError](err); ok && ce.Step == confine.StepListen {
		s.noListener = ce.Err
		_, err = s.try(ctx, sandbox.Policy{}, nil, checks)
	}
	if ce, ok := errors.AsType[*sandbox.ConfineError](err); ok {
		return fmt.Errorf("%s: %w", ce.Step, ce.Err)
	}
	return err
}

// Find returns what s does not cover, and whether a network of its own and overlays
// work.
func (s *confiner) Find(ctx context.Context) level.Findings {
	f := level.Findings{Gaps: s.gaps(), Overlay: level.NoNamespaces}
	if s.namespaces {
		f.Loopback = s.tryLoopback(ctx) == nil
		if err := s.tryOverlay(ctx); err != nil {
			s.overlay = "no overlay in memory: " + err.Error()
		}
		f.Overlay = s.overlay
	}
	return f
}

// Bound finds out whether a run can be in a control group with t.
func (s *confiner) Bound(ctx context.Context, t sandbox.Together) error {
	_, err := s.try(ctx, sandbox.Policy{Together: t}, nil, nil)
	if ce, ok := errors.AsType[*sandbox.ConfineError](err); ok {
		return ce.Err
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
// to.
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
	if err := probe.PrepareLayer(dir); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	policy := sandbox.Policy{Layers: []sandbox.Layer{{Folder: dir, Kind: sandbox.LayerOverlay}}}
	changed, err := s.try(ctx, policy, []level.Folder{{Path: dir, Info: info}}, []string{probe.Layer, dir})
	if err != nil {
		return err
	}
	defer closeAll(changed)
	if len(changed) != 1 {
		return errors.New("the helper did not hand over what was written")
	}
	return probe.InspectLayer(dir, changed[0])
}

// tryLoopback runs this program under s with its own network, which the program uses.
func (s *confiner) tryLoopback(ctx context.Context) error {
	_, err := s.try(ctx, sandbox.Policy{Network: sandbox.NetworkLoopback}, nil, []string{probe.Loopback})
	return err
}

// try runs this program's own checks. It returns the overlays' upper folders, for the
// caller to close; with an error, none.
func (s *confiner) try(ctx context.Context, policy sandbox.Policy, overlays []level.Folder, checks []string) (changed []*os.File, err error) {
	exe, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	tmp := s.TempDir()
	if tmp == "" {
		folder, err := temp.New("")
		if err != nil {
			return nil, err
		}
		tmp = folder.Path
		defer func() { _ = folder.Remove() }()
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	policy.ReadOnly, policy.Limits = append(policy.ReadOnly, exe), sandbox.DefaultLimits()
	p, err := s.Start(&level.Launch{
		Policy:   policy,
		Overlays: overlays,
		Command:  &sandbox.Command{Program: program.Program{Name: "packs-mcp", Path: exe, Resolved: exe}, Dir: "/"},
		Argv:     append([]string{exe, confine.CheckArg}, checks...),
		Env:      []string{"TMPDIR=" + tmp, "GORACE=atexit_sleep_ms=0"}, Tmp: tmp, Stdout: w, Stderr: w,
	})
	_ = w.Close()
	if err != nil {
		return nil, err
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
	defer func() {
		if err != nil {
			closeAll(end.Overlays)
		}
	}()
	text, _ := io.ReadAll(io.LimitReader(r, 1<<10))
	switch {
	case end.Err != nil:
		if ce, ok := errors.AsType[*sandbox.ConfineError](end.Err); ok {
			return nil, ce
		}
		return nil, end.Err
	case late:
		return nil, fmt.Errorf("a trial run did not end within %v", tryTime)
	case end.Code != 0 && len(text) > 0:
		return nil, fmt.Errorf("a trial run was not confined as it should be: %s", strings.TrimSpace(string(text)))
	case end.Code != 0:
		return nil, fmt.Errorf("a trial run ended with status %d %s", end.Code, end.Signal)
	}
	return end.Overlays, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
