package frontmatter

import (
	"encoding/binary"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
)

// A Summary is the part of a [Document] that a catalog of many packs keeps. It is
// immutable. It is a single string to save memory: its methods return parts of that
// string, and find them again at each call. Summaries can be compared with ==. The
// zero Summary stands for no Document.
type Summary struct {
	// text holds the flags, the lines of name and description, the name, the
	// description, the hint, the tags and the modes; see package packed.
	text string
}

// Bits of a Summary's flags.
const (
	hiddenFromUser = 1 << iota
	disableModelInvocation
)

// Summary returns the Summary of the Document. keep makes the string that holds it; if
// keep is nil, a new string is allocated.
func (d *Document) Summary(keep func([]byte) string) Summary {
	var flags uint64
	if d.UserInvocable != nil && !*d.UserInvocable {
		flags |= hiddenFromUser
	}
	if d.DisableModelInvocation {
		flags |= disableModelInvocation
	}
	b := make([]byte, 0, 64+len(d.Name)+len(d.Description)+len(d.ArgumentHint))
	for _, n := range []uint64{flags, uint64(d.KeyLine("name")), uint64(d.KeyLine("description"))} {
		b = binary.AppendUvarint(b, n)
	}
	for _, s := range []string{d.Name, d.Description, d.ArgumentHint} {
		b = packed.AppendText(b, s)
	}
	b = packed.AppendTexts(packed.AppendTexts(b, d.Tags), d.Modes)
	if keep == nil {
		return Summary{string(b)}
	}
	return Summary{keep(b)}
}

// IsZero reports whether s stands for no Document.
func (s Summary) IsZero() bool { return s.text == "" }

// Name returns the name. It is empty if the Document has none, which is an error of
// its own.
func (s Summary) Name() string {
	_, r := s.numbers()
	return r.Text()
}

// Description returns the whole description.
func (s Summary) Description() string {
	_, r := s.numbers()
	r.Text()
	return r.Text()
}

// ArgumentHint returns the hint, or "" if the Document has none.
func (s Summary) ArgumentHint() string {
	r := s.behindDescription()
	return r.Text()
}

// Tags returns the tags in the order of the Document.
func (s Summary) Tags() []string {
	r := s.behindDescription()
	r.Text()
	return r.Texts()
}

// Modes returns the modes in which the pack is offered; none means all.
func (s Summary) Modes() []string {
	r := s.behindDescription()
	r.Text()
	r.Texts()
	return r.Texts()
}

// UserInvocable reports whether people get a prompt for the pack.
func (s Summary) UserInvocable() bool {
	n, _ := s.numbers()
	return n[0]&hiddenFromUser == 0
}

// DisableModelInvocation reports whether the pack is hidden from models.
func (s Summary) DisableModelInvocation() bool {
	n, _ := s.numbers()
	return n[0]&disableModelInvocation != 0
}

// NameLine returns the line of the file with the name, or 0 if there is none.
func (s Summary) NameLine() int {
	n, _ := s.numbers()
	return int(n[1])
}

// DescriptionLine is like [Summary.NameLine] for the description.
func (s Summary) DescriptionLine() int {
	n, _ := s.numbers()
	return int(n[2])
}

// numbers returns the flags and the lines, and a reader of what follows them.
func (s Summary) numbers() (n [3]uint64, r packed.Reader) {
	r = packed.From(s.text)
	for i := range n {
		n[i] = r.Number()
	}
	return n, r
}

func (s Summary) behindDescription() packed.Reader {
	_, r := s.numbers()
	r.Text()
	r.Text()
	return r
}

// errText says that a text is not the Text of a Summary.
var errText = errors.New("not a summary of frontmatter")

// Text returns the whole Summary, for [SummaryOf]. Only the zero Summary's is empty.
func (s Summary) Text() string { return s.text }

// SummaryOf returns the Summary whose Text is text. It shares text's memory and keeps
// it alive.
func SummaryOf(text string) (Summary, error) {
	if text == "" {
		return Summary{}, nil
	}
	_, r := Summary{text}.numbers()
	for range 3 {
		r.Text()
	}
	for range 2 {
		for range r.Count() {
			r.Text()
		}
	}
	if !r.IsDone() {
		return Summary{}, errText
	}
	return Summary{text}, nil
}
