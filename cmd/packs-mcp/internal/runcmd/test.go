package runcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/approve"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/service"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/cases"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/direct"
)

func (a *app) testCommand() *cobra.Command {
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "test [PACK...]",
		Short: "Run the tests that packs keep in their tests folder",
		Long: `Run the cases in tests/*.yaml of packs: each calls a tool and says which exit status, output
and files should come of it. A case runs as any call does, in the same sandbox, with a
workspace of its own; it gets no project unless you name one with --project. All commands of a
pack are shown together, and you are asked once; without a terminal nothing runs, unless you
say --yes, which is your answer and is recorded as that.

PACK is the id of an attached pack, or a folder that begins with ./, ../ or /, with all packs
in it; without PACK it is the working folder. The exit status is 0 when every case passes, 1
when one fails, cannot be read or was not allowed, and 2 for misuse.`,
		Example: `  packs-mcp test
  packs-mcp test ./my-pack --yes
  packs-mcp test git-helper --json --yes`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.test(cmd.Context(), args, yes, asJSON) },
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return a.completeCall(cmd.Context(), nil)
		},
	}
	a.PackFlags(cmd)
	a.PlainFlag(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "allow all runs without being asked")
	cli.JSONFlag[testReport](a.Env, cmd, &asJSON)
	return cmd
}

// testedPack is the result of a pack's tests, as test --json prints it.
type testedPack struct {
	Pack     string            `json:"pack"`
	Dir      string            `json:"dir"`
	Passed   int               `json:"passed"`
	Failed   int               `json:"failed"`
	Cases    []testedCase      `json:"cases"`
	Problems []diag.Diagnostic `json:"problems"` // problems of the case files, and errors of the tools
}

// testedCase is the result of one case.
type testedCase struct {
	Name        string             `json:"name"`
	File        string             `json:"file"`
	Line        int                `json:"line"`
	Tool        string             `json:"tool"`
	OK          bool               `json:"ok"`
	RunID       string             `json:"run_id,omitempty"`    // if it ran
	DurationMS  int64              `json:"duration_ms"`         // of the run
	Differences []cases.Difference `json:"differences"`         // how the result differs from what is expected
	Error       string             `json:"error,omitempty"`     // why it did not run to the end
	Workspace   string             `json:"workspace,omitempty"` // what the run left behind, if the case failed
}

// A tester runs the tests of packs.
type tester struct {
	*app
	cfg      *config.Config
	service  *service.Service
	terminal *approve.Terminal // nil until it is first needed
	yes      bool
	json     bool
	known    map[string]bool // see attempt
	unread   []string        // the ids of packs with tools that cannot be read
}

