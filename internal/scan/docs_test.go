package scan

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

var update = flag.Bool("update", false, "write the table of docs/reference/scan.md")

// The table in docs/reference/scan.md matches the code.
func TestDocs(t *testing.T) {
	const name, begin, end = "../../docs/reference/scan.md", "<!-- rules: begin -->\n", "<!-- rules: end -->"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", name)
	}
	want := before + begin + rulesTable() + end + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is not as the code has it; run: go test ./internal/scan -run TestDocs -update", name)
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func rulesTable() string {
	var b strings.Builder
	class := ""
	for _, r := range findings.Rules() {
		if r.Class != class {
			class = r.Class
			fmt.Fprintf(&b, "\n### %s\n\n| Rule | At most | It means | Cure |\n|---|---|---|---|\n", class)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.ID, r.Severity, r.Why, r.Fix)
	}
	return b.String() + "\n"
}
