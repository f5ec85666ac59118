package scan

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// No finding of high or above is wrong in 259 real packs, some of which teach how to
// find attacks. If a changed rule finds something here, read it, and either fix the
// rule or add the correct finding to known.
func TestRealPacks(t *testing.T) {
	known := []string{} // :: rule and path of correct findings
	root := realPacks(t)
	packs := 0
	for _, dir := range []string{root, filepath.Join(root, "dotnet", "skills", ".agents", "skills")} { // hidden folders are not searched for packs
		reports, err := Folder(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range reports {
			packs += len(r.Packs)
			for _, f := range r.Findings {
				if f.Severity.AtLeast(high) && !slices.Contains(known, f.Rule+" "+f.Path) {
					t.Errorf("%s: %s (%s) at %s:%d: %s", r.Path, f.Rule, f.Severity, f.Path, f.Line, f.Quote)
				}
			}
		}
	}
	if packs != 259 {
		t.Errorf("%d packs, want 259", packs)
	}
}

// realPacks unpacks the packs beside the repository. It skips the test if they are
// missing, unless PACKS_MCP_REQUIRE has "corpora".
func realPacks(t *testing.T) string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "corpora", "packs.tar.gz"))
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
			t.Fatalf("corpora: %v", err)
		}
		t.Skip("corpora: packs.tar.gz is not there")
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "packs")
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, filepath.FromSlash(path.Clean(h.Name))), string(text))
	}
}
