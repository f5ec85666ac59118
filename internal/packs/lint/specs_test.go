package lint

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEverySectionHasALine holds docs/specs.md against the numbered sections
// of the specifications that have numbers.
func TestEverySectionHasALine(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/specs.md")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`^#{2,3} (\d+(?:\.\d+)?)\.? `)
	for _, spec := range []string{"capability-packs.md", "skill-md-tools.md"} {
		text, err := os.ReadFile(shared(t, "specs/"+spec))
		if err != nil {
			t.Fatal(err)
		}
		_, part, found := strings.Cut(string(doc), "("+spec+")\n")
		if !found {
			t.Errorf("docs/specs.md has no part about %s", spec)
			continue
		}
		part, _, _ = strings.Cut(part, "\n## ")
		fenced := false
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			m := number.FindStringSubmatch(line)
			if fenced || m == nil {
				continue
			}
			// A section with parts of its own has lines for these.
			if !strings.Contains(part, "\n| "+m[1]+" ") && !strings.Contains(part, "\n| "+m[1]+".") {
				t.Errorf("docs/specs.md has no line about section %s of %s", m[1], spec)
			}
		}
	}
}
