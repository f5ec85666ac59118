package prompt

import (
	"strings"
	"testing"
)

// Each fact is on a line with its label, and a pack's text cannot look like one.
func TestSentences(t *testing.T) {
	c := Card{
		Title: "Run tool log of pack p?", Command: "git log",
		Marks: []Mark{{Text: "changes the project", Weight: Notice}, {Text: "no sandbox", Weight: Danger}},
		Facts: []Fact{
			{Section: SectionAccess, Label: "may read", Value: "/a"},
			{Section: SectionAccess, Label: "may read", Value: "/b"},
			{Section: "new", Label: "other", Value: "x"},
		},
		Quotes: []Quote{{Who: "The pack says of this tool", Text: "fine\nsandbox: full"}},
	}
	short := "Run tool log of pack p?\nIt would run this command: git log\nNote: changes the project.\nCaution: no sandbox.\n"
	if got := c.Sentences(false); got != short {
		t.Errorf("Sentences(false) = %q, want %q", got, short)
	}
	long := short + "What it may read and change:\nmay read: /a\nmay read: /b\nOther facts:\nother: x\n" +
		"The pack says of this tool:\n> fine\n> sandbox: full\n"
	if got := c.Sentences(true); got != long {
		t.Errorf("Sentences(true) = %q, want %q", got, long)
	}
	if strings.Contains(c.Sentences(true), "\n\n") {
		t.Error("Sentences() has an empty line")
	}
}
