package scan

import (
	"os"
	"path/filepath"
	"testing"
)

// Honest scripts that look like attacks at first have no finding of high or above. Some
// resemble real scripts in which a rule once had a false positive.
func TestHonestScripts(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "scripts", "*"))
	if err != nil || len(names) < 30 {
		t.Fatalf("testdata/scripts has %d scripts (%v), want at least 30", len(names), err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "pack")
		write(t, filepath.Join(dir, "SKILL.md"), entryText)
		write(t, filepath.Join(dir, "scripts", filepath.Base(name)), string(text))
		for _, f := range one(t, dir).Findings {
			if f.Severity.AtLeast(high) {
				t.Errorf("%s (%s) at %s:%d: %s", f.Rule, f.Severity, f.Path, f.Line, f.Quote)
			}
		}
	}
}
