package cli

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// Infos with different hints are not folded together.
func TestFoldInfos(t *testing.T) {
	info := func(message, hint string) diag.Diagnostic {
		return diag.Diagnostic{Code: "key-unknown", Severity: diag.Info, File: "SKILL.md", Message: message, Hint: hint}
	}
	const general = "check its spelling"
	warning := info("w", general)
	warning.Severity = diag.Warning
	var got []string
	for _, d := range FoldInfos([]diag.Diagnostic{
		info("one", general), info("licence", "did you mean license?"), info("two", general), warning, info("verson", "did you mean version?"), info("three", general),
	}) {
		got = append(got, d.Message+": "+d.Hint)
	}
	want := "one (and 2 more like it): check its spelling; licence: did you mean license?; w: check its spelling; verson: did you mean version?"
	if got := strings.Join(got, "; "); got != want {
		t.Errorf("FoldInfos = %s, want %s", got, want)
	}
}
