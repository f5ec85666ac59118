package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
)

// What is here, and in the other files for Windows, was never run on Windows by
// those who wrote it: it is compiled and vetted, its portable parts (package
// winjob) are tested, and jobs, handles and command lines were tried under Wine,
// which knows no integrity. That is why the probe, which runs wherever somebody
// has a Windows, does what must fail, and believes nothing else.
//
// A run at [sandbox.LevelPartial] is born into a job object of its own, which nothing
// that it starts can leave, and which is killed when this process closes it or
// ends. It has a restricted token of low integrity: it can write only to the
// Policy's Writable folders, which are labelled for it while it runs, and it can
// neither read nor change other processes. What that does not cover is in
// [winjob.Gaps], the network and reading above all.

// candidates are the same level twice: inside another job object, Windows
// refuses the restrictions of the user interface.
func candidates(o Options) []candidate {
	labels, err := newLabeler(o.Logger)
	if err != nil {
		return []candidate{{level: sandbox.LevelPartial, err: err}}
	}
	if err := shieldServer(); err != nil {
		o.Logger.Warn("programs of low integrity may be able to end this server", "err", err)
	}
	means := []string{"job object", "restricted token", "low integrity"}
	return []candidate{
		{
			level: sandbox.LevelPartial, starter: &jobStarter{labels: labels, ui: true},
			means: append([]string{"user interface limits"}, means...), gaps: winjob.Gaps(true),
		},
		{level: sandbox.LevelPartial, starter: &jobStarter{labels: labels}, means: means, gaps: winjob.Gaps(false)},
	}
}

// A jobStarter starts programs in a job object, with a token of low integrity.
type jobStarter struct {
	labels *labeler
	ui     bool // with restrictions of the user interface
}

// tempDir is empty: a folder of the run's own is labelled like the others.
func (*jobStarter) tempDir() string { return "" }

func (*jobStarter) shows(*sandbox.Policy, *sandbox.Command, images) bool { return false }

func (*jobStarter) places() bool { return false }

func (*jobStarter) overlays(string, sandbox.Look) (sandbox.Look, string) {
	return sandbox.Look{}, noNamespaces
}

// close has nothing to give back: each run has a job and a token of its own.
func (*jobStarter) close() {}

func (s *jobStarter) start(l *launch) (process, error) {
	if err := checkText(l); err != nil {
		return nil, err
	}
	fail := func(step string, err error) (process, error) {
		return nil, &sandbox.ConfineError{Level: sandbox.LevelPartial, Step: step, Err: err}
	}
	token, err := lowToken()
	if err != nil {
		return fail("making a restricted token", err)
	}
	defer token.Close()
	j, err := newJob(winjob.NewJob(winjob.Limits{
		CPU: l.policy.Limits.CPU, Memory: l.policy.Limits.Memory, Processes: l.policy.Limits.Processes,
	}), s.ui)
	if err != nil {
		return fail("making a job object", err)
	}
	release, err := s.labels.take(l.policy.Writable)
	if err != nil {
		j.close()
		return fail("labelling the run's folders", err)
	}
	// The temporary folder is removed after the run, with its label.
	if err = s.labels.lower(l.tmp); err != nil {
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

// A jobProcess is a program with all that it started.
type jobProcess struct {
	job     *job
	handle  windows.Handle // of the program; the goroutine that closes exited uses it, too
	exited  chan struct{}
	release func() // gives the folders back
	labels  *labeler
	killed  bool
}

func (p *jobProcess) hidden() int64 { return 0 }

func (p *jobProcess) ended() <-chan struct{} { return p.exited }

// terminate kills at once: Windows has no signal that asks.
func (p *jobProcess) terminate() { p.kill() }

func (p *jobProcess) kill() {
	p.killed = true
	p.job.kill()
}

func (p *jobProcess) reap() ending {
	e := ending{code: -1}
	var code uint32
	if err := windows.GetExitCodeProcess(p.handle, &code); err != nil {
		e.err = fmt.Errorf("asking how the program ended: %w", err)
	}
	p.job.kill() // what is left
	used, err := p.job.awaitEmpty()
	if err != nil {
		p.labels.log.Warn("processes of a run are left, and cannot be waited for", "err", err)
	}
	e.usage = sandbox.Usage{CPU: winjob.Ticks(used.TotalUserTime + used.TotalKernelTime), MaxRSS: p.job.peakMemory()}
	switch {
	case e.err != nil:
	case p.killed && code == winjob.KillCode:
		e.signal = "SIGKILL" // the same word as elsewhere
	case p.job.limits.OutOfTime(code, used.TotalUserTime):
		e.signal, e.cause = "SIGKILL", sandbox.CauseCPULimit
	default:
		e.code = int(code)
	}
	_ = windows.CloseHandle(p.handle)
	p.job.close()
	p.release()
	return e
}

// tryWait is how long the probe's program may take: a virus scanner may look at
// it first.
const tryWait = 10 * time.Second

// try runs this program itself at the level of s, as [confine.CheckArg].
func try(ctx context.Context, s starter) error {
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
	p, err := s.start(&launch{
		policy:  sandbox.Policy{Limits: sandbox.DefaultLimits()},
		command: &sandbox.Command{Program: program.Program{Name: filepath.Base(exe), Path: exe}, Dir: inside},
		argv:    []string{exe, confine.CheckArg, inside, outside},
		env:     sandbox.MergeEnv(sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{}), []string{"TMP=" + inside, "TEMP=" + inside}),
		tmp:     inside, stdout: w, stderr: w,
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
	case <-p.ended():
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = fmt.Errorf("the probe's program did not end within %v", tryWait)
	}
	if err != nil {
		p.kill()
		<-p.ended()
	}
	e := p.reap()
	var text string
	select {
	case text = <-said:
	case <-time.After(time.Second): // something is left that holds the other end
	}
	switch {
	case err != nil:
		return err
	case e.err != nil:
		return e.err
	case e.code != 0 && text != "":
		return errors.New(text)
	case e.code != 0:
		return fmt.Errorf("the probe's program ended with %#x", e.code)
	}
	return nil
}

// hint has nothing to say when there is a level: Windows has no better one.
func hint(r *sandbox.Report) string {
	if r.Level != sandbox.LevelNone {
		return ""
	}
	for _, t := range r.Trials {
		if t.Problem != "" && t.Problem != errSkipped.Error() {
			return winjob.Hint(server())
		}
	}
	return ""
}

// tryOverlay has nothing to try: no level mounts anything here.
func tryOverlay(context.Context, starter) string { return noNamespaces }

// tryLoopback has nothing to try: no level has such a network here.
func tryLoopback(context.Context, starter) error { return nil }
