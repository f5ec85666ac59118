package get

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/scan"
	"github.com/packs-mcp/packs-mcp/internal/sources/change"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// shown is how many files and tools a plan names, and shownLines how many of their
// lines it shows.
const (
	shown      = 20
	shownLines = 60
)

// lineMark begins each line of a pack's file, so that none looks like a line of the
// plan.
const lineMark = "  | "

func signedBy(e lock.Entry) string { return safetext.Line(trust.Words(e.Signature)) }

// show prints what would be added or changed, on standard error, since it is not the
// command's output. With whole, it leaves nothing out.
func (a *app) show(it *item, whole bool) {
	w := a.Stderr
	state := "new"
	switch {
	case it.moved():
		state = "another source"
	case it.before != nil:
		state = "another version"
	}
	if it.before != nil && len(it.change.Files) == 0 {
		state += ", the same files"
	}
	fmt.Fprintf(w, "%s (%s)\n", safetext.Line(it.id), state)
	from, folder := safetext.Line(it.entry.Resolved), safetext.Line(it.entry.Path)
	if it.moved() {
		from += ", before: " + safetext.Line(it.before.Resolved)
		if it.before.Path != it.entry.Path {
			folder = fmt.Sprintf("%s, before: %s", cmp.Or(folder, "."), cmp.Or(safetext.Line(it.before.Path), "."))
		}
	}
	fmt.Fprintf(w, "  from     %s\n", from)
	if folder != "" {
		fmt.Fprintf(w, "  folder   %s\n", folder)
	}
	if it.unchecked != "" {
		fmt.Fprintf(w, "  signed   not checked: %s\n", cli.OneLine(it.unchecked, 400))
	} else {
		fmt.Fprintf(w, "  signed   by %s\n", signedBy(it.entry))
	}
	if it.older != nil {
		fmt.Fprintf(w, "  older    than what is here: %s, before: %s\n", safetext.Line(it.older.New), safetext.Line(it.older.Old))
	}
	if s := it.entry.Signature; s != nil && s.Kind == trust.KindSigstore && it.root != "" {
		fmt.Fprintf(w, "           says the Sigstore service of %s\n", safetext.Line(it.root))
	}
	for _, line := range it.change.Pack {
		fmt.Fprintf(w, "  %s\n", cli.OneLine(line, 400))
	}
	counts := map[change.Kind]int{}
	for _, f := range it.change.Files {
		counts[f.Kind]++
	}
	fmt.Fprintf(w, "  files    %d new, %d changed, %d gone\n", counts[change.Added], counts[change.Changed], counts[change.Removed])
	if it.before != nil {
		for i, f := range it.change.Files {
			if i == shown && !whole {
				fmt.Fprintf(w, "           and %d more; packs-mcp diff shows all\n", len(it.change.Files)-shown)
				break
			}
			fmt.Fprintf(w, "           %s %s\n", sign(f.Kind), safetext.Line(f.Path))
		}
	}
	a.showLines(it.change.Files, whole)
	showTools(w, it.change.Tools, whole)
	showFindings(w, it.found)
	if it.before != nil && len(it.ends) > 0 {
		fmt.Fprintf(w, "  answers  %s: it is asked about again\n", cli.Counted(len(it.ends), "lasting answer to this pack ends", "lasting answers to this pack end"))
	}
}

// showLines prints which lines of files differ.
func (a *app) showLines(all []change.File, whole bool) {
	s := a.Screen(a.Stderr)
	left := shownLines
	for _, f := range all {
		lines := f.Lines()
		if len(lines) == 0 {
			continue
		}
		if left == 0 {
			fmt.Fprintln(a.Stderr, "  more lines are in: packs-mcp diff")
			return
		}
		fmt.Fprintf(a.Stderr, "  in       %s\n", safetext.Line(f.Path))
		for _, line := range lines {
			if left == 0 {
				fmt.Fprintln(a.Stderr, "           and more lines; packs-mcp diff shows them")
				break
			}
			if !whole {
				left--
			}
			for _, part := range parts(line, s.Width()-len(lineMark)) {
				fmt.Fprintf(a.Stderr, "%s%s\n", lineMark, s.Style(styleOf(line), part))
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

// showTools prints what tools would run and may do.
func showTools(w io.Writer, all []change.Tool, whole bool) {
	for i, t := range all {
		if i == shown && !whole {
			fmt.Fprintf(w, "           and %d more tools; --json has all\n", len(all)-shown)
			break
		}
		fmt.Fprintf(w, "  tool     %s %s\n", sign(t.Kind), safetext.Line(t.Name))
		for _, fact := range t.Facts {
			fmt.Fprintf(w, "             %s\n", cli.OneLine(fact, 400))
		}
	}
}

func sign(k change.Kind) string {
	switch k {
	case change.Added:
		return "+"
	case change.Removed:
		return "-"
	}
	return "~"
}

// showFindings prints how much the scan found, and the most important findings.
func showFindings(w io.Writer, found []scan.Finding) {
	fmt.Fprintf(w, "  scan     %s\n", scan.Summary(found))
	n := 0
	for _, f := range found {
		if f.Accepted != "" || !f.Severity.AtLeast(scan.High) {
			continue
		}
		if n++; n > shown {
			fmt.Fprintln(w, "           and more; packs-mcp scan shows all")
			break
		}
		fmt.Fprintf(w, "           %s: %s:%d: %s\n             %s\n             to accept it: --accept %s\n", f.Severity, safetext.Line(f.Path), f.Line, cli.OneLine(f.Quote, 160), cli.OneLine(f.Why, 200), f.Hash)
	}
}
