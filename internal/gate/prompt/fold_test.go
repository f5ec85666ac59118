package prompt

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A folded card keeps what matters, and counts what it leaves out.
func TestFolded(t *testing.T) {
	changed := Fact{Role: "new", Section: SectionChange, Label: "CHANGED", Value: "x", Weight: Plain}
	unknown := Fact{Role: "new", Section: "new", Label: "other", Value: "x"} // of an unknown weight
	unknown2 := Fact{Role: "new", Section: SectionRun, Label: "new", Value: "x", Weight: Plain}
	variable := Fact{Role: RoleVariable, Section: SectionRun, Label: "variable", Value: "A=b", Weight: Notice}
	network := Fact{Role: RoleNetwork, Section: SectionAccess, Label: "network", Value: "none", Weight: Plain}
	argument := Fact{Role: RoleArgument, Section: SectionRun, Label: "argument 1", Value: "x", Weight: Plain}
	c := Card{
		Title: "Run?", Command: "git log", Marks: []Mark{{Text: "no network", Weight: Plain}},
		Facts:  []Fact{changed, network, argument, variable, unknown, unknown2},
		Quotes: []Quote{{Who: "The pack", Text: "fine"}},
	}
	got, left := c.Folded()
	want := Card{Title: c.Title, Command: c.Command, Marks: c.Marks, Facts: []Fact{changed, network, variable, unknown, unknown2}}
	if diff := cmp.Diff(want, got); diff != "" || left != 2 {
		t.Errorf("Folded() leaves out %d, want 2; it differs (-want +got):\n%s", left, diff)
	}
	if len(c.Facts) != 6 || len(c.Quotes) != 1 {
		t.Error("Folded() changed the card")
	}
}
