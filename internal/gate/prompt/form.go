package prompt

import (
	"fmt"
	"slices"
	"strings"
)

// formWidth is how many columns each of a form's first three lines has at most. Some
// clients show only three rows of a message, and a terminal of 80 columns has a frame
// around them.
const formWidth = 72

// A Form is the question as a client's own form shows it.
type Form struct {
	Card
	Pack    string   // as [Name] gives it
	See     string   // how to see all of it elsewhere: "packs-mcp approvals show K7QM-2F9X"; empty: nothing shows it
	Answers []string // a sentence for each choice
}

// Text returns the form's message. Its first three lines are for the smallest
// windows: what happens, what matters about it, and where to see all of it. They say
// what they leave out. The answers and all facts follow.
//
// A fact is one line, however long, since clients wrap lines themselves. All our
// lines except the first begin with [marker], which no text from others contains. So
// wherever a client breaks a line, the rest cannot look like another fact. Clients
// that render Markdown show the command, and everything below the three lines, as
// code.
func (f *Form) Text() string {
	var b strings.Builder
	put := func(indent, text string) { fmt.Fprintf(&b, "%s%s %s\n", indent, marker, text) }
	fmt.Fprintln(&b, f.first())
	put("", f.matters())
	put("", f.where())
	b.WriteByte('\n')
	const margin = "    " // makes the lines code in Markdown
	put(margin, f.Title)
	for _, a := range f.Answers {
		put(margin, a)
	}
	for _, facts := range f.sections() {
		for _, fact := range facts {
			put(margin, fact.Label+": "+fact.Value)
		}
	}
	for _, q := range f.Quotes {
		put(margin, q.Who+":")
		for line := range strings.SplitSeq(q.Text, "\n") {
			fmt.Fprintln(&b, strings.TrimRight(margin+"  > "+line, " "))
		}
	}
	return b.String()
}

// first returns what happens: the command in a code span, or the title.
func (f *Form) first() string {
	if f.Command == "" {
		return cut(f.Title, formWidth)
	}
	// The fence of a code span is longer than any row of backticks in it.
	fence, command := "`", f.Command
	for strings.Contains(command, fence) {
		fence += "`"
	}
	const most = 3
	if len(fence) > most { // a longer fence would leave no room for the command
		fence, command = "`", strings.ReplaceAll(command, "`", `\140`)
	}
	return fence + cut(command, formWidth-2*len(fence)) + fence
}

// matters returns the marks: those of danger in capitals, and as many of the others
// as fit. It says if some do not.
func (f *Form) matters() string {
	room := formWidth - columns(marker+" ")
	texts := f.markTexts(false)
	all := strings.Join(texts, ", ")
	if columns(all) > room {
		texts = f.markTexts(true)
		all = strings.Join(texts, ", ")
	}
	for n := len(texts) - 1; n > 0 && columns(all) > room; n-- {
		all = fmt.Sprintf("%s, and %d more", strings.Join(texts[:n], ", "), len(texts)-n)
	}
	return cut(all, room)
}

// markTexts returns the marks as a form shows them. With short, those of danger
// always fit into a line, and those about variables become one, with their number.
func (f *Form) markTexts(short bool) []string {
	var texts []string
	variables := 0
	for _, fact := range f.Facts {
		if fact.Role == RoleVariable && fact.Weight != Plain {
			variables++
		}
	}
	for _, m := range f.Marks {
		switch {
		case m.Role == RoleChange && short:
			texts = append(texts, "CHANGED")
		case m.Role == RoleChange:
			texts = append(texts, "CHANGED since your answer") // a fact says which answer
		case m.Weight == Danger:
			texts = append(texts, strings.ToUpper(m.Text))
		case short && m.Role == RoleVariable:
			texts = append(texts, plural(variables, "variable"))
		default:
			texts = append(texts, m.Text)
		}
	}
	return slices.Compact(texts)
}

// where returns the pack and where to see the whole question.
func (f *Form) where() string {
	see := "All of it is below."
	if f.See != "" {
		see = "See all: " + f.See
	}
	pack := f.Pack
	if room := formWidth - columns(marker+" Pack . "+see); columns(pack) > room {
		pack = pack[:room-columns("…")] + "…" // the title has the whole name, and names are ASCII
	}
	return "Pack " + pack + ". " + see
}

// cut returns s in at most width columns, with its length if some of it is left out.
func cut(s string, width int) string {
	if len(s) <= width { // ASCII, in nearly all cases
		return s
	}
	if columns(s) <= width {
		return s
	}
	runes := []rune(s)
	tail := fmt.Sprintf("… (%d characters)", len(runes))
	width -= columns(tail)
	for i, r := range runes {
		if width -= columnsOf(r); width < 0 {
			return string(runes[:i]) + tail
		}
	}
	return s
}
