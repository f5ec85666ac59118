// Package shown prints what a person sees of a pack before it is added, changed or published:
// changed lines of its files, its tools, and what the scan found. It asks nothing.
package shown

import (
	"fmt"
	"io"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/sources/change"
)

// Most is how many files and tools a plan names, and shownLines how many of their
// lines it shows.
const (
	Most       = 20
	shownLines = 60
)

// lineMark begins each line of a pack's file, so that none looks like a line of the
// plan.
const lineMark = "  | "

// Lines prints which lines of files differ.
func Lines(w io.Writer, s *cli.Screen, all []change.File, whole bool) {
	left := shownLines
	for _, f := range all {
		lines := f.Lines()
		if len(lines) == 0 {
			continue
		}
		if left == 0 {
			fmt.Fprintln(w, "  more lines are in: packs-mcp diff")
			return
		}
		fmt.Fprintf(w, "  in       %s\n", safetext.Line(f.Path))
		for _, line := range lines {
			if left == 0 {
				fmt.Fprintln(w, "           and more lines; packs-mcp diff shows them")
				break
			}
			if !whole {
				left--
			}
			for _, part := range parts(line, s.Width()-len(lineMark)) {
				fmt.Fprintf(w, "%s%s\n", lineMark, s.Style(styleOf(line), part))
			}
		}
	}
}

// parts breaks a line for a terminal with this many columns, so that no continuation
// begins in the first column. If columns is 0 or less, it breaks nothing.
func parts(line string, columns int) []string {
	var all []string
	begin, width := 0, 0
	for i, r := range line {
		n := cli.Columns(string(r))
		if columns > 0 && width+n > columns && i > begin {
			all = append(all, line[begin:i])
			begin, width = i, 0
		}
		width += n
	}
	return append(all, line[begin:])
}

// styleOf returns the style of a line in a diff.
func styleOf(line string) cli.Style {
	switch {
	case strings.HasPrefix(line, "+"):
		return cli.Green
	case strings.HasPrefix(line, "-"):
		return cli.Red
	case strings.HasPrefix(line, "@@"):
		return cli.Cyan
	}
	return ""
}

// Tools prints what tools would run and may do.
func Tools(w io.Writer, all []change.Tool, whole bool) {
	for i, t := range all {
		if i == Most && !whole {
			fmt.Fprintf(w, "           and %d more tools; --json has all\n", len(all)-Most)
			break
		}
		fmt.Fprintf(w, "  tool     %s %s\n", Mark(t.Kind), safetext.Line(t.Name))
		for _, fact := range t.Facts {
			fmt.Fprintf(w, "             %s\n", cli.OneLine(fact, 400))
		}
	}
}

// Mark returns "+", "-" or "~" for a kind of change.
func Mark(k change.Kind) string {
	switch k {
	case change.Added:
		return "+"
	case change.Removed:
		return "-"
	}
	return "~"
}

// Findings prints how much the scan found, and the most important findings.
func Findings(w io.Writer, found []findings.Finding) {
	fmt.Fprintf(w, "  scan     %s\n", findings.Summary(found))
	n := 0
	for _, f := range found {
		if f.Accepted != "" || !f.Severity.AtLeast(findings.High) {
			continue
		}
		if n++; n > Most {
			fmt.Fprintln(w, "           and more; packs-mcp scan shows all")
			break
		}
		fmt.Fprintf(w, "           %s: %s:%d: %s\n             %s\n             to accept it: --accept %s\n", f.Severity, safetext.Line(f.Path), f.Line, cli.OneLine(f.Quote, 160), cli.OneLine(f.Why, 200), f.Hash)
	}
}
