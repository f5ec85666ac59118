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
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/lint"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

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
	var asJSON, fix bool
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Say everything that is wrong with packs",
		Long: `Check packs: a folder that is or holds packs, a SKILL.md, a tools.json, a *.tool.json, or a
pattern for such paths. Every problem has a code, a place that editors can jump to, and a
hint; docs/reference/diagnostics.md explains the codes. What this program would not serve is an error.
A profile holds packs to the letter of one specification instead:

  agent-skills     Agent Skills, with the verdicts of its reference validator
  skill-md         SKILL.md v1.0: tools in Markdown
  tool-pack        *.tool.json
  capability-pack  an entry document and tools.json
  skillkit         skillkit v0.1

With --fix, a name that is missing is written into the document: that of its folder. Nothing
else is changed.

The configuration plays no part, so that a pack is as valid here as anywhere. The exit
status is 0 when everything is valid, 1 when something is not, and 2 for misuse.`,
		Example: `  packs-mcp validate ./my-pack
  packs-mcp validate --profile agent-skills --strict '.claude/skills/*'
  packs-mcp validate --json ~/packs`,
		Args: cli.Misuse(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opts.Profile, err = lint.ParseProfile(profile); err != nil {
				return &cli.UsageError{Err: err, Hint: "leave --profile out to check everything there is to check"}
			}
			return a.validate(cmd.Context(), args, opts, fix, asJSON)
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "", "hold packs to one specification: agent-skills, skill-md, tool-pack, capability-pack or skillkit")
	cmd.Flags().BoolVar(&opts.Strict, "strict", false, "count warnings as errors, and keys that nobody knows too")
	cmd.Flags().BoolVar(&fix, "fix", false, "write the folder's name into documents that have none")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	var profiles []string
	for _, p := range lint.Profiles() {
		profiles = append(profiles, string(p))
	}
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(profiles, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) validate(ctx context.Context, args []string, opts lint.Options, fix, asJSON bool) error {
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
			if err == nil && fix && a.addNames(report) {
				report, err = checker.Check(ctx, path)
			}
			if err != nil {
				return err
			}
			for _, r := range report.Packs {
				if seen[r.Path] {
					continue // two arguments lead to the same pack
				}
				seen[r.Path] = true
				results = append(results, validatedPack{r.Path, r.Valid, r.Name, r.Description, r.Problems})
			}
		}
	}
	if asJSON {
		if err := cli.PrintJSON(a.Stdout, struct {
			Packs []validatedPack `json:"packs"`
		}{results}); err != nil {
			return err
		}
	} else {
		for _, r := range results {
			for _, d := range cli.FoldInfos(r.Problems) {
				cli.PrintFinding(a.Stdout, d)
			}
		}
		fmt.Fprintln(a.Stderr, tally(results))
	}
	for _, r := range results {
		if !r.Valid {
			return cli.ErrSaid
		}
	}
	return nil
}

// addNames writes the names of folders into the documents that lack one, and reports
// whether there were any. What cannot be written stays a problem of the report.
func (a *app) addNames(report lint.Report) (fixed bool) {
	for _, r := range report.Packs {
		for _, d := range r.Problems {
			if d.Code != frontmatter.CodeNameMissing {
				continue
			}
			name, err := addName(d.File)
			if err != nil {
				fmt.Fprintf(a.Stderr, "not fixed: %s: %s\n", safetext.Line(d.File), safetext.Line(err.Error()))
				continue
			}
			fmt.Fprintf(a.Stderr, "fixed: %s: name: %s\n", safetext.Line(d.File), name)
			fixed = true
		}
	}
	return fixed
}

// addName writes the name of its folder into a document that lacks one. The file is
// replaced whole, and keeps its permissions.
func addName(file string) (name string, err error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is a link, or no plain file; fix the file that it leads to")
	}
	name = packs.NameFor(filepath.Base(filepath.Dir(path)))
	src, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text, ok := lint.AddName(src, name)
	if !ok {
		return "", errors.New("it is not clear what to write, or where; add a line name: to the frontmatter")
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".packs-mcp-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return name, nil
}

// expand returns the paths that an argument stands for: those that match, when
// it is a pattern and no path itself.
func expand(arg string) ([]string, error) {
	if _, err := os.Lstat(arg); err == nil || !strings.ContainsAny(arg, "*?[") {
		return []string{filepath.Clean(arg)}, nil
	}
	matches, err := filepath.Glob(arg)
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("%q is not a pattern: %w", arg, err), Hint: `write * for any part of a name, and put a \ before a [ that is meant as it is`}
	}
	// A pattern means what is there, not where a link leads; a link named
	// explicitly is followed.
	matches = slices.DeleteFunc(matches, func(path string) bool {
		info, err := os.Lstat(path)
		return err == nil && info.Mode()&fs.ModeSymlink != 0
	})
	if len(matches) == 0 {
		return []string{arg}, nil // there is no such path, which is reported as such
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
