package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// OneLine returns text on one line, escaped and cut to max characters.
func OneLine(text string, max int) string {
	r := []rune(safetext.Line(strings.Join(strings.Fields(text), " ")))
	if len(r) > max {
		return string(r[:max-1]) + "…"
	}
	return string(r)
}

// PrintProblem prints a problem and what to do about it.
func PrintProblem(w io.Writer, d diag.Diagnostic) {
	fmt.Fprintf(w, "%s: %s\n", d.Severity, safetext.Line(d.String()))
	if d.Hint != "" {
		fmt.Fprintf(w, "    hint: %s\n", safetext.Line(d.Hint))
	}
}

// FoldInfos returns problems in their order, with one info in place of all that have
// the same code, file and hint. An info with a hint of its own, such as "did you
// mean", says more and stays.
func FoldInfos(problems []diag.Diagnostic) []diag.Diagnostic {
	type kind struct{ code, file, hint string }
	count := make(map[kind]int)
	for _, d := range problems {
		if d.Severity == diag.Info {
			count[kind{d.Code, d.File, d.Hint}]++
		}
	}
	var folded []diag.Diagnostic
	for _, d := range problems {
		if d.Severity == diag.Info {
			n := count[kind{d.Code, d.File, d.Hint}]
			if n == 0 {
				continue // printed with the first
			}
			count[kind{d.Code, d.File, d.Hint}] = 0
			if n > 1 {
				d.Message += fmt.Sprintf(" (and %d more like it)", n-1)
			}
		}
		folded = append(folded, d)
	}
	return folded
}

// PrintFinding prints a problem with its place in the form that editors
// recognize.
func PrintFinding(w io.Writer, d diag.Diagnostic) {
	note := ""
	if d.Severity != diag.Error {
		note = " (" + string(d.Severity) + ")"
	}
	fmt.Fprintf(w, "%s%s\n", safetext.Line(d.String()), note)
	if d.Hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", safetext.Line(d.Hint))
	}
}

// Counted returns a number with its noun: "1 problem", "2 problems".
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
