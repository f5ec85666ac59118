// Package scancmd has the command scan, which tells a person what to know about packs
// before using them.
//
// Package internal/scan finds problems and rates them. This package runs nothing from
// a pack and changes nothing.
package scancmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/scan"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

// An app is one run of the program; its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the command scan.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{a.scanCommand()}
}

func formats() []string { return []string{"text", "json", "sarif", "markdown"} }

// failWords returns the severities that --fail-on accepts. It leaves out the lowest:
// what a pack merely asks for is no reason to refuse it.
func failWords() []string { return findings.Severities()[:findings.Info] }

func (a *app) scanCommand() *cobra.Command {
	var format, failOn, policy string
	cmd := &cobra.Command{
		Use:   "scan PATH|ID...",
		Short: "Look for attacks in packs, and say what they ask for",
		Long: `Look at packs before you use them: texts aimed at a model, hidden text, commands that
attack, what tools declare, and files that nobody can read. PATH is a folder that is or holds
packs, or a *.tool.json; what is no path is the ID of a pack that list --all shows. Every
finding has a rule, a place, what was found, why it matters and what to do; docs/reference/scan.md
explains the rules. Nothing is run, and nothing is sent anywhere. A scan knows shapes and
wordings: that it finds nothing is no proof that a pack is harmless.

A policy sets severities, switches rules off, and accepts findings by their hash:

  fail_on: high
  rules:
    tool-network: "off"
  accept:
    - hash: sha256:…
      reason: We read the script; it fetches our own release.

The exit status is 0 when nothing of the severity of --fail-on or above is left, 4 when
something is, 1 when something cannot be scanned, and 2 for misuse or a wrong policy.`,
		Example: `  packs-mcp scan ./my-pack
  packs-mcp scan --fail-on medium --policy scan.yaml ./skills
  packs-mcp scan --format sarif ./skills > scan.sarif
  packs-mcp scan acme/triage`,
		Args: cli.Misuse(cobra.MinimumNArgs(1)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			ids, _ := a.CompletePacks(cmd, args, begun)
			return ids, cobra.ShellCompDirectiveDefault // folders can be named too
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(formats(), format) {
				return &cli.UsageError{Err: fmt.Errorf("--format is %q", format), Hint: "it must be text, json, sarif or markdown"}
			}
			if failOn != "" && !slices.Contains(failWords(), failOn) {
				return &cli.UsageError{Err: fmt.Errorf("--fail-on is %q", failOn), Hint: "it must be critical, high, medium or low"}
			}
			return a.scan(cmd.Context(), args, format, failOn, policy)
		},
	}
	a.PackFlags(cmd)
	cmd.Flags().StringVar(&format, "format", "text", "text, json, sarif or markdown")
	cmd.Flags().StringVar(&failOn, "fail-on", "", "the least severity that fails: critical, high, medium or low (default: that of the policy, or high)")
	cmd.Flags().StringVar(&policy, "policy", "", "the policy `FILE`")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failWords(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("policy", "yaml", "yml")
	return cmd
}

// A result is everything that is printed, in any format.
type result struct {
	reports []findings.Report
	failOn  findings.Severity
	fails   int
	unused  []findings.Acceptance
}

func (a *app) scan(ctx context.Context, args []string, format, failOn, policyFile string) error {
	policy := &findings.Policy{}
	if policyFile != "" {
		src, err := os.ReadFile(policyFile)
		if err != nil {
			return &cli.UsageError{Err: err, Hint: "name a policy that is there: --policy FILE"}
		}
		if policy, err = findings.ParsePolicy(policyFile, src); err != nil {
			return &cli.UsageError{Err: err, Hint: "correct the policy; nothing was scanned"}
		}
	}
	r := result{failOn: findings.High}
	if policy.HasFailOn {
		r.failOn = policy.FailOn
	}
	if failOn != "" {
		r.failOn, _ = findings.ParseSeverity(failOn)
	}
	reports, err := a.reports(ctx, args)
	if err != nil {
		return err
	}
	r.reports = reports
	r.unused = policy.Apply(r.reports)
	r.fails = findings.Fails(r.reports, r.failOn)
	if err := a.print(format, r); err != nil {
		return err
	}
	if r.fails > 0 {
		return &cli.StatusError{Err: cli.ErrSaid, Status: cli.StatusRefused}
	}
	return nil
}

// reports scans what the arguments name. A folder that two arguments lead to is
// scanned once.
func (a *app) reports(ctx context.Context, args []string) ([]findings.Report, error) {
	var all []findings.Report
	var catalog *packs.Catalog
	seen := make(map[string]bool)
	add := func(found ...findings.Report) {
		for _, r := range found {
			key, err := filepath.Abs(r.Path)
			if err != nil {
				key = r.Path
			}
			if !seen[key] {
				seen[key] = true
				all = append(all, r)
			}
		}
	}
	for _, arg := range args {
		if isPath(arg) {
			found, err := scan.Folder(ctx, filepath.Clean(arg))
			if err != nil {
				if errors.Is(err, scan.ErrNoPack) {
					err = cli.WithHint(err, "name a folder that is or holds packs; what is not scanned is not clean")
				}
				return nil, err
			}
			add(found...)
			continue
		}
		if catalog == nil {
			cfg, logger, err := a.Load()
			if err != nil {
				return nil, err
			}
			lib, err := a.Library(ctx, cfg, logger)
			if err != nil {
				return nil, err
			}
			catalog = lib.Catalog(ctx)
		}
		p, err := catalog.Lookup(arg)
		if err != nil {
			return nil, err
		}
		r, err := scan.Of(ctx, catalog, p)
		if err != nil {
			return nil, err
		}
		add(r)
	}
	return all, nil
}

// isPath reports whether an argument is a path and not an id: it exists, or is
// written like a path.
func isPath(arg string) bool {
	if _, err := os.Lstat(arg); err == nil {
		return true
	}
	return filepath.IsAbs(arg) || strings.HasPrefix(arg, ".") || strings.HasSuffix(arg, ".json") || strings.ContainsRune(arg, filepath.Separator) && filepath.Separator != '/'
}
