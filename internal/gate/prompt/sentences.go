package prompt

import (
	"fmt"
	"strings"
)

// Sentences returns the card for somebody who uses a screen reader: one sentence or
// fact on each line, each with its label, without drawings or columns. If whole is
// false, it returns only what a person needs at first, as [Card.Summary] does.
func (c *Card) Sentences(whole bool) string {
	var b strings.Builder
	fmt.Fprintln(&b, c.Title)
	if c.Command != "" {
		fmt.Fprintf(&b, "It would run this command: %s\n", c.Command)
	}
	for _, m := range c.Marks {
		kind := "Note"
		if m.Weight == Danger {
			kind = "Caution"
		}
		fmt.Fprintf(&b, "%s: %s.\n", kind, m.Text)
	}
	if !whole {
		return b.String()
	}
	for title, facts := range c.sections() {
		fmt.Fprintf(&b, "%s:\n", title)
		for _, f := range facts {
			fmt.Fprintf(&b, "%s: %s\n", f.Label, f.Value) // the label each time, so that none is lost
		}
	}
	for _, q := range c.Quotes {
		fmt.Fprintf(&b, "%s:\n", q.Who)
		for line := range strings.SplitSeq(q.Text, "\n") {
			fmt.Fprintf(&b, "%s%s\n", quoteMark, line)
		}
	}
	return b.String()
}
