package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table into docs/reference/configuration.md")

const (
	configurationPage = "../../docs/reference/configuration.md"
	tableBegin        = "<!-- The table is written by: go test ./internal/config -run TestKeysAreDocumented -update -->\n"
	tableEnd          = "<!-- end of the table -->\n"
)

// The page has every key, its variable, and what it may be, as this package reads them.
func TestKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile(configurationPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), tableBegin)
	table, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", configurationPage, tableBegin, tableEnd)
	}
	var want strings.Builder
	want.WriteString("\n| Key | Variable | Allowed |\n|---|---|---|\n")
	for _, k := range keys() {
		variable := envName(k.path)
		if k.path == "http.token" {
			variable = "PACKS_MCP_TOKEN"
		}
		allowed := strings.TrimPrefix(k.want, "want ")
		if k.list != "" {
			allowed = fmt.Sprintf("one or more: %s; in the variable, `%s` separates them", allowed, k.list)
		}
		fmt.Fprintf(&want, "| `%s` | `%s` | %s |\n", k.path, variable, allowed)
	}
	want.WriteString("\n")
	if *update {
		if err := os.WriteFile(configurationPage, []byte(before+tableBegin+want.String()+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), table); diff != "" {
		t.Errorf("the table of %s differs; run this test with -update (-want +got):\n%s", configurationPage, diff)
	}
}
