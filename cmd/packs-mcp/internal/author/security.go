package author

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/scan"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

// addSecurity adds the findings of a scan of path to the results for the same packs.
// If a pack has no result, it adds one. It leaves out the scan's hashes and policy,
// which belong to the command scan.
func addSecurity(ctx context.Context, path string, results []validatedPack) ([]validatedPack, error) {
	reports, err := scan.Folder(ctx, scanned(path))
	if errors.Is(err, scan.ErrNoPack) {
		return results, nil // a problem already says so
	}
	if err != nil {
		return nil, err
	}
	for _, report := range reports {
		i := slices.IndexFunc(results, func(r validatedPack) bool {
			return filepath.Clean(r.Path) == filepath.Clean(report.Path) || filepath.Clean(scanned(r.Path)) == filepath.Clean(report.Path)
		})
		if i < 0 {
			results = append(results, validatedPack{Path: report.Path, Valid: true})
			i = len(results) - 1
		}
		for _, f := range report.Findings {
			d := securityProblem(report, f)
			if d.Severity == diag.Error {
				results[i].Valid = false
			}
			results[i].Problems = append(results[i].Problems, d)
		}
		diag.Sort(results[i].Problems)
	}
	return results, nil
}

// scanned returns the folder of a document, since scans are of whole packs.
func scanned(path string) string {
	if ext := filepath.Ext(path); ext == ".md" || filepath.Base(path) == "tools.json" {
		return filepath.Dir(path)
	}
	return path
}

func securityProblem(report findings.Report, f findings.Finding) diag.Diagnostic {
	severity := diag.Info
	switch {
	case f.Severity.AtLeast(findings.High):
		severity = diag.Error
	case f.Severity.AtLeast(findings.Medium):
		severity = diag.Warning
	}
	file := filepath.Join(report.Path, filepath.FromSlash(f.Path))
	if filepath.Base(report.Path) == f.Path {
		file = report.Path
	}
	message := f.Why
	if f.Quote != "" {
		message += " Found: " + f.Quote
	}
	return diag.Diagnostic{Code: f.Rule, Severity: severity, File: file, Line: f.Line, Message: message, Hint: f.Fix}
}
