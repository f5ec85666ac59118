//go:build windows

package windows

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

	"golang.org/x/sys/windows"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
)

// The authors never ran this package on Windows. It is compiled and vetted, its
// portable parts (package winjob) are tested, and jobs, handles and command lines were
// tried under Wine, which has no integrity levels. That is why the probe trusts
// nothing: on the user's machine, it tries what must fail.
//
// A run at [sandbox.LevelPartial] starts in a job object of its own. None of its processes can
// leave the job, and it is killed when this process closes it or ends. It has a restricted token of
// low integrity: it can write only to the Policy's Writable folders, which are labelled for it
// while it runs, and it can neither read nor change other processes. [winjob.Gaps] lists what is
// not covered, above all the network and reading files.

// System is Windows.
type System struct{}

// Candidates returns the same level twice: inside another job object, Windows refuses
// restrictions of the user interface.
func (System) Candidates(log *slog.Logger) []level.Candidate {
	labels, err := newLabeler(log)
	if err != nil {
		return []level.Candidate{{Level: sandbox.LevelPartial, Err: err}}
	}
	if err := shieldServer(); err != nil {
		log.Warn("programs of low integrity may be able to end this server", "err", err)
	}
	means := []string{"job object", "restricted token", "low integrity"}
	return []level.Candidate{
		{
			Level: sandbox.LevelPartial, Confiner: &jobStarter{labels: labels, ui: true},
			Means: append([]string{"user interface limits"}, means...), Gaps: winjob.Gaps(true),
		},
		{Level: sandbox.LevelPartial, Confiner: &jobStarter{labels: labels}, Means: means, Gaps: winjob.Gaps(false)},
	}
}

// A jobStarter starts programs in a job object, with a token of low integrity.
type jobStarter struct {
	labels *labeler
	ui     bool // with restrictions of the user interface
}

// TempDir returns an empty path: the runner's folder is labelled like the others.
func (*jobStarter) TempDir() string { return "" }

func (*jobStarter) Places() bool { return false }

func (*jobStarter) Overlays(string, sandbox.Look) (sandbox.Look, string) {
	return sandbox.Look{}, level.NoNamespaces
}

// Close does nothing: each run has a job and a token of its own.
func (*jobStarter) Close() {}

func (s *jobStarter) Start(l *level.Launch) (level.Process, error) {
	if err := checkText(l); err != nil {
		return nil, err
	}
	fail := func(step string, err error) (level.Process, error) {
		return nil, &sandbox.ConfineError{Level: sandbox.LevelPartial, Step: step, Err: err}
	}
	token, err := lowToken()
	if err != nil {
		return fail("making a restricted token", err)
	}
	defer token.Close()
	j, err := newJob(winjob.NewJob(winjob.Limits{
		CPU: l.Policy.Limits.CPU, Memory: l.Policy.Limits.Memory, Processes: l.Policy.Limits.Processes,
	}), s.ui)
	if err != nil {
		return fail("making a job object", err)
	}
	release, err := s.labels.take(l.Policy.Writable)
	if err != nil {
		j.close()
		return fail("labelling the run's folders", err)
	}
	// The temporary folder is removed after the run, with its label.
	if err = s.labels.lower(l.Tmp); err != nil {
		err = &sandbox.ConfineError{Level: sandbox.LevelPartial, Step: "labelling the run's temporary folder", Err: err}
	}
	var handle windows.Handle
	if err == nil {
		handle, err = j.create(l, token)
	}
	if err != nil {
		j.close()
		release()
		return nil, err
	}
	p := &jobProcess{job: j, handle: handle, exited: make(chan struct{}), release: release, labels: s.labels}
	go func() {
		_, _ = windows.WaitForSingleObject(handle, windows.INFINITE)
		close(p.exited)
	}()
	return p, nil
}

// A jobProcess is a program with everything that it started.
type jobProcess struct {
	job     *job
	handle  windows.Handle // of the program; the goroutine that closes exited uses it, too
	exited  chan struct{}
	release func() // gives the folders back
	labels  *labeler
	killed  bool
}

