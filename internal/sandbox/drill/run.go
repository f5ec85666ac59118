package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
)

// Options are for [Run].
type Options struct {
	Environ []string        // the server's, as from os.Environ
	Skip    []sandbox.Level // not tried
	Logger  *slog.Logger
}

// A Drill is the outcome of all tries. Its first level is none, at which nothing
// refuses the tries.
type Drill struct {
	Levels  []Level
	Lacking []Lacking
}

// A Level is the outcome of the tries at one level.
type Level struct {
	Level sandbox.Level
	Means []string // what confines
	Tries []Attempt
}

// Lacking is a level that this machine does not have.
type Lacking struct {
	Level   sandbox.Level
	Problem string
}

// An Attempt is one try at one level.
type Attempt struct {
	Row      Row
	Expect   Expect // Absent: this system has no such thing, and nothing was tried
	Outcome  string // "ok", or what refused it
	Detail   string
	Untested bool // it does not work unconfined here either, so a refusal proves nothing
}

// Did reports whether the operation succeeded.
func (a *Attempt) Did() bool { return a.Outcome == ok }

// Bad reports whether the outcome is wrong: an operation that must be refused was
// not, one that must work did not, or the outcome is not known.
func (a *Attempt) Bad() bool {
	switch a.Expect {
	case Refused:
		return a.Did() || a.Outcome == lost
	case Works:
		return !a.Did()
	}
	return false
}

// lost is the outcome of a try that left no report.
const lost = "no report"

// Run tries the whole list unconfined and at each level that this machine has. If ctx
// ends first, it returns an error. It returns both a Drill and an error if it could not
// remove the folder of the tries.
func Run(ctx context.Context, o Options) (_ *Drill, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	folder, err := temp.New("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	dir, err := filepath.EvalSymlinks(folder.Path)
	if err != nil {
		return nil, err
	}
	stage, err := newStage(dir, self)
	if err != nil {
		return nil, err
	}
	defer stage.close()
	me, err := program.Lookup(self, program.LookupOptions{})
	if err != nil {
		return nil, err
	}
	d := &Drill{}
	var unconfined []Attempt
	for _, level := range []sandbox.Level{sandbox.LevelNone, sandbox.LevelPartial, sandbox.LevelFull} {
		if slices.Contains(o.Skip, level) {
			continue
		}
		var above []sandbox.Level
		for l := sandbox.LevelFull; l > level; l-- {
			above = append(above, l)
		}
		runner := runner.New(runner.Options{Skip: above, Logger: o.Logger, Grace: time.Second})
		report := runner.Probe(ctx)
		if report.Level != level {
			runner.Close()
			d.Lacking = append(d.Lacking, Lacking{level, problem(&report, level)})
			continue
		}
		at := Level{Level: level, Means: report.Trials[len(report.Trials)-1].Means}
		column := columnOf(level, at.Means)
		for i, row := range Rows() {
			a := Attempt{Row: row, Expect: expect(row, level, column)}
			if a.Expect != Absent {
				if err = attempt(ctx, &a, runner, stage, me, o.Environ, fmt.Sprintf("%s-%d", level, i)); err != nil {
					runner.Close()
					return nil, err
				}
				a.Untested = unconfined != nil && a.Expect == Refused && !unconfined[i].Did() && !slices.Contains(strings.Split(row.Linux.None, "|"), unconfined[i].Outcome)
			}
			at.Tries = append(at.Tries, a)
		}
		runner.Close()
		if level == sandbox.LevelNone {
			unconfined = at.Tries
		}
		d.Levels = append(d.Levels, at)
	}
	return d, nil
}

// problem says why this machine does not have a level.
func problem(r *sandbox.Report, level sandbox.Level) string {
	for _, t := range r.Trials {
		if t.Level == level {
			return t.Problem
		}
	}
	return "this system has no such level"
}

// columnOf returns the column of the rows for a level on Linux; partial has two.
func columnOf(level sandbox.Level, means []string) func(Want) string {
	switch {
	case level == sandbox.LevelFull:
		return func(w Want) string { return w.Full }
	case slices.ContainsFunc(means, func(m string) bool { return strings.HasPrefix(m, "Landlock") }):
		return func(w Want) string { return w.Landlock }
	}
	return func(w Want) string { return w.Namespaces }
}

// expect returns the outcome that a row must have on this system, at a level.
func expect(row Row, level sandbox.Level, column func(Want) string) Expect {
	e := map[string]Expect{"darwin": row.MacOS, "windows": row.Windows}[runtime.GOOS]
	if runtime.GOOS == "linux" {
		switch want := column(row.Linux); {
		case !slices.Contains(strings.Split(want, "|"), ok):
			e = Refused
		case row.Linux.Full == ok:
			e = Works
		default:
			e = Open
		}
	}
	// An unconfined program is denied only the environment.
	if level == sandbox.LevelNone && e == Refused && row.Linux.None == ok {
		return Open
	}
	return e
}

// attempt runs this program for one try. It returns an error if ctx ended, or the try
// could not be prepared.
func attempt(ctx context.Context, a *Attempt, runner *runner.Runner, stage *stage, me program.Program, environ []string, name string) error {
	scene, err := stage.scene(name)
	if err != nil {
		return err
	}
	op, complete := scene.fill(a.Row.Op)
	if !complete {
		a.Expect = Absent
		return nil
	}
	server := append(slices.Clone(environ), keyVariable+"=canary")
	limits := a.Row.Limits
	limits.Timeout = 20 * time.Second
	res, err := runner.Run(ctx,
		sandbox.Policy{ReadOnly: []string{scene.pack, me.Path}, Writable: []string{scene.workspace}, Limits: limits},
		sandbox.Command{
			Program: me, Args: append([]string{Arg}, op...), Dir: scene.workspace,
			Env: sandbox.BaseEnv(server, sandbox.EnvOptions{Home: scene.workspace}),
		})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var r report
	switch {
	case err != nil:
		a.Outcome, a.Detail = lost, err.Error()
		return nil
	case json.Unmarshal(res.Stdout.Bytes(), &r) == nil:
		a.Outcome, a.Detail = r.Outcome, r.Detail
	case res.Cause != sandbox.CauseExit && res.Cause != sandbox.CauseTimeout:
		a.Outcome = "killed: " + string(res.Cause) // a bound that ends the run
	case limits != (sandbox.Limits{Timeout: limits.Timeout}) && res.Cause == sandbox.CauseExit:
		// A program that a limit ended prints nothing more.
		a.Outcome = strings.TrimSpace(fmt.Sprintf("ended, status %d %s", res.ExitCode, res.Signal))
	default:
		a.Outcome, a.Detail = lost, fmt.Sprintf("it ended with status %d %s %s", res.ExitCode, res.Signal, firstLine(res.Stderr.Bytes()))
	}
	if a.Row.Op[0] == "leave" && a.Did() && !LeftBehind(op[1]) {
		a.Outcome = endedToo
	}
	return nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(string(text[:min(len(text), 300)]), "\n")
	return line
}
