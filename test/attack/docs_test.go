package attack_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/test/attack"
)

var update = flag.Bool("update", false, "write the table into docs/reference/sandbox.md")

const (
	docsPage   = "../../docs/reference/sandbox.md"
	tableBegin = "<!-- The table is written by: go test ./test/attack -run TestDocs -update -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// The page shows the table that the tests use.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), tableBegin)
	table, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", docsPage, tableBegin, tableEnd)
	}
	want := markdown(attack.Sections())
	if *update {
		if err := os.WriteFile(docsPage, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("the table of %s differs; run this test with -update (-want +got):\n%s", docsPage, diff)
	}
}

// markdown formats the table for a page.
func markdown(sections []attack.Section) string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "\n### %s\n\n", s.Title)
		if s.Note != "" {
			fmt.Fprintf(&b, "%s\n\n", s.Note)
		}
		b.WriteString("| A program tries to … | `full` | `partial` | `partial`, without Landlock |\n|---|---|---|---|\n")
		for _, row := range s.Rows {
			alone := cell(row.Want.Landlock)
			if row.Root != "" && row.Root != row.Want.Landlock {
				alone += "; root: " + cell(row.Root)
			}
			does := row.Does
			if row.NoListener != "" && row.NoListener != row.Want.Full {
				does += " (where the filter can ask nobody: " + cell(row.NoListener) + ")"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", does, cell(row.Want.Full), alone, cell(row.Want.Namespaces))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// cell formats an outcome.
func cell(want string) string {
	switch {
	case want == "ok":
		return "**yes**"
	case want == "not started":
		return "not started"
	case strings.ToUpper(want) == want: // errnos and signals
		return "no, `" + strings.ReplaceAll(want, "|", "` or `") + "`"
	}
	return "no"
}
