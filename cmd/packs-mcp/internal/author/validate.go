package author

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/lint"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// validatedPacks is what validate --json prints.
type validatedPacks struct {
	Packs []validatedPack `json:"packs"`
}

// validatedPack is one result in the form that validate --json prints.
type validatedPack struct {
	Path        string            `json:"path"`
	Valid       bool              `json:"valid"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Problems    []diag.Diagnostic `json:"problems"`
}

func (a *app) validateCommand() *cobra.Command {
	var profile string
	var opts lint.Options
	var how showing
	var fix fixing
	var security bool
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Report everything that is wrong with packs",
		Long: `Check packs: a folder that is or holds packs, a SKILL.md, a tools.json, a *.tool.json, or a
pattern for such paths. Every problem has a code, a place that editors can jump to, and a
hint; docs/reference/diagnostics.md explains the codes. What this program would not serve is an error.
A profile holds packs to the letter of one specification instead:

  agent-skills     Agent Skills, with the verdicts of its reference validator
  skill-md         SKILL.md v1.0: tools in Markdown
  tool-pack        *.tool.json
  capability-pack  an entry document and tools.json
  skillkit         skillkit v0.1

With --fix, what is mechanical is mended, and what was done is printed: a name that is missing
is written into the document, that of its folder; a script that a tool runs becomes executable;
its line ends become those of Unix. With --dry-run that is printed, and nothing is changed.

Infos of one kind are one line, unless --verbose.

With --security, packs are scanned too, as scan does (docs/reference/scan.md): a finding that
is critical or high is an error, one that is medium a warning.

The configuration plays no part, so that a pack is as valid here as anywhere. The exit
status is 0 when everything is valid, 1 when something is not, and 2 for misuse.`,
		Example: `  packs-mcp validate ./my-pack
  packs-mcp validate --profile agent-skills --strict '.claude/skills/*'
  packs-mcp validate --fix --dry-run ./my-pack
  packs-mcp validate --sarif ~/packs > packs.sarif`,
		Args: cli.Misuse(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opts.Profile, err = lint.ParseProfile(profile); err != nil {
				return &cli.UsageError{Err: err, Hint: "leave --profile out to check everything there is to check"}
			}
			switch {
			case how.json && how.sarif:
				return &cli.UsageError{Err: errors.New("--json and --sarif exclude each other"), Hint: "leave one of them out"}
			case fix.dryRun && !fix.on:
				return &cli.UsageError{Err: errors.New("--dry-run is for --fix"), Hint: "without --fix nothing is changed"}
			}
			opts.Installed = a.installed()
			return a.validate(cmd.Context(), args, opts, fix, security, how)
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "", "check packs against one specification: agent-skills, skill-md, tool-pack, capability-pack or skillkit")
	cmd.Flags().BoolVar(&opts.Strict, "strict", false, "count warnings and unknown keys as errors")
	cmd.Flags().BoolVar(&fix.on, "fix", false, "fix mechanical problems: missing names, scripts that are not executable, their line ends")
	cmd.Flags().BoolVar(&fix.dryRun, "dry-run", false, "with --fix, show what it would do, and change nothing")
	cli.JSONFlag[validatedPacks](a.Env, cmd, &how.json)
	cmd.Flags().BoolVar(&how.sarif, "sarif", false, "print SARIF 2.1.0, for code scanning")
	cmd.Flags().BoolVar(&how.verbose, "verbose", false, "print every info in a line of its own")
	cmd.Flags().BoolVar(&security, "security", false, "look for attacks as well, as scan does")
	var profiles []string
	for _, p := range lint.Profiles() {
		profiles = append(profiles, string(p))
	}
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(profiles, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// showing says in what form to print the results.
type showing struct{ json, sarif, verbose bool }

func (a *app) validate(ctx context.Context, args []string, opts lint.Options, fix fixing, security bool, how showing) error {
	progress := a.Progress("checking packs")
	defer progress.Close()
	opts.Progress = progress.Of
	checker := lint.New(opts)
	results := []validatedPack{}
	seen := map[string]bool{}
	for _, arg := range args {
		paths, err := expand(arg)
		if err != nil {
			return err
		}
		for _, path := range paths {
			report, err := checker.Check(ctx, path)
			if err == nil && fix.on && a.fix(report, fix) {
				report, err = checker.Check(ctx, path)
			}
			if err != nil {
				return err
			}
			for _, r := range report.Packs {
				for i, d := range r.Problems {
					if d.Code == lint.CodePathMissing && !cli.IsPath(arg) {
						r.Problems[i].Hint += "; of a pack's id, packs-mcp show says the folder"
					}
				}
				if seen[r.Path] {
					continue // two arguments lead to the same pack
				}
				seen[r.Path] = true
				results = append(results, validatedPack{r.Path, r.Valid, r.Name, r.Description, r.Problems})
			}
			if security {
				if results, err = addSecurity(ctx, path, results); err != nil {
					return err
				}
			}
		}
	}
	progress.Close()
	if err := a.printResults(results, how); err != nil {
		return err
	}
	for _, r := range results {
		if !r.Valid {
			return cli.ErrSaid
		}
	}
	return nil
}

// printResults prints the results. In the form for people, it ends with a summary.
func (a *app) printResults(results []validatedPack, how showing) error {
	var all []diag.Diagnostic
	for _, r := range results {
		all = append(all, r.Problems...)
	}
	switch {
	case how.json:
		return cli.PrintJSON(a.Stdout, validatedPacks{results})
	case how.sarif:
		return cli.PrintJSON(a.Stdout, sarifOf(a.Version, all))
	}
	more := ""
	if !how.verbose {
		folded := foldInfos(all)
		if len(folded) < len(all) {
			more = "; --verbose prints every info"
		}
		all = folded
	}
	for _, d := range all {
		cli.PrintFinding(a.Stdout, d)
	}
	fmt.Fprintln(a.Stderr, tally(results)+more)
	return nil
}

// foldInfos returns problems in their order, with one info in place of all with the
// same code. Infos that say what may have been meant are likely mistakes, and stay.
func foldInfos(problems []diag.Diagnostic) []diag.Diagnostic {
	folds := func(d diag.Diagnostic) bool {
		return d.Severity == diag.Info && !strings.HasPrefix(d.Hint, "did you mean")
	}
	count := make(map[string]int)
	for _, d := range problems {
		if folds(d) {
			count[d.Code]++
		}
	}
	var folded []diag.Diagnostic
	for _, d := range problems {
		if folds(d) {
			n := count[d.Code]
			if n == 0 {
				continue // printed with the first
			}
			count[d.Code] = 0
			if n > 1 {
				d.Message += fmt.Sprintf(" (and %d more like it)", n-1)
			}
		}
		folded = append(folded, d)
	}
	return folded
}

// installed returns a function that reports whether this machine has a program: at a
// path, or on PATH.
func (a *app) installed() func(name string) bool {
	known := make(map[string]bool) // :: name → whether it was found
	options := program.LookupOptions{Path: cli.Getenv(a.Environ, "PATH"), Environ: a.Environ}
	return func(name string) bool {
		is, done := known[name]
		if done {
			return is
		}
		if filepath.IsAbs(name) {
			_, err := os.Stat(name)
			is = err == nil
		} else {
			_, err := program.Lookup(name, options)
			_, missing := errors.AsType[*program.NotFoundError](err)
			is = !missing
		}
		known[name] = is
		return is
	}
}

// expand returns the paths that an argument stands for: those that match, if it is a
// pattern and not itself a path.
func expand(arg string) ([]string, error) {
	if _, err := os.Lstat(arg); err == nil || !strings.ContainsAny(arg, "*?[") {
		return []string{filepath.Clean(arg)}, nil
	}
	matches, err := filepath.Glob(arg)
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("%q is not a pattern: %w", arg, err), Hint: `write * for any part of a name, and put a \ before a [ that is meant as it is`}
	}
	// A pattern matches what is in the folder, not what a link leads to. A link that
	// is named explicitly is followed.
	matches = slices.DeleteFunc(matches, func(path string) bool {
		info, err := os.Lstat(path)
		return err == nil && info.Mode()&fs.ModeSymlink != 0
	})
	if len(matches) == 0 {
		return []string{arg}, nil // there is no such path, and the caller reports that
	}
	return matches, nil
}

// tally returns a one-line summary.
func tally(results []validatedPack) string {
	valid, wrong, warnings := 0, 0, 0
	for _, r := range results {
		if r.Valid {
			valid++
		}
		for _, d := range r.Problems {
			switch d.Severity {
			case diag.Error:
				wrong++
			case diag.Warning:
				warnings++
			}
		}
	}
	return fmt.Sprintf("%d checked, %d valid; %s, %s", len(results), valid, diag.Count(wrong, "error"), diag.Count(warnings, "warning"))
}
