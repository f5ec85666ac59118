package frontmatter

import (
	"encoding/binary"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
)

// A Summary is what a catalog of many packs keeps of a [Document]. It never
// changes, and is one text, since there may be so many of them: what its methods
// return are parts of that, found anew at each call. Summaries that are equal
// say the same. The zero Summary is that of no Document.
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

// Summary returns what is to be kept of the Document. keep makes the text it
// consists of; nil: it is one of its own.
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

// IsZero reports whether s is that of no Document.
func (s Summary) IsZero() bool { return s.text == "" }

// Name is what the Document says, and may be empty when that is what is wrong
// with it.
func (s Summary) Name() string {
	_, r := s.numbers()
	return r.Text()
}

// Description is whole.
func (s Summary) Description() string {
	_, r := s.numbers()
	r.Text()
	return r.Text()
}

// ArgumentHint is empty when the Document has none.
func (s Summary) ArgumentHint() string {
	r := s.behindDescription()
	return r.Text()
}

// Tags are in the order of the Document.
func (s Summary) Tags() []string {
	r := s.behindDescription()
	r.Text()
	return r.Texts()
}

// Modes say where the pack is offered; none means everywhere.
func (s Summary) Modes() []string {
	r := s.behindDescription()
	r.Text()
	r.Texts()
	return r.Texts()
}

// UserInvocable is false when people are to have no prompt for the pack.
func (s Summary) UserInvocable() bool {
	n, _ := s.numbers()
	return n[0]&hiddenFromUser == 0
}

// DisableModelInvocation is true when the pack is not to be offered to the model.
func (s Summary) DisableModelInvocation() bool {
	n, _ := s.numbers()
	return n[0]&disableModelInvocation != 0
}

// NameLine returns the line of the file on which the name stands, or 0 when
// there is none.
func (s Summary) NameLine() int {
	n, _ := s.numbers()
	return int(n[1])
}

// DescriptionLine is [Summary.NameLine] of the description.
func (s Summary) DescriptionLine() int {
	n, _ := s.numbers()
	return int(n[2])
}

// numbers returns the flags and the lines, and a reader of what is behind them.
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

// ErrText says that a text is not one of a Summary.
var ErrText = errors.New("not a summary of frontmatter")

// Text returns the whole Summary, for [SummaryOf]. It is empty for the zero
// Summary only.
func (s Summary) Text() string { return s.text }

// SummaryOf returns the Summary whose Text is text, of which it is made: as long
// as there is the one, there is the other.
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
		return Summary{}, ErrText
	}
	return Summary{text}, nil
}
