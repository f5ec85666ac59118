package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/seatbelt"
)

// This file was compiled and vetted by those who wrote it, who have no macOS to
// run it on; the portable parts, in package seatbelt, are tested. That is why
// the probe, which runs wherever somebody has one, does what must fail, and
// believes nothing else.

// A seatbeltStarter starts programs under sandbox-exec.
type seatbeltStarter struct {
	hardLinks bool // see seatbelt.Rules
}

func (*seatbeltStarter) tempDir() string { return "" }

func (*seatbeltStarter) shows(*sandbox.Policy, *sandbox.Command, images) bool { return false }

func (*seatbeltStarter) places() bool { return false }

func (*seatbeltStarter) overlays(string, sandbox.Look) (sandbox.Look, string) {
	return sandbox.Look{}, noNamespaces
}

func (*seatbeltStarter) close() {}

func (s *seatbeltStarter) start(l *launch) (process, error) {
	fail := func(step string, err error) (process, error) {
		return nil, &sandbox.ConfineError{Level: sandbox.LevelFull, Step: step, Err: err}
	}
	c := l.command
	if l.policy.Network == sandbox.NetworkLoopback {
		return fail("giving the program a loopback network of its own", errors.New("this system has none; use the network \"none\" or \"full\""))
	}
	self, err := selfPath()
	if err != nil {
		return fail("finding this program", err)
	}
	rules, err := s.rules(l, self)
	if err != nil {
		return nil, err
	}
	if dir, err := seatbelt.RealPath(c.Dir); err != nil {
		return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: err}
	} else if dir != "/" && !paths.Inside(slices.Concat(rules.System, rules.Read, rules.Write), dir) {
		return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q is in none of the folders that the run may read", c.Dir)}
	}
	profile, err := rules.Profile()
	if err != nil {
		return fail("writing the profile", err)
	}
	limits := l.policy.Limits
	order := &seatbelt.Order{
		Profile: profile, Argv: byteStrings(l.argv), Env: byteStrings(l.env),
		Dir: []byte(c.Dir), Mark: []byte("TMPDIR=" + l.tmp),
		Limits: seatbelt.Limits{
			CPU: int64((limits.CPU + time.Second - 1) / time.Second), FileSize: limits.FileSize,
			OpenFiles: limits.OpenFiles, Processes: limits.Processes,
		},
	}
	if c.DirID != nil {
		order.DirID = seatbelt.IDOf(c.DirID)
	}
	p, err := seatbelt.Start(seatbelt.Launch{Self: self, Arg: confine.Arg, Stdin: l.stdin, Stdout: l.stdout, Stderr: l.stderr}, order)
	if err != nil {
		return fail(string(seatbelt.StepHelper), err)
	}
	return &seatbeltProcess{p, l}, nil
}

// rules says what the program of l may touch. Besides what it is given, it may
// read this program, which it is for a moment.
func (s *seatbeltStarter) rules(l *launch, self string) (seatbelt.Rules, error) {
	r := seatbelt.Rules{HardLinks: s.hardLinks, Network: l.policy.Network == sandbox.NetworkFull, Read: []string{self}}
	name := func(links []paths.Link) {
		for _, link := range links {
			if dir, err := seatbelt.RealPath(filepath.Dir(link.Path)); err == nil {
				r.Names = appendNew(r.Names, filepath.Join(dir, filepath.Base(link.Path)))
			}
		}
	}
	// add adds what is at path to list, and the links that lead there.
	add := func(list *[]string, path string, optional bool) error {
		_, links := paths.Trail(path)
		name(links)
		resolved, err := seatbelt.RealPath(path)
		switch {
		case err == nil:
			*list = appendNew(*list, resolved)
		case !optional:
			return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("folder %q", path), Err: err}
		}
		return nil
	}
	for _, f := range []struct {
		list     *[]string
		paths    []string
		optional bool
	}{
		{&r.System, paths.SystemDirs(), true},
		{&r.Read, l.command.Program.Needs, true},
		{&r.Read, l.policy.ReadOnly, false},
		{&r.Write, l.policy.Writable, false},
		{&r.Write, []string{l.tmp}, false},
	} {
		for _, path := range f.paths {
			if err := add(f.list, path, f.optional); err != nil {
				return r, err
			}
		}
	}
	name(l.command.Program.Links)
	return r, nil
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func byteStrings(list []string) [][]byte {
	var all [][]byte
	for _, s := range list {
		all = append(all, []byte(s))
	}
	return all
}

// selfPath returns the path of this program as the kernel spells it.
func selfPath() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	return seatbelt.RealPath(exe)
}

// A seatbeltProcess is a program under sandbox-exec, with its supervisor.
type seatbeltProcess struct {
	*seatbelt.Process
	launch *launch
}

func (p *seatbeltProcess) hidden() int64 { return 0 }

func (p *seatbeltProcess) ended() <-chan struct{} { return p.Ended() }
func (p *seatbeltProcess) terminate()             { p.Terminate() }
func (p *seatbeltProcess) kill()                  { p.Kill() }

