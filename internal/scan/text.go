package scan

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sort"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
	"github.com/packs-mcp/packs-mcp/internal/scan/words"
)

// A zone says what a piece of text is for, which decides how it is judged.
type zone int

const (
	prose   zone = iota // a document's text: the model follows it
	comment             // an HTML comment: a model reads it, a person does not
	quoted              // a fenced block of a document
	code                // code that runs: a script, a declared command
	remark              // a comment in code: nothing runs it, and the model may read it
	meta                // a description or schema, which models see before anything is opened
	data                // any other text
)

// A unit is a piece of text that is searched as one: a paragraph, a logical line of
// code, a value.
type unit struct {
	zone  zone
	text  string // as a model or a shell reads it; see [letters.Normal]
	lower string // text with ASCII letters in lower case, once it is searched; the same offsets

	offsets, lines []int // where in text which line of the file begins

	tool string // the declared tool that it belongs to
	lang string // of a script or a fenced block
	bad  bool   // the words before it call it bad
	// aside says that a heading announces bad examples, which an attacker can write,
	// too.
	aside bool
}

// lineAt returns the line of the file at an offset in the text.
func (u *unit) lineAt(offset int) int {
	i := sort.SearchInts(u.offsets, offset+1) - 1
	return u.lines[max(i, 0)]
}

// A joiner joins lines into units, and is reused, since a document has hundreds. Most have
// no word of a pattern, and are never joined.
type joiner struct {
	words *words.Finder // of all patterns; nil: nobody calls has
	parts []part
	size  int   // bytes of the parts, joined
	state int32 // of words, after these bytes
	found bool  // a pattern has a word in them
	text  []byte
	kept  []int // room for the numbers of units
}

// A part is a line of a unit.
type part struct {
	text string
	line int
}

func (j *joiner) add(s string, line int) {
	if j.size > 0 {
		j.read(" ")
	}
	j.read(s)
	j.parts = append(j.parts, part{s, line})
}

// read looks for words in the next bytes of the unit.
func (j *joiner) read(s string) {
	j.size += len(s)
	if j.words != nil && !j.found {
		j.state, j.found = j.words.After(j.state, s)
	}
}

func (j *joiner) empty() bool { return len(j.parts) == 0 }

// has reports whether a pattern has a word in the unit.
func (j *joiner) has() bool { return j.found }

// drop starts the next unit.
func (j *joiner) drop() { j.parts, j.size, j.state, j.found = j.parts[:0], 0, 0, false }

// take returns the joined unit, and starts the next.
func (j *joiner) take(z zone) unit {
	n := len(j.parts)
	u := unit{zone: z, offsets: j.numbers(n), lines: j.numbers(n)}
	if n == 1 {
		u.text, u.lines[0] = j.parts[0].text, j.parts[0].line // and the offset is 0
	} else {
		j.text = j.text[:0]
		for i, p := range j.parts {
			if len(j.text) > 0 {
				j.text = append(j.text, ' ')
			}
			u.offsets[i], u.lines[i] = len(j.text), p.line
			j.text = append(j.text, p.text...)
		}
		u.text = string(j.text)
	}
	j.drop()
	return u
}

// numbers returns room for n numbers.
func (j *joiner) numbers(n int) []int {
	if cap(j.kept)-len(j.kept) < n {
		j.kept = make([]int, 0, max(16, 2*cap(j.kept), n))
	}
	from := len(j.kept)
	j.kept = j.kept[:from+n]
	return slices.Clip(j.kept[from:])
}

// A file is a text that is being checked.
type file struct {
	path  string
	text  string
	lines []string   // original lines, without line ends
	sums  [][32]byte // digests of lines, computed on demand
	known []bool
	units []unit
	aside map[int]bool // :: line of a document below a heading that announces bad examples

	// Most texts are plain and have no long gaps, which spares looking at each line.
	isPlain bool // only printable ASCII, blanks and line feeds: normal changes nothing
	gap     int  // the longest run of blanks and line feeds, if isPlain
}

func newFile(path string, text []byte) *file {
	f := &file{path: path, text: string(text)}
	f.lines = make([]string, 0, bytes.Count(text, []byte("\n"))+1)
	for line := range strings.Lines(f.text) {
		end := len(line)
		for end > 0 && (line[end-1] == '\n' || line[end-1] == '\r') {
			end--
		}
		f.lines = append(f.lines, line[:end])
	}
	f.isPlain, f.gap = letters.Plain(f.text)
	return f
}

// normal is [letters.Normal] of a line of the file.
func (f *file) normal(line string) string {
	if f.isPlain {
		return line
	}
	return letters.Normal(line)
}

// bytesOf returns the bytes to hash for a finding in these lines: the lines' digests,
// since a line may be as long as the file and have many findings.
func (f *file) bytesOf(from, to int) []byte {
	if f.known == nil {
		f.sums, f.known = make([][32]byte, len(f.lines)), make([]bool, len(f.lines))
	}
	var out []byte
	for i := max(from, 1); i <= min(to, len(f.lines)); i++ {
		if !f.known[i-1] {
			f.sums[i-1], f.known[i-1] = sha256.Sum256([]byte(strings.TrimSpace(f.lines[i-1]))), true
		}
		out = append(out, f.sums[i-1][:]...)
	}
	return out
}
