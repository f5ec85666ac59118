package safetext

import (
	"fmt"
	"strings"
)

// A Report counts the characters of a document that [Text] would escape. It is
// for the question whether the document may be opened, since the document itself
// is passed on verbatim. Each character is counted once.
type Report struct {
	Control   int // control characters, U+2028 and U+2029
	Bidi      int // bidirectional controls
	Invisible int // other format characters, selectors, private use, unassigned
	Tags      int // tag characters, an invisible copy of ASCII
	Blank     int // blank letters and symbols, spaces other than U+0020
	Marks     int // combining marks beyond the third on one character, or on none
	Invalid   int // bytes that are not UTF-8
}

// Inspect counts what [Text] would escape in b. It does not count a byte order
// mark at the very start, which belongs to the file and not to the text, or the
// carriage return of a CR LF pair. It counts innocent joiners, since they are
// escaped too: a number other than zero is a reason to look, not a verdict.
func Inspect(b []byte) Report {
	const bom = "\ufeff"
	if len(b) >= len(bom) && string(b[:len(bom)]) == bom {
		b = b[len(bom):]
	}
	var (
		rep Report
		w   walker
	)
	for len(b) > 0 {
		if n := visible(b); n > 0 {
			w.prev, w.marks = asciiBase(b[n-1]), 0
			b = b[n:]
			continue
		}
		// A few bytes at a time, so that a large file is not copied.
		_, size, c := w.next(string(b[:min(8, len(b))]))
		rep.count(c)
		b = b[size:]
	}
	return rep
}

// visible returns how many bytes at the start of b are visible ASCII or spaces, as in most
// documents. Their class does not depend on their neighbours.
func visible(b []byte) int {
	for i, c := range b {
		if c < ' ' || c > '~' {
			return i
		}
	}
	return len(b)
}

func (r *Report) count(c class) {
	switch c {
	case plain, layout, crlf:
	case control:
		r.Control++
	case bidi:
		r.Bidi++
	case tag:
		r.Tags++
	case invisible:
		r.Invisible++
	case blank:
		r.Blank++
	case mark:
		r.Marks++
	case invalid:
		r.Invalid++
	}
}

// Plus returns the sum of two reports.
func (r Report) Plus(other Report) Report {
	return Report{
		Control: r.Control + other.Control, Bidi: r.Bidi + other.Bidi, Invisible: r.Invisible + other.Invisible, Tags: r.Tags + other.Tags,
		Blank: r.Blank + other.Blank, Marks: r.Marks + other.Marks, Invalid: r.Invalid + other.Invalid,
	}
}

// Total returns how many characters were counted.
func (r Report) Total() int {
	return r.Control + r.Bidi + r.Invisible + r.Tags + r.Blank + r.Marks + r.Invalid
}

// String describes the report for a person, such as "3 invisible characters (2
// tag, 1 bidirectional)" or "no invisible characters". Kinds that are never
// innocent come first. It contains nothing of the document itself.
func (r Report) String() string {
	total := r.Total()
	if total == 0 {
		return "no invisible characters"
	}
	var kinds []string
	for _, k := range []struct {
		n    int
		name string
	}{
		{r.Tags, "tag"},
		{r.Bidi, "bidirectional"},
		{r.Control, "control"},
		{r.Blank, "blank"},
		{r.Marks, "stacked mark"},
		{r.Invalid, "not UTF-8"},
		{r.Invisible, "other"},
	} {
		if k.n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", k.n, k.name))
		}
	}
	noun := "invisible characters"
	if total == 1 {
		noun = "invisible character"
	}
	if r.Invisible == total {
		return fmt.Sprintf("%d %s", total, noun)
	}
	return fmt.Sprintf("%d %s (%s)", total, noun, strings.Join(kinds, ", "))
}
