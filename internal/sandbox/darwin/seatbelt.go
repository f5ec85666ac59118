//go:build darwin

package darwin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
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
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/seatbelt"
)

// This file was compiled and vetted, but its authors had no macOS to run it on. The
// portable parts, in package seatbelt, are tested. That is why the probe trusts
// nothing: on the user's machine, it tries what must fail.

// A seatbeltStarter starts programs under sandbox-exec.
type seatbeltStarter struct {
	hardLinks bool // see seatbelt.Rules
}

func (*seatbeltStarter) TempDir() string { return "" }

func (*seatbeltStarter) Places() bool { return false }

func (*seatbeltStarter) Overlays(string, sandbox.Look) (sandbox.Look, string) {
	return sandbox.Look{}, level.NoNamespaces
}

func (*seatbeltStarter) Close() {}

func (s *seatbeltStarter) Start(l *level.Launch) (level.Process, error) {
	fail := func(step string, err error) (level.Process, error) {
		return nil, &sandbox.ConfineError{Level: sandbox.LevelFull, Step: step, Err: err}
	}
	c := l.Command
	if l.Policy.Network.OwnLoopback() {
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
	limits := l.Policy.Limits
	order := &seatbelt.Order{
		Profile: profile, Argv: byteStrings(l.Argv), Env: byteStrings(l.Env),
		Dir: []byte(c.Dir), Mark: []byte("TMPDIR=" + l.Tmp),
		Limits: seatbelt.Limits{
			CPU: int64((limits.CPU + time.Second - 1) / time.Second), FileSize: limits.FileSize,
			OpenFiles: limits.OpenFiles, Processes: limits.Processes,
		},
	}
	if c.DirID != nil {
		order.DirID = seatbelt.IDOf(c.DirID)
	}
	p, err := seatbelt.Start(seatbelt.Launch{Self: self, Arg: confine.Arg, Stdin: l.Stdin, Stdout: l.Stdout, Stderr: l.Stderr}, order)
	if err != nil {
		return fail(string(seatbelt.StepHelper), err)
	}
	return &seatbeltProcess{p, l}, nil
}

// rules returns what the program of l may touch. That includes reading this program's
// file, since the process is this program for a moment.
func (s *seatbeltStarter) rules(l *level.Launch, self string) (seatbelt.Rules, error) {
	r := seatbelt.Rules{HardLinks: s.hardLinks, Network: l.Policy.Network == sandbox.NetworkFull, Read: []string{self}}
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
		{&r.Read, l.Command.Program.Needs, true},
		{&r.Read, l.Policy.ReadOnly, false},
		{&r.Write, l.Policy.Writable, false},
		{&r.Write, []string{l.Tmp}, false},
	} {
		for _, path := range f.paths {
			if err := add(f.list, path, f.optional); err != nil {
				return r, err
			}
		}
	}
	name(l.Command.Program.Links)
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
	launch *level.Launch
}

// Hidden returns 0: this system does not report unlinked files.
func (p *seatbeltProcess) Hidden() int64 { return 0 }

func (p *seatbeltProcess) Reap() level.Ending {
	r := p.Process.Reap()
	if r.Failure != nil {
		return p.failure(r.Failure)
	}
	e := level.Ending{Code: r.ExitCode, Usage: sandbox.Usage{CPU: r.CPU, MaxRSS: r.MaxRSS}}
	if r.Signal != 0 {
		e.Code, e.Signal = -1, level.SignalName(syscall.Signal(r.Signal))
	}
	switch {
	case r.TooMany:
		e.Cause = sandbox.CauseProcessLimit
	case r.Signal == int(unix.SIGXCPU):
		e.Cause = sandbox.CauseCPULimit
	case r.Signal == int(unix.SIGXFSZ):
		e.Cause = sandbox.CauseFileSizeLimit
	}
	return e
}

