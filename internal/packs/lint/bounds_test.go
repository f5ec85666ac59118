package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// Under --strict, it is not a success if a bound left something unchecked.
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

// Each bound reports once what it left out, with the first path, and is not a success
// under --strict.
func TestChecksReportTheirBounds(t *testing.T) {
	fill := func(t *testing.T, dir string, files, each int, name, text string) {
		t.Helper()
		for n := range files {
			if n%each == 0 {
				if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("d%03d", n/each)), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("d%03d", n/each), fmt.Sprintf(name, n)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, dir string)
		file string // of the report
		want string
	}{
		{"documents", func(t *testing.T, dir string) { fill(t, dir, maxDocuments+2, 500, "%05d.md", "# Fine\n") }, "d000/00199.md", "3 documents"},
		{"a large document", func(t *testing.T, dir string) { fill(t, dir, 2, 1, "%d.md", strings.Repeat("x", maxDocument+1)) }, "d000/0.md", "2 documents of more than 1048576 bytes"},
		{"files", func(t *testing.T, dir string) { fill(t, dir, maxFiles+1, 900, "%05d", "") }, "d022/19999", "the pack has more than 20000 files"},
		{"deep folders", func(t *testing.T, dir string) {
			fill(t, filepath.Join(dir, strings.Repeat("x/", maxDepth)), 1, 1, "%d.md", "# Deep")
		}, strings.Repeat("x/", maxDepth) + "d000", "1 folder "},
		{"a long folder", func(t *testing.T, dir string) { fill(t, dir, 1001, 1001, "%05d", "") }, "d000", "1 folder of more than 1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}}), "p")
			tt.make(t, dir)
			for _, strict := range []bool{false, true} {
				report := check(t, dir, Options{Strict: strict})
				found := report.Packs[0].Problems
				if len(found) != 1 || found[0].Code != CodeNotChecked || found[0].File != filepath.Join(dir, filepath.FromSlash(tt.file)) || !strings.HasPrefix(found[0].Message, tt.want) || report.Valid() == strict {
					t.Errorf("strict %v: %v, valid %v; want %s for %s: %s…, and valid %v", strict, found, report.Valid(), CodeNotChecked, tt.file, tt.want, !strict)
				}
			}
		})
	}
}

// The report says so if a file has more suspect texts than are listed.
func TestMoreTextWarnings(t *testing.T) {
	keys := "---\nname: p\ndescription: d\nmetadata:\n"
	for n := range maxTextWarnings + 5 {
		keys += fmt.Sprintf("  k%02d: \"a\\u200bb\"\n", n)
	}
	dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(keys + "---\nText.\n")}})
	hidden, more := 0, 0
	for _, d := range check(t, filepath.Join(dir, "p"), Options{}).Packs[0].Problems {
		switch {
		case d.Code == CodeTextHidden:
			hidden++
		case d.Code == tools.CodeMore && d.Severity == diag.Info:
			more++
		}
	}
	if hidden != maxTextWarnings || more != 1 {
		t.Errorf("%d warnings and %d notes that there are more, want %d and 1", hidden, more, maxTextWarnings)
	}
}

func TestProgress(t *testing.T) {
	dir := writeTree(t, []txtar.File{
		{Name: "one/SKILL.md", Data: []byte(validPack)}, {Name: "two/SKILL.md", Data: []byte(validPack)}, {Name: "three/SKILL.md", Data: []byte(validPack)},
	})
	var told [][2]int
	check(t, dir, Options{Progress: func(done, all int) { told = append(told, [2]int{done, all}) }})
	if want := [][2]int{{0, 3}, {1, 3}, {2, 3}}; !slices.Equal(told, want) {
		t.Errorf("it tells %v, want %v", told, want)
	}
}