func (a *app) test(ctx context.Context, args []string, yes, asJSON bool) (err error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	cfg, logger, err := a.quietly()
	if err != nil {
		return err
	}
	var dirs []string // of args; empty for an id
	var roots []packs.Root
	given := cfg.Packs
	for _, arg := range args {
		dir, extra, err := a.namedFolder(cfg, arg)
		if err != nil {
			return err
		}
		dirs, roots = append(dirs, dir), append(roots, extra...)
	}
	if len(roots) < len(args) {
		cfg.Packs = given // some of them are named by id
	}
	// Nothing runs before the person has seen all of a pack's commands.
	cfg.Rules = append(cfg.Rules, alwaysAsk("test"))
	at := service.Place{Here: queue.ChannelTerminal}
	if a.Flags.Project != "" {
		at.Project = cfg.Project
	}
	s, err := service.Start(ctx, a.Env, cfg, logger, nil, at, roots...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var chosen []*packs.Pack
	catalog := s.Library.Catalog(ctx)
	for i, arg := range args {
		found, err := a.packsToTest(catalog, arg, dirs[i])
		if err != nil {
			return err
		}
		for _, p := range found {
			if !slices.Contains(chosen, p) {
				chosen = append(chosen, p)
			}
		}
	}
	t := &tester{app: a, cfg: cfg, service: s, yes: yes, json: asJSON, known: make(map[string]bool)}
	all := []testedPack{}
	var without []string
	for _, p := range chosen {
		one, err := t.pack(ctx, p)
		switch {
		case err != nil:
			return err
		case one == nil:
			without = append(without, safetext.Line(p.ID))
		default:
			all = append(all, *one)
		}
	}
	if len(all) > 0 && len(without) > 0 && !asJSON {
		fmt.Fprintf(a.Stderr, "without tests: %s\n", strings.Join(without, ", "))
	}
	return t.report(all, args)
}

// packsToTest returns the pack with an id, or all packs in the named folder.
func (a *app) packsToTest(catalog *packs.Catalog, arg, dir string) ([]*packs.Pack, error) {
	var found []*packs.Pack
	for _, p := range catalog.Attached() {
		if dir != "" && p.Root == dir {
			found = append(found, p)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	p, err := a.chosenPack(catalog, arg, dir)
	return []*packs.Pack{p}, err
}

// pack runs the tests of one pack; nil if it has none.
func (t *tester) pack(ctx context.Context, p *packs.Pack) (*testedPack, error) {
	dir, err := p.OpenDir()
	if err != nil {
		return nil, fmt.Errorf("reading pack %q: %w", p.ID, err)
	}
	all, problems := cases.Read(dir)
	if err := dir.Close(); err != nil {
		return nil, err
	}
	if len(all) == 0 && len(problems) == 0 {
		return nil, nil
	}
	out := &testedPack{Pack: p.ID, Dir: p.Dir, Cases: []testedCase{}, Problems: []diag.Diagnostic{}}
	set, ofTools, err := cli.ToolFiles(t.cfg).Offered(p)
	if err != nil {
		return nil, err
	}
	ofTools = slices.DeleteFunc(slices.Clone(ofTools), func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
	has := func(name string) bool { return set != nil && set.Lookup(name) != nil }
	if len(ofTools) > 0 {
		// A tool that a case names may be one of these, so do not report it as
		// unknown.
		problems = append(ofTools, problems...)
		t.unread = append(t.unread, fmt.Sprintf("%q", p.ID))
	} else {
		problems = append(problems, cases.UnknownTools(all, toolNames(set), has)...)
	}
	for _, d := range problems {
		d.File = fromHere(filepath.Join(p.Dir, filepath.FromSlash(d.File)))
		out.Problems = append(out.Problems, d)
		if !t.json {
			cli.PrintFinding(t.Stdout, d)
		}
	}
	all = slices.DeleteFunc(all, func(c cases.Case) bool { return !has(c.Tool) })
	return out, t.run(ctx, p, all, out)
}

// A trial is a case that is being run.
type trial struct {
	cases.Case
	attempt  *attempt
	question *queue.Pending // nil: the call ended without a question
}

// run asks once about all cases of a pack, and then runs them one after the other.
// While the person is asked, every call waits with its own question, so exactly what
// was shown runs.
func (t *tester) run(ctx context.Context, p *packs.Pack, all []cases.Case, out *testedPack) error {
	ctx, cancel := context.WithCancel(ctx)
	trials := make([]trial, 0, len(all))
	defer func() {
		cancel() // ends the calls that still wait
		for _, one := range trials {
			<-one.attempt.ended
		}
	}()
	var asked []queue.Pending
	for _, c := range all {
		one := trial{Case: c, attempt: t.attempt(ctx, t.service, direct.Call{Pack: p.ID, Tool: c.Tool, Arguments: c.Arguments, Context: c.Context}, "the person runs the tests of the pack", t.known)}
		trials = append(trials, one)
		question, err := one.attempt.next(ctx)
		if err != nil {
			return err
		}
		if question != nil && len(question.Fields) == 0 {
			asked = append(asked, *question)
		}
		trials[len(trials)-1].question = question
	}
	answer, err := t.answer(ctx, p, asked)
	if err != nil {
		return err
	}
	for _, one := range trials {
		result, err := one.attempt.result, one.attempt.err
		if q := one.question; q != nil {
			v := answer
			if len(q.Fields) > 0 {
				v = queue.Verdict{Channel: queue.ChannelCommand, Note: fmt.Sprintf("it needs a value for %q, and the case gives none", q.Fields[0].Name)}
			}
			result, err = one.attempt.finish(ctx, q.Code, v)
			if err == nil && result.Error.Code == "denied" && v.Decision == queue.Deny {
				result.Error.Message = v.Note
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		done := t.judge(&one.Case, result)
		out.Cases = append(out.Cases, done)
		if done.OK {
			out.Passed++
		} else {
			out.Failed++
		}
		if !t.json {
			t.printCase(p, &done)
		}
	}
	return nil
}

// answer asks the person about the runs of a pack's tests, or answers as the command
// line says.
func (t *tester) answer(ctx context.Context, p *packs.Pack, asked []queue.Pending) (queue.Verdict, error) {
	switch {
	case len(asked) == 0:
		return queue.Verdict{}, nil
	case t.yes:
		v := t.byYes(&asked[0])
		v.Note += ", for all tests of the pack"
		return v, nil
	case !cli.IsTerminal(t.Stdin) || !cli.IsTerminal(t.Stderr):
		return withoutTerminal(), nil
	}
	if t.terminal == nil {
		t.terminal = approve.NewTerminal(ctx, t.Env)
	}
	title := fmt.Sprintf("Run the tests of pack %s: %s?", safetext.Line(p.ID), cli.Counted(len(asked), "run", "runs"))
	yes, err := t.terminal.AskAll(ctx, title, asked)
	switch {
	case errors.Is(err, approve.ErrNoAnswer):
		return queue.Verdict{Channel: queue.ChannelCommand, Note: "nobody answered in the terminal"}, nil
	case err != nil:
		return queue.Verdict{}, err
	case !yes:
		return queue.Verdict{Channel: queue.ChannelTerminal, Note: "the tests of the pack were denied together"}, nil
	}
	return queue.Verdict{Decision: queue.Once, Channel: queue.ChannelTerminal, Note: "one answer for all tests of the pack"}, nil
}

// judge compares the result of a call with what the case expects. It removes the
// workspace of a case that passes.
func (t *tester) judge(c *cases.Case, r *direct.Result) testedCase {
	done := testedCase{Name: c.Name, File: c.File, Line: c.Line, Tool: c.Tool, Differences: []cases.Difference{}, RunID: r.Run.ID, DurationMS: r.Run.DurationMS}
	if r.Run.ID == "" || r.Failed && r.Error.Code != "command_failed" {
		done.Error = r.Error.Code + ": " + r.Error.Message // the program did not run, or was stopped
	}
	workspace := ""
	if name := r.Run.Workspace; name != "" && filepath.Base(name) == name && name != "." && name != ".." { // a name that is safe to remove
		workspace = filepath.Join(t.cfg.Paths.Workspaces, r.Run.Workspace)
	}
	if r.Run.ID != "" {
		got := cases.Got{Exit: r.Run.ExitCode, Signal: r.Run.Signal, Output: r.Run.Out(), Stderr: r.Run.Stderr}
		done.Differences = append(done.Differences, c.Compare(got, func(path string) (string, error) { return readMade(workspace, path) })...)
	}
	done.OK = done.Error == "" && len(done.Differences) == 0
	switch {
	case workspace == "":
	case done.OK:
		if err := os.RemoveAll(workspace); err != nil {
			fmt.Fprintf(t.Stderr, "packs-mcp: warning: the workspace of a test is not removed: %s\n", safetext.Line(err.Error()))
		}
	default:
		if _, err := os.Lstat(workspace); err == nil { // an empty one was already removed
			done.Workspace = workspace
		}
	}
	return done
}

// maxMade is how much of a file made by a run is compared.
const maxMade = 1 << 20

// readMade reads a file in the workspace of a run that has ended. It does not trust
// what the run left there: it follows no link out of the workspace, and reads no hard
// link to a file elsewhere.
func readMade(workspace, path string) (string, error) {
	dir, err := packfs.Open(workspace, packfs.RefuseHardLinks)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	data, err := dir.ReadAll(path, maxMade)
	return safetext.Text(string(data)), err
}

func (t *tester) printCase(p *packs.Pack, c *testedCase) {
	mark := "ok  "
	if !c.OK {
		mark = "FAIL"
	}
	fmt.Fprintf(t.Stdout, "%s  %s: %s (%d ms)\n", mark, safetext.Line(p.ID), safetext.Line(c.Name), c.DurationMS)
	if c.OK {
		return
	}
	fmt.Fprintf(t.Stdout, "      %s:%d\n", safetext.Line(fromHere(filepath.Join(p.Dir, filepath.FromSlash(c.File)))), c.Line)
	if c.Error != "" {
		fmt.Fprintf(t.Stdout, "      %s\n", safetext.Line(c.Error))
	}
	for _, d := range c.Differences {
		for line := range strings.Lines(d.Text()) {
			fmt.Fprintf(t.Stdout, "      %s\n", safetext.Line(strings.TrimRight(line, "\n")))
		}
	}
	if c.Workspace != "" {
		fmt.Fprintf(t.Stdout, "      its files are in %s\n", safetext.Line(c.Workspace))
	}
	if c.RunID != "" {
		fmt.Fprintf(t.Stdout, "      why: packs-mcp sandbox explain %s\n", c.RunID)
	}
}

// fromHere returns a path relative to the working folder, if it is inside that
// folder.
func fromHere(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// report prints the sum, and returns an error unless every case passed.
// testReport is what test --json prints.
type testReport struct {
	OK     bool         `json:"ok"`
	Passed int          `json:"passed"`
	Failed int          `json:"failed"`
	Packs  []testedPack `json:"packs"`
}

func (t *tester) report(all []testedPack, args []string) error {
	passed, failed, wrong := 0, 0, 0
	for _, p := range all {
		passed, failed, wrong = passed+p.Passed, failed+p.Failed, wrong+len(p.Problems)
	}
	if t.json {
		err := cli.PrintJSON(t.Stdout, testReport{len(all) > 0 && failed+wrong == 0, passed, failed, all})
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return cli.WithHint(fmt.Errorf("there are no tests in %s", safetext.Line(strings.Join(args, ", "))), "a test is a case in a file tests/NAME.yaml of the pack; packs-mcp new writes one")
	}
	if !t.json {
		sum := fmt.Sprintf("%d passed, %d failed", passed, failed)
		if wrong > 0 {
			sum += ", " + cli.Counted(wrong, "problem", "problems")
			if len(t.unread) == 0 {
				sum += " in the files of tests"
			}
		}
		fmt.Fprintln(t.Stderr, sum)
	}
	switch len(t.unread) {
	case 0:
	case 1:
		return cli.WithHint(fmt.Errorf("the tools of pack %s cannot be read", t.unread[0]), "mend what is named above")
	default:
		return cli.WithHint(fmt.Errorf("the tools of the packs %s cannot be read", strings.Join(t.unread, ", ")), "mend what is named above")
	}
	if failed+wrong > 0 {
		return cli.ErrSaid
	}
	return nil
}
