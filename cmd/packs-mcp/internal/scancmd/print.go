package scancmd

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	toolformats "github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sarif"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

func (a *app) print(format string, r result) error {
	switch format {
	case "json":
		return a.printJSON(r)
	case "sarif":
		return cli.PrintJSON(a.Stdout, sarifLog(a.Version, r))
	case "markdown":
		a.printMarkdown(r)
	default:
		a.printText(r)
	}
	return nil
}

// place returns the path of a finding as the user would name it.
func place(r findings.Report, f findings.Finding) string {
	if filepath.Base(r.Path) == f.Path && toolformats.Of(f.Path) == toolformats.ToolPack {
		return r.Path // it is a single tool
	}
	return filepath.Join(r.Path, filepath.FromSlash(f.Path))
}

func (a *app) printText(r result) {
	for _, report := range r.reports {
		for _, f := range report.Findings {
			printFinding(a.Stdout, report, f)
		}
	}
	for _, u := range r.unused {
		fmt.Fprintf(a.Stderr, "warning: nothing has the accepted hash %s (%s)\n    hint: remove it from the policy: what it was for is gone, or changed\n", u.Hash, cli.OneLine(u.Reason, 80))
	}
	fmt.Fprintln(a.Stderr, tally(r))
}

func printFinding(w io.Writer, report findings.Report, f findings.Finding) {
	at := safetext.Line(place(report, f))
	if f.Line > 0 {
		at += fmt.Sprintf(":%d", f.Line)
	}
	about := ""
	if f.Tool != "" {
		about = " (tool " + f.Tool + ")"
	}
	fmt.Fprintf(w, "%s: %s: %s: %s%s\n", at, f.Severity, f.Rule, f.Why, about)
	if f.Quote != "" {
		fmt.Fprintf(w, "  found: %s\n", f.Quote)
	}
	if f.Accepted != "" {
		fmt.Fprintf(w, "  accepted: %s\n", safetext.Line(f.Accepted))
		return
	}
	fmt.Fprintf(w, "  hint: %s\n  hash: %s\n", f.Fix, f.Hash)
}

// counts returns how many findings of each severity were not accepted, and how many
// findings were.
func counts(reports []findings.Report) (of [findings.Info + 1]int, accepted int) {
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.Accepted != "" {
				accepted++
			} else {
				of[f.Severity]++
			}
		}
	}
	return of, accepted
}

// tally returns a one-line summary.
func tally(r result) string {
	packs, files := 0, 0
	for _, report := range r.reports {
		packs += len(report.Packs)
		files += report.Files
	}
	of, accepted := counts(r.reports)
	var parts []string
	for s, n := range of {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, findings.Severity(s)))
		}
	}
	if accepted > 0 {
		parts = append(parts, fmt.Sprintf("%d accepted", accepted))
	}
	found := strings.Join(parts, ", ")
	if found == "" {
		found = "nothing found"
	}
	verdict := ""
	if r.fails > 0 {
		verdict = fmt.Sprintf("; refused: %s of severity %s or above", cli.Counted(r.fails, "finding", "findings"), r.failOn)
	}
	return fmt.Sprintf("%s, %s scanned; %s%s", cli.Counted(packs, "pack", "packs"), cli.Counted(files, "file", "files"), found, verdict)
}

// scannedPack is one report in the form that scan --format json prints.
type scannedPack struct {
	Path     string             `json:"path"`
	Packs    []string           `json:"packs"`
	Files    int                `json:"files"`
	Findings []findings.Finding `json:"findings"`
}

func (a *app) printJSON(r result) error {
	out := struct {
		Rules   string            `json:"rules"` // which version of the rules was used
		FailOn  findings.Severity `json:"fail_on"`
		Refused bool              `json:"refused"`
		Packs   []scannedPack     `json:"packs"`
		Unused  []unusedAccept    `json:"unused,omitempty"`
	}{Rules: findings.RulesVersion, FailOn: r.failOn, Refused: r.fails > 0, Packs: []scannedPack{}}
	for _, report := range r.reports {
		found := report.Findings
		if found == nil {
			found = []findings.Finding{}
		}
		out.Packs = append(out.Packs, scannedPack{report.Path, report.Packs, report.Files, found})
	}
	for _, u := range r.unused {
		out.Unused = append(out.Unused, unusedAccept{u.Hash, u.Reason})
	}
	return cli.PrintJSON(a.Stdout, out)
}

type unusedAccept struct {
	Hash   string `json:"hash"`
	Reason string `json:"reason"`
}

// sarifLog returns a log for code hosts. It names every rule, so that code hosts
// close earlier findings of rules that now find nothing.
func sarifLog(version string, r result) *sarif.Log {
	tool := sarif.Tool{Name: "packs-mcp scan", Version: version, URI: "https://github.com/packs-mcp/packs-mcp/blob/main/docs/reference/scan.md"}
	for _, rule := range findings.Rules() {
		tool.Rules = append(tool.Rules, sarif.Rule{ID: rule.ID, Short: rule.Why, Help: rule.Fix, Level: level(rule.Severity), Score: score(rule.Severity)})
	}
	var results []sarif.Result
	for _, report := range r.reports {
		for _, f := range report.Findings {
			message := f.Why
			if f.Quote != "" {
				message += " Found: " + f.Quote
			}
			results = append(results, sarif.Result{
				Rule: f.Rule, Level: level(f.Severity), Message: message, File: place(report, f), Line: f.Line, Snippet: f.Quote,
				Fingerprint: f.Hash, Accepted: f.Accepted,
			})
		}
	}
	return sarif.New(tool, results)
}

func level(s findings.Severity) sarif.Level {
	switch {
	case s.AtLeast(findings.High):
		return sarif.Error
	case s.AtLeast(findings.Medium):
		return sarif.Warning
	}
	return sarif.Note
}

// score returns the number by which code hosts rank findings: 9.0 and above is
// critical, 7.0 high, 4.0 medium, and less is low.
func score(s findings.Severity) string {
	return []string{"9.5", "8.0", "5.0", "2.0", "0.1"}[s]
}

func (a *app) printMarkdown(r result) {
	w := a.Stdout
	fmt.Fprintf(w, "# Scan\n\n%s.\n", markdown(tally(r)))
	of, accepted := counts(r.reports)
	if of == ([findings.Info + 1]int{}) && accepted == 0 {
		return
	}
	fmt.Fprint(w, "\n| Severity | Rule | Where | What | Why, and what to do |\n|---|---|---|---|---|\n")
	for _, report := range r.reports {
		for _, f := range report.Findings {
			at := place(report, f)
			if f.Line > 0 {
				at += fmt.Sprintf(":%d", f.Line)
			}
			severity, todo := f.Severity.String(), f.Fix+" Hash: "+f.Hash
			if f.Accepted != "" {
				severity, todo = "accepted", f.Accepted
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", severity, f.Rule, markdown(at), markdown(f.Quote), markdown(f.Why+" "+todo))
		}
	}
}

// markdown returns a text that is plain text in a cell of a Markdown table: no link,
// no picture, no tag, no second cell.
func markdown(s string) string {
	var b strings.Builder
	for _, r := range safetext.Line(s) {
		if strings.ContainsRune("&<>|`*_[]()!#~\\@:{}$", r) {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
