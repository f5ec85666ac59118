package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A table holds the numbers of one subject.
type table struct {
	title string
	about string // what was measured, and how
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// text prints the table for a terminal: the first column left-aligned, the rest
// right-aligned.
func (t *table) text(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n  %s\n\n", t.title, strings.ReplaceAll(t.about, "\n", "\n  "))
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range append([][]string{t.head}, t.rows...) {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString("  " + cell + pad)
			} else {
				line.WriteString("   " + pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// markdown prints the table in Markdown.
func (t *table) markdown(w io.Writer) {
	fmt.Fprintf(w, "\n### %s\n\n%s\n\n", t.title, t.about)
	rule := slices.Repeat([]string{"---:"}, len(t.head))
	rule[0] = "---"
	for _, row := range append([][]string{t.head, rule}, t.rows...) {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}

// none stands for an empty cell.
const none = "–"

// A budget is the most that something may cost. The zero value means none.
type budget struct {
	most  float64
	words string // in words, including what it is relative to
}

// cells returns the budget, and whether a value is within it.
func (m budget) cells(value float64) []string {
	switch {
	case m.words == "":
		return []string{"", ""}
	case value <= m.most:
		return []string{"≤ " + m.words, "met"}
	}
	return []string{"≤ " + m.words, "missed"}
}

// Times are measurements of one thing.
type times []time.Duration

// at returns the given percentile.
func (t times) at(percent int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	t = slices.Clone(t)
	slices.Sort(t)
	return t[min(len(t)-1, len(t)*percent/100)]
}

func (t times) median() time.Duration { return t.at(50) }
func (t times) least() time.Duration  { return t.at(0) }

// ms formats a duration in milliseconds with a sensible number of digits.
func ms(d time.Duration) string {
	switch v := float64(d) / float64(time.Millisecond); {
	case d == 0:
		return none
	case v < 1:
		return fmt.Sprintf("%.3f ms", v)
	case v < 10:
		return fmt.Sprintf("%.2f ms", v)
	case v < 100:
		return fmt.Sprintf("%.1f ms", v)
	default:
		return fmt.Sprintf("%.0f ms", v)
	}
}

// ratio returns a divided by b; 0 if undefined.
func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// fold formats a ratio.
func fold(r float64) string {
	if r == 0 {
		return none
	}
	return fmt.Sprintf("%.2f ×", r)
}

// mib formats a number of bytes.
func mib(n int64) string {
	if n == 0 {
		return none
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// count formats a number for people.
func count(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", count(n/1000), n%1000)
}
