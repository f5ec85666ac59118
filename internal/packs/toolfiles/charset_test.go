package toolfiles

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// A program's input bytes are never guessed: a document that is not UTF-8 is read,
// but declares no tools.
func TestNoToolsOfOtherCharsets(t *testing.T) {
	dir := writeTree(t, "-- a/x --\n")
	write(t, dir+"/a/SKILL.md", "---\nname: a\ndescription: Gr\xf6\xdfe\n---\n### greet\n\n#### Command\n\n```\necho caf\xe9\n```\n")
	p, err := scan(t, packs.Options{Roots: []packs.Root{{Dir: dir}}}).Lookup("a")
	if err != nil {
		t.Fatal(err)
	}
	if p.Description != "Größe" || !p.Valid {
		t.Errorf("the pack is %q, valid %v: want it read", p.Description, p.Valid)
	}
	set, problems, err := New(tools.Limits{}, "").Load(p)
	if err != nil || set != nil || len(problems) != 1 || problems[0].Code != tools.CodeNotUTF8 || !strings.Contains(problems[0].Message, "Latin-1") {
		t.Errorf("Load = %v, %v, %v, want no tools and why", set, problems, err)
	}
}
