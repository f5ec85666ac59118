package toolsjson_test

import (
	"flag"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden reads testdata/*.txtar: a tools.json, the calls to make
// (calls.txt, "TOOL JSON" a line; "@context JSON" says what the user's side knows
// from there on; "@printed TOOL EXIT JSON" says what a run of the tool printed),
// and what came of them (want.txt).
func TestGolden(t *testing.T) {
	tooltest.Goldens(t, *update, "testdata/*.txtar", func(files map[string]string) (*tools.Set, []diag.Diagnostic) {
		return toolsjson.Parse("tools.json", []byte(files["tools.json"]), tools.Limits{})
	})
}
