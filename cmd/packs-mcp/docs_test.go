package main

import (
	"encoding/json"
	"os"
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
	if len(found) == 0 {
		t.Fatalf("%s has no block in %s", path, language)
	}
	return found
}

func TestREADMEShowsWhatWorks(t *testing.T) {
	for _, block := range blocks(t, "../../README.md", "json") {
		if !json.Valid([]byte(block)) {
			t.Errorf("README.md has a block that is not JSON:\n%s", block)
		}
		if strings.Contains(block, `"tools"`) {
			set, problems := toolsjson.Parse("tools.json", []byte(block), tools.Limits{})
			if set == nil || diag.HasErrors(problems) || len(problems) > 0 {
				t.Errorf("README.md shows a tools.json that is not right: %v", problems)
			}
		}
	}
	for _, block := range blocks(t, "../../README.md", "markdown") {
		if doc, problems := frontmatter.Parse("SKILL.md", []byte(block)); doc == nil || len(problems) > 0 {
			t.Errorf("README.md shows an entry document that is not right: %v", problems)
		}
	}
}