func (p *jobProcess) Hidden() int64 { return 0 }

func (p *jobProcess) Ended() <-chan struct{} { return p.exited }

// Terminate kills at once: Windows has no signal that asks.
func (p *jobProcess) Terminate() { p.Kill() }

func (p *jobProcess) Kill() {
	p.killed = true
	p.job.kill()
}

func (p *jobProcess) Reap() level.Ending {
	e := level.Ending{Code: -1}
	var code uint32
	if err := windows.GetExitCodeProcess(p.handle, &code); err != nil {
		e.Err = fmt.Errorf("asking how the program ended: %w", err)
	}
	p.job.kill() // what is left
	used, err := p.job.awaitEmpty()
	if err != nil {
		p.labels.log.Warn("processes of a run are left, and cannot be waited for", "err", err)
	}
	e.Usage = sandbox.Usage{CPU: winjob.Ticks(used.TotalUserTime + used.TotalKernelTime), MaxRSS: p.job.peakMemory()}
	switch {
	case e.Err != nil:
	case p.killed && code == winjob.KillCode:
		e.Signal = "SIGKILL" // as on other systems
	case p.job.limits.OutOfTime(code, used.TotalUserTime):
		e.Signal, e.Cause = "SIGKILL", sandbox.CauseCPULimit
	default:
		e.Code = int(code)
	}
	_ = windows.CloseHandle(p.handle)
	p.job.close()
	p.release()
	return e
}

// tryWait is how long the probe's program may take. A virus scanner may check it
// first.
const tryWait = 10 * time.Second

// Try runs this program itself at the level of s, with [confine.CheckArg].
func (s *jobStarter) Try(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "packs-probe-")
	if err != nil {
		return fmt.Errorf("making a folder for the probe: %w", err)
	}
	defer os.RemoveAll(dir)
	inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "outside")
	for _, d := range []string{inside, outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return fmt.Errorf("making a folder for the probe: %w", err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	p, err := s.Start(&level.Launch{
		Policy:  sandbox.Policy{Limits: sandbox.DefaultLimits()},
		Command: &sandbox.Command{Program: program.Program{Name: filepath.Base(exe), Path: exe}, Dir: inside},
		Argv:    []string{exe, confine.CheckArg, inside, outside},
		Env:     sandbox.MergeEnv(sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{}), []string{"TMP=" + inside, "TEMP=" + inside}),
		Tmp:     inside, Stdout: w, Stderr: w,
	})
	_ = w.Close()
	if err != nil {
		return err
	}
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(r, 4<<10))
		said <- strings.TrimSpace(string(text))
	}()
	late := time.NewTimer(tryWait)
	defer late.Stop()
	select {
	case <-p.Ended():
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = fmt.Errorf("the probe's program did not end within %v", tryWait)
	}
	if err != nil {
		p.Kill()
		<-p.Ended()
	}
	e := p.Reap()
	var text string
	select {
	case text = <-said:
	case <-time.After(time.Second): // a remaining process holds the pipe open
	}
	switch {
	case err != nil:
		return err
	case e.Err != nil:
		return e.Err
	case e.Code != 0 && text != "":
		return errors.New(text)
	case e.Code != 0:
		return fmt.Errorf("the probe's program ended with %#x", e.Code)
	}
	return nil
}

// Bound returns [level.ErrNoGroups].
func (*jobStarter) Bound(context.Context, sandbox.Together) error { return level.ErrNoGroups }

// Find has nothing to try: no level here mounts anything or has its own network.
func (*jobStarter) Find(context.Context) level.Findings {
	return level.Findings{Overlay: level.NoNamespaces}
}

// Sweep does nothing, since runs leave nothing behind on Windows.
func (System) Sweep() {}

// Hint is empty if there is a level: Windows has no better one.
func (System) Hint(r *sandbox.Report) string {
	if r.Level != sandbox.LevelNone {
		return ""
	}
	for _, t := range r.Trials {
		if t.Problem != "" && t.Problem != level.ErrSkipped.Error() {
			return winjob.Hint(server())
		}
	}
	return ""
}
