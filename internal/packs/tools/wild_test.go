package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// Real files that declare tools seldom say how to run them. Those that give a
// list of arguments do; nothing of the others may ever run.
func TestWildFiles(t *testing.T) {
	src, err := os.ReadFile(filepath.FromSlash("../../../../shared/data/tool-manifests.json"))
	if os.IsNotExist(err) {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
			t.Fatalf("corpora are required: %v", err)
		}
		t.Skip("corpora: the collection of real files is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Samples []struct {
			Path, Shape string
			Content     json.RawMessage
		}
	}
	if err := json.Unmarshal(src, &data); err != nil {
		t.Fatal(err)
	}
	for _, s := range data.Samples {
		if len(s.Content) == 0 {
			continue
		}
		set, found := ParseToolsJSON(s.Path, s.Content, Limits{})
		if (set == nil) != diag.HasErrors(found) {
			t.Errorf("ParseToolsJSON of %s = %v with %v", s.Path, set, found)
		}
		if set == nil {
			t.Logf("%s (%s): %v", s.Path, s.Shape, found[0])
			continue
		}
		t.Logf("%s (%s): %d tools, %d diagnostics", s.Path, s.Shape, len(set.Tools), len(found))
		for _, tool := range set.Tools {
			argv := strings.Contains(s.Shape, "command:list")
			if (tool.Command != nil) != argv || (tool.DeclaredOnly == "") != argv {
				t.Errorf("ParseToolsJSON of %s: command of %s = %v, declared only because %q; the file gives arguments: %v", s.Path, tool.Name, tool.Command, tool.DeclaredOnly, argv)
			}
		}
	}
}
