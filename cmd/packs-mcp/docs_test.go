package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
)

// blocks returns the fenced blocks of a document in one language.
func blocks(t *testing.T, path, language string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	return found
}

// What people copy from the tutorial and the guides works.
func TestGuidesShowWhatWorks(t *testing.T) {
	guides, err := filepath.Glob(filepath.Join("..", "..", "docs", "how-to", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	toolFiles, documents := 0, 0
	for _, guide := range append(guides, filepath.Join("..", "..", "docs", "tutorial.md"), filepath.Join("..", "..", "docs", "reference", "clients.md")) {
		for _, block := range blocks(t, guide, "json") {
			if !json.Valid([]byte(block)) {
				t.Errorf("%s has a block that is not JSON:\n%s", guide, block)
			}
			if strings.Contains(block, `"tools"`) && !strings.Contains(block, `"mcpServers"`) {
				toolFiles++
				set, problems := toolsjson.Parse("tools.json", []byte(block), tools.Limits{})
				if set == nil || diag.HasErrors(problems) || len(problems) > 0 {
					t.Errorf("%s shows a tools.json that is not right: %v", guide, problems)
				}
			}
		}
		for _, block := range blocks(t, guide, "markdown") {
			documents++
			if doc, problems := frontmatter.Parse("SKILL.md", []byte(block)); doc == nil || len(problems) > 0 {
				t.Errorf("%s shows an entry document that is not right: %v", guide, problems)
			}
		}
	}
	if toolFiles < 2 || documents < 1 {
		t.Errorf("the guides show %d tools.json and %d entry documents, want at least 2 and 1", toolFiles, documents)
	}
}