// failure returns how a run ended if its program sent no report.
func (p *seatbeltProcess) failure(f *seatbelt.Failure) level.Ending {
	c, errno := p.launch.Command, syscall.Errno(f.Errno)
	e := level.Ending{Code: -1}
	switch {
	case f.Step == seatbelt.StepWatch:
		// Only a process outside the run can have killed the supervisor, and the run ended
		// with it.
		e.Signal = "SIGKILL"
	case errno == syscall.E2BIG:
		e.Err = level.TooLarge(p.launch.Argv, p.launch.Env)
	case f.Step == seatbelt.StepExec:
		e.Err = &sandbox.StartError{Program: c.Program, Err: errno}
	case f.Step == seatbelt.StepChdir && errno == syscall.ESTALE:
		e.Err = &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q is not the folder it was", c.Dir)}
	case f.Step == seatbelt.StepChdir:
		e.Err = &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: errno}
	default:
		e.Err = &sandbox.ConfineError{Level: sandbox.LevelFull, Step: string(f.Step), Err: errors.New(f.Text)}
	}
	return e
}

// System is macOS.
type System struct{}

// Candidates returns the same level twice: first with hard links inside the folders
// that a run may change, then without any.
func (System) Candidates(*slog.Logger) []level.Candidate {
	means := []string{"Seatbelt (sandbox-exec)", "a supervisor"}
	return []level.Candidate{
		{Level: sandbox.LevelFull, Confiner: &seatbeltStarter{hardLinks: true}, Network: true, Means: means, Gaps: seatbelt.Gaps(true)},
		{Level: sandbox.LevelFull, Confiner: &seatbeltStarter{}, Network: true, Means: means, Gaps: seatbelt.Gaps(false)},
	}
}

// errNested is the reason for having no level when this process is itself confined:
// Seatbelt sandboxes cannot nest.
var errNested = errors.New("this server itself already runs in a sandbox, and this system has only one at a time")

// tryTime bounds a trial: it takes some tens of milliseconds.
const tryTime = 10 * time.Second

// Try runs this program itself under s. It attempts what must fail, and reports what
// succeeded.
func (s *seatbeltStarter) Try(ctx context.Context) error {
	err := s.try(ctx)
	if err == nil {
		return nil
	}
	// If even a profile that allows everything is refused, no profile works here.
	all := exec.CommandContext(ctx, seatbelt.SandboxExec, "-p", "(version 1)(allow default)", "/usr/bin/true")
	all.Env, all.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
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
	p, err := s.Start(&level.Launch{
		Policy:  sandbox.Policy{ReadOnly: []string{scene.Pack}, Writable: []string{scene.Inside}, Limits: limits},
		Command: &sandbox.Command{Program: program.Program{Name: "packs-mcp", Path: self, Resolved: self}, Dir: "/"},
		Argv:    append([]string{self, confine.CheckArg}, scene.Args()...),
		Env:     []string{"TMPDIR=" + scene.Inside}, Tmp: scene.Inside, Stdout: w, Stderr: w,
	})
	_ = w.Close()
	if err != nil {
		return err
	}
	select {
	case <-p.Ended():
	case <-ctx.Done():
		p.Kill()
	case <-time.After(tryTime):
		p.Kill()
	}
	end := p.Reap()
	text, _ := io.ReadAll(io.LimitReader(r, 1<<10))
	switch {
	case end.Err != nil:
		if ce, ok := errors.AsType[*sandbox.ConfineError](end.Err); ok {
			return fmt.Errorf("%s: %w", ce.Step, ce.Err)
		}
		return end.Err
	case end.Signal != "":
		return fmt.Errorf("a trial run was ended by %s", end.Signal)
	case end.Code != 0:
		return fmt.Errorf("a trial run was not confined as it should be: %s", strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; "))
	}
	return nil
}

// Bound returns [level.ErrNoGroups].
func (*seatbeltStarter) Bound(context.Context, sandbox.Together) error { return level.ErrNoGroups }

// Find has nothing to try: no level here mounts anything or has its own network.
func (*seatbeltStarter) Find(context.Context) level.Findings {
	return level.Findings{Overlay: level.NoNamespaces}
}

// Sweep does nothing, since helpers leave nothing behind on macOS.
func (System) Sweep() {}

// Hint says how this machine could get a better level, or is empty.
func (System) Hint(r *sandbox.Report) string {
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
