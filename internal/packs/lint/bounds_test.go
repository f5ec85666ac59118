package lint

import (
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// What a bound left out was not checked, and is no success under --strict.
func TestWhatWasLeftOutIsTold(t *testing.T) {
	dir := writeTree(t, []txtar.File{
		{Name: "p/SKILL.md", Data: []byte(validPack)},
		{Name: strings.Repeat("d/", 17) + "SKILL.md", Data: []byte(validPack)},
	})
	for _, strict := range []bool{false, true} {
		report := check(t, dir, Options{Strict: strict})
		if got := codes(report); !slices.Equal(got, []string{packs.CodeTooDeep}) || report.Valid() == strict {
			t.Errorf("strict %v: codes %v, valid %v, want %s and %v", strict, got, report.Valid(), packs.CodeTooDeep, !strict)
		}
	}
}