func (p *seatbeltProcess) reap() ending {
	r := p.Reap()
	if r.Failure != nil {
		return p.failure(r.Failure)
	}
	e := ending{code: r.ExitCode, usage: sandbox.Usage{CPU: r.CPU, MaxRSS: r.MaxRSS}}
	if r.Signal != 0 {
		e.code, e.signal = -1, signalName(syscall.Signal(r.Signal))
	}
	switch {
	case r.TooMany:
		e.cause = sandbox.CauseProcessLimit
	case r.Signal == int(unix.SIGXCPU):
		e.cause = sandbox.CauseCPULimit
	case r.Signal == int(unix.SIGXFSZ):
		e.cause = sandbox.CauseFileSizeLimit
	}
	return e
}

// failure sorts out why nothing is known of a program.
func (p *seatbeltProcess) failure(f *seatbelt.Failure) ending {
	c, errno := p.launch.command, syscall.Errno(f.Errno)
	e := ending{code: -1}
	switch {
	case f.Step == seatbelt.StepWatch:
		// Only somebody outside of the run can have killed the supervisor; with
		// it, the run ended.
		e.signal = "SIGKILL"
	case errno == syscall.E2BIG:
		e.err = &sandbox.TooLargeError{What: allStrings, Size: spaceOf(p.launch.argv, p.launch.env)}
	case f.Step == seatbelt.StepExec:
		e.err = &sandbox.StartError{Program: c.Program, Err: errno}
	case f.Step == seatbelt.StepChdir && errno == syscall.ESTALE:
		e.err = &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q is not the folder it was", c.Dir)}
	case f.Step == seatbelt.StepChdir:
		e.err = &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: errno}
	default:
		e.err = &sandbox.ConfineError{Level: sandbox.LevelFull, Step: string(f.Step), Err: errors.New(f.Text)}
	}
	return e
}

// candidates are the same level twice: whether hard links can be kept to the
// folders that a run may change is tried, and without that there are none.
func candidates(Options) []candidate {
	means := []string{"Seatbelt (sandbox-exec)", "a supervisor"}
	return []candidate{
		{level: sandbox.LevelFull, starter: &seatbeltStarter{hardLinks: true}, network: true, means: means, gaps: seatbelt.Gaps(true)},
		{level: sandbox.LevelFull, starter: &seatbeltStarter{}, network: true, means: means, gaps: seatbelt.Gaps(false)},
	}
}

// errNested is why there is no level when this process is confined itself:
// Seatbelt does not confine twice.
var errNested = errors.New("this server itself already runs in a sandbox, and this system has only one at a time")

// tryTime bounds a trial: it takes some tens of milliseconds.
const tryTime = 10 * time.Second

// try runs this program itself under s, which looks around and says what is
// amiss.
func try(ctx context.Context, s starter) error {
	c, ok := s.(*seatbeltStarter)
	if !ok {
		return nil
	}
	err := c.try(ctx)
	if err == nil {
		return nil
	}
	// A profile that allows everything can only be refused for being one.
	all := exec.CommandContext(ctx, seatbelt.SandboxExec, "-p", "(version 1)(allow default)", "/usr/bin/true")
	all.Env, all.SysProcAttr = []string{}, sysProcAttr()
	switch text, allErr := all.CombinedOutput(); {
	case allErr == nil:
		return err
	case errors.Is(allErr, fs.ErrNotExist):
		return fmt.Errorf("%s is not there", seatbelt.SandboxExec)
	case strings.Contains(string(text), "Operation not permitted"):
		return errNested
	}
	return err
}

func (s *seatbeltStarter) try(ctx context.Context) error {
	self, err := selfPath()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "packs-run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	scene, err := seatbelt.NewScene(dir)
	if err != nil {
		return err
	}
	port, done, err := seatbelt.Listen()
	if err != nil {
		return err
	}
	defer done()
	scene.Port, scene.HardLinks = port, s.hardLinks
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	limits := sandbox.DefaultLimits()
	p, err := s.start(&launch{
		policy:  sandbox.Policy{ReadOnly: []string{scene.Pack}, Writable: []string{scene.Inside}, Limits: limits},
		command: &sandbox.Command{Program: program.Program{Name: "packs-mcp", Path: self, Resolved: self}, Dir: "/"},
		argv:    append([]string{self, confine.CheckArg}, scene.Args()...),
		env:     []string{"TMPDIR=" + scene.Inside}, tmp: scene.Inside, stdout: w, stderr: w,
	})
	_ = w.Close()
	if err != nil {
		return err
	}
	select {
	case <-p.ended():
	case <-ctx.Done():
		p.kill()
	case <-time.After(tryTime):
		p.kill()
	}
	end := p.reap()
	text, _ := io.ReadAll(io.LimitReader(r, 1<<10))
	switch {
	case end.err != nil:
		if ce, ok := errors.AsType[*sandbox.ConfineError](end.err); ok {
			return fmt.Errorf("%s: %w", ce.Step, ce.Err)
		}
		return end.err
	case end.signal != "":
		return fmt.Errorf("a trial run was ended by %s", end.signal)
	case end.code != 0:
		return fmt.Errorf("a trial run was not confined as it should be: %s", strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; "))
	}
	return nil
}

// hint says what would give this machine a better level, or is empty.
func hint(r *sandbox.Report) string {
	if r.Level == sandbox.LevelFull {
		return ""
	}
	for _, trial := range r.Trials {
		if trial.Problem == errNested.Error() {
			return seatbelt.NestedHint
		}
	}
	return ""
}

// tryOverlay has nothing to try: no level mounts anything here.
func tryOverlay(context.Context, starter) string { return noNamespaces }

// tryLoopback has nothing to try: no level has such a network here.
func tryLoopback(context.Context, starter) error { return nil }
