package lint

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEverySectionHasALine holds docs/specs.md against the specifications:
// each heading has one row of its own, and so has each of skillkit's edge cases.
func TestEverySectionHasALine(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/specs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"capability-packs.md", "skill-md-tools.md", "tool-packs.md", "skillkit.md", "unified-skills.md"} {
		t.Run(spec, func(t *testing.T) {
			text, err := os.ReadFile(shared(t, "specs/"+spec))
			if err != nil {
				t.Fatal(err)
			}
			_, part, found := strings.Cut(string(doc), "("+spec+")\n")
			if !found {
				t.Fatalf("docs/specs.md has no part about %s", spec)
			}
			part, _, _ = strings.Cut(part, "\n## ")
			rows := map[string]int{} // :: section → how many rows are about it
			for line := range strings.Lines(part) {
				cells := strings.Split(line, " | ")
				if len(cells) < 2 || !strings.HasPrefix(line, "| ") {
					continue
				}
				if here := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(cells[1]), "|")); here != "" {
					rows[sectionKey(strings.TrimPrefix(cells[0], "| "))]++
				}
			}
			wanted := specSections(string(text))
			if len(wanted) == 0 {
				t.Errorf("%s has no sections", spec)
			}
			for _, s := range wanted {
				if n := rows[sectionKey(s)]; n != 1 {
					t.Errorf("docs/specs.md has %d rows about %q of %s, want 1", n, s, spec)
				}
			}
		})
	}
}

// specSections returns what of a specification has a row of its own.
func specSections(text string) []string {
	var all []string
	fenced, cases := false, 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		if m := specHeading.FindStringSubmatch(line); m != nil {
			all = append(all, m[1])
		}
		if strings.HasPrefix(line, "- **What happens when ") {
			cases++
			all = append(all, fmt.Sprintf("Edge case %d", cases))
		}
	}
	return all
}

var (
	specHeading = regexp.MustCompile(`^#{2,4} (.*\S)`)
	specNumber  = regexp.MustCompile(`^(\d+(?:\.\d+)*)\.? |^(edge case \d+)\b`)
	specAside   = regexp.MustCompile(` \*?\([^()]*\)\*?$`)
)

// sectionKey is what a heading and its row have in common: the number, or the
// title without what is in parentheses at its end.
func sectionKey(title string) string {
	title = strings.ToLower(strings.TrimSpace(title))
	if m := specNumber.FindStringSubmatch(title + " "); m != nil {
		return m[1] + m[2]
	}
	return specAside.ReplaceAllString(title, "")
}
