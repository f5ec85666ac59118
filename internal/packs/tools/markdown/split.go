package markdown

import (
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/decl"
)

// operators end words in a shell, and have a meaning of their own.
const operators = "|&;<>()"

// nameBytes are the characters in names of variables.
const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// A word is one word of a command line.
type word struct {
	text string
	at   int // offset of its first byte
}

// A mark is something that a shell would not pass on unchanged.
type mark struct {
	text string
	at   int
}

// A split is a command line split into words.
type split struct {
	words    []word
	marks    []mark // in order
	comments []int  // offsets of lines that are comments
	next     int    // offset of a second command, or -1
}

// A quoteError says where an unclosed quote begins.
type quoteError struct{ at int }

func (e *quoteError) Error() string { return "a quote is not closed" }

// splitCommand splits the first command of text into words, as a POSIX shell does before
// expansion: quotes and backslashes work, and a backslash at the end of a line continues
// it. Nothing else has a meaning. Text between {{ and }} on one line is taken as written.
// An error is a *[quoteError].
func splitCommand(text string) (split, error) {
	s := splitter{text: text, out: split{next: -1}}
	for s.pos < len(text) {
		s.line()
		if s.err != nil {
			return split{}, s.err
		}
		if s.out.next >= 0 {
			break
		}
	}
	return s.out, nil
}

type splitter struct {
	text string
	pos  int
	out  split
	err  error

	word    strings.Builder
	started bool // a word has begun; it may be empty
	start   int
	marks   []mark // of this word
	globs   []mark
}

// line splits one line and its continuations.
func (s *splitter) line() {
	first := s.pos + len(s.text[s.pos:]) - len(strings.TrimLeft(s.text[s.pos:], " \t"))
	switch {
	case first == len(s.text) || s.text[first] == '\n':
		s.pos = min(first+1, len(s.text))
		return
	case s.text[first] == '#':
		s.out.comments = append(s.out.comments, first)
		_, rest, _ := strings.Cut(s.text[first:], "\n")
		s.pos = len(s.text) - len(rest)
		return
	case len(s.out.words) > 0:
		s.out.next = first
		return
	}
	for s.pos < len(s.text) && s.err == nil {
		c := s.text[s.pos]
		if c == '\n' {
			s.pos++
			break
		}
		if c == ' ' || c == '\t' {
			s.end()
			s.pos++
			continue
		}
		if c == '\\' && strings.HasPrefix(s.text[s.pos:], "\\\n") {
			s.pos += 2
			continue
		}
		s.begin()
		switch c {
		case '\'':
			s.quoted()
		case '"':
			s.doubleQuoted()
		case '\\':
			s.pos++
			if s.pos < len(s.text) {
				s.take(1)
			} else {
				s.word.WriteByte('\\')
			}
		default:
			s.plain()
		}
	}
	s.end()
}

func (s *splitter) begin() {
	if !s.started {
		s.started, s.start = true, s.pos
	}
}

// end ends a word.
func (s *splitter) end() {
	if !s.started {
		return
	}
	text := s.word.String()
	s.out.marks = append(s.out.marks, s.marks...)
	if !strings.Contains(text, "://") { // a URL may have a query
		s.out.marks = append(s.out.marks, s.globs...)
	}
	if len(s.out.words) == 0 && assigns(text) {
		s.out.marks = append(s.out.marks, mark{text, s.start})
	}
	s.out.words = append(s.out.words, word{text, s.start})
	s.word.Reset()
	s.started, s.marks, s.globs = false, nil, nil
}

// assigns reports whether a shell would take the first word for an assignment to a
// variable.
func assigns(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && decl.ValidEnvName(name)
}

func (s *splitter) take(n int) {
	s.word.WriteString(s.text[s.pos : s.pos+n])
	s.pos += n
}

// placeholder consumes a placeholder, or the four braces that stand for two, and reports
// whether there was one.
func (s *splitter) placeholder() bool {
	rest := s.text[s.pos:]
	if strings.HasPrefix(rest, "{{{{") {
		s.take(len("{{{{"))
		return true
	}
	if !strings.HasPrefix(rest, "{{") {
		return false
	}
	line, _, _ := strings.Cut(rest, "\n")
	if i := strings.Index(line[2:], "}}"); i >= 0 {
		s.take(2 + i + 2)
		return true
	}
	return false
}

func (s *splitter) quoted() {
	open := s.pos
	s.pos++
	for s.pos < len(s.text) {
		switch {
		case s.text[s.pos] == '\'':
			s.pos++
			return
		case !s.placeholder():
			s.take(1)
		}
	}
	s.err = &quoteError{open}
}

func (s *splitter) doubleQuoted() {
	open := s.pos
	s.pos++
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return
		case c == '\\' && s.pos+1 < len(s.text):
			s.pos++
			switch s.text[s.pos] {
			case '\n':
				s.pos++
			case '"', '\\', '$', '`':
				s.take(1)
			default:
				s.word.WriteByte('\\')
			}
		case s.placeholder():
		default:
			s.variable()
			s.take(1)
		}
	}
	s.err = &quoteError{open}
}

// plain takes what is in no quotes.
func (s *splitter) plain() {
	if s.placeholder() {
		return
	}
	rest := s.text[s.pos:]
	switch c := rest[0]; {
	case strings.IndexByte(operators, c) >= 0:
		n := len(rest) - len(strings.TrimLeft(rest, operators))
		s.marks = append(s.marks, mark{rest[:n], s.pos})
		s.take(n)
		return
	case strings.IndexByte("*?[", c) >= 0:
		s.globs = append(s.globs, mark{rest[:1], s.pos})
	case (c == '~' || c == '#') && s.pos == s.start:
		s.marks = append(s.marks, mark{rest[:1], s.pos})
	}
	s.variable()
	s.take(1)
}

// variable marks what a shell would put something else for, in double quotes
// too.
func (s *splitter) variable() {
	rest := s.text[s.pos:]
	switch {
	case rest[0] == '`':
		s.marks = append(s.marks, mark{rest[:1], s.pos})
	case rest[0] == '$' && len(rest) > 1:
		n := len(rest) - len(strings.TrimLeft(rest[1:], nameBytes))
		if n == 1 && strings.IndexByte("{(@*#?$!", rest[1]) >= 0 {
			n = 2
		}
		if n > 1 {
			s.marks = append(s.marks, mark{rest[:n], s.pos})
		}
	}
}
