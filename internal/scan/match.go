package scan

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A pattern finds one way in which a rule is broken. It is tried on a unit that has one
// of its words, in lower case.
type pattern struct {
	rule   string
	prompt bool // it is about what a model is told, not about what is run
	// The severity in code, and in a document that has the command; none: it is no
	// finding there. Of a prompt, in prose and in data.
	code, doc Severity
	words     []string
	expr      *regexp.Regexp
	// judge has the last word about a match; nil: it counts.
	judge func(u *unit, from, to int, s Severity) (Severity, bool)
	only  []zone // nil: everywhere
	sign  sign   // not a finding by itself, but together with another in the same script
}

// A sign is half of an attack.
type sign int

const (
	noSign sign = iota
	readsSecrets
	sendsData
	connects
	givesShell
	savesDownload
	makesProgram
	numSigns
)

// signs are where a file has each, the first time; 0: nowhere.
type signs [numSigns]int

// none is no severity.
const none = Info + 1

// A matcher is all patterns and the automaton that finds their words: by Aho and
// Corasick, so that a text is read once, however many words there are.
type matcher struct {
	patterns []pattern
	classes  [256]uint8 // :: byte → column of next; 0: a byte that is in no word
	columns  int
	next     []int32 // :: state × columns + column → state
	found    [][]int // :: state → patterns with a word that ends here
}

// patterns are made when somebody scans for the first time.
var theMatcher = sync.OnceValue(func() *matcher { return newMatcher(allPatterns()) })

func newMatcher(patterns []pattern) *matcher {
	m := &matcher{patterns: patterns}
	for _, p := range patterns {
		for _, w := range p.words {
			for i := range len(w) {
				if m.classes[w[i]] == 0 {
					m.columns++
					m.classes[w[i]] = uint8(m.columns)
				}
			}
		}
	}
	m.columns++
	grow := func() int32 {
		m.next = append(m.next, make([]int32, m.columns)...)
		m.found = append(m.found, nil)
		return int32(len(m.found) - 1)
	}
	grow()
	for i, p := range patterns {
		for _, w := range p.words {
			at := int32(0)
			for k := range len(w) {
				cell := int(at)*m.columns + int(m.classes[w[k]])
				if m.next[cell] == 0 {
					made := grow()
					m.next[cell] = made
				}
				at = m.next[cell]
			}
			m.found[at] = append(m.found[at], i)
		}
	}
	fail := make([]int32, len(m.found))
	var queue []int32
	for c := range m.columns {
		if to := m.next[c]; to != 0 {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		m.found[at] = append(m.found[at], m.found[fail[at]]...)
		for c := range m.columns {
			cell := int(at)*m.columns + c
			other := m.next[int(fail[at])*m.columns+c]
			if to := m.next[cell]; to != 0 {
				fail[to] = other
				queue = append(queue, to)
			} else {
				m.next[cell] = other
			}
		}
	}
	return m
}

// candidates marks the patterns that have a word in s.
func (m *matcher) candidates(s string, marks []uint64) (found bool) {
	clear(marks)
	at := int32(0)
	for i := range len(s) {
		at = m.next[int(at)*m.columns+int(m.classes[s[i]])]
		for _, p := range m.found[at] {
			marks[p/64] |= 1 << (p % 64)
			found = true
		}
	}
	return found
}

// has reports whether a pattern has a word in s.
func (m *matcher) has(s string) bool {
	at := int32(0)
	for i := range len(s) {
		at = m.next[int(at)*m.columns+int(m.classes[s[i]])]
		if len(m.found[at]) > 0 {
			return true
		}
	}
	return false
}

// Bounds of the search. A unit is searched in windows, which overlap by as much as
// nearly all matches are long.
const (
	window  = 2 << 10
	overlap = 1 << 10
	// maxMatches is how many matches of one pattern are looked at in one window.
	maxMatches = 50
	// maxWork is how many bytes the patterns are given of one folder, in all: some seconds.
	// The largest of 259 real packs takes a fiftieth of it.
	maxWork = 64 << 20
)

// A search is of one folder.
type search struct {
	*matcher
	marks []uint64
	work  int  // bytes that patterns were given
	over  bool // there was more to do than maxWork
}

func newSearch() *search {
	m := theMatcher()
	return &search{matcher: m, marks: make([]uint64, (len(m.patterns)+63)/64)}
}

// find calls each with every match that counts in a unit.
func (s *search) find(u *unit, each func(p *pattern, from, to int, severity Severity)) {
	for begin := 0; ; begin += window - overlap {
		end := min(begin+window, len(u.lower))
		s.part(u, begin, end, each)
		if end == len(u.lower) {
			return
		}
	}
}

func (s *search) part(u *unit, begin, end int, each func(*pattern, int, int, Severity)) {
	text := u.lower[begin:end]
	if !s.candidates(text, s.marks) {
		return
	}
	for i := range s.patterns {
		if s.marks[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		p := &s.patterns[i]
		severity := p.severity(u)
		if severity == none {
			continue
		}
		if s.work += len(text); s.work > maxWork {
			s.over = true
			return
		}
		for _, m := range p.expr.FindAllStringIndex(text, maxMatches) {
			from, to := begin+m[0], begin+m[1]
			is := severity
			if p.judge != nil {
				var counts bool
				if is, counts = p.judge(u, from, to, severity); !counts {
					continue
				}
			}
			if is = u.excused(p, from, to, is); is != none {
				each(p, from, to, is)
			}
		}
	}
}

// severity is what a match in a unit would have; none when there it is no finding.
func (p *pattern) severity(u *unit) Severity {
	if p.only != nil {
		if slices.Contains(p.only, u.zone) {
			return p.code
		}
		return none
	}
	if p.prompt {
		switch u.zone {
		case prose, comment, meta:
			return p.code
		case remark, code:
			return max(p.code, High)
		case data:
			return max(p.doc, Medium)
		}
		return Low
	}
	switch u.zone {
	case code, comment:
		return p.code
	case remark:
		return none
	}
	return p.doc
}

// maxLook is how far a judge looks around a match: a unit may be as long as the file, and
// have many.
const maxLook = 400

// before returns what is before an offset, at most maxLook bytes, in lower case.
func (u *unit) before(at int) string { return u.lower[max(0, at-maxLook):at] }

// behind returns what is from an offset on, at most maxLook bytes, in lower case.
func (u *unit) behind(at int) string { return u.lower[at:min(at+maxLook, len(u.lower))] }

// around returns a match in lower case, with what is around it.
func (u *unit) around(from, to int) string {
	return u.before(from) + u.lower[from:to] + u.behind(to)
}

// excused says what a match is when its author does not mean it: it is quoted, or the
// words before it forbid it.
func (u *unit) excused(p *pattern, from, to int, s Severity) Severity {
	switch u.zone {
	case code:
		if !p.prompt && isSaid(u, from, to) {
			return none
		}
		return s
	case comment:
		return s
	}
	if u.bad {
		return none
	}
	before := u.before(from)
	if i := strings.LastIndexAny(before, ".!?;"); i >= 0 && i+1 < len(before) && before[i+1] == ' ' {
		before = before[i+1:]
	}
	plain := before
	if strings.Count(plain, "`")%2 == 1 { // the match is in a code span
		plain = plain[:strings.LastIndexByte(plain, '`')]
	}
	plain = strings.TrimRight(codeSpans().ReplaceAllString(plain, " "), " \"'*_([")
	if forbids().MatchString(plain + " ") {
		return none
	}
	if behind := u.behind(to); u.zone == quoted && !isTextLang(u.lang) {
		if _, said, ok := strings.Cut(behind, "#"); ok && labels().MatchString(strings.TrimSpace(said)) {
			return none
		}
	}
	if p.prompt && u.zone == prose && isQuoted(before, u.behind(to)) {
		return Low
	}
	if u.aside {
		return Low
	}
	return s
}

// isQuoted reports whether a quotation begins before, and ends behind.
func isQuoted(before, behind string) bool {
	for _, q := range []string{`"`, "`"} {
		if strings.Count(before, q)%2 == 1 && strings.Contains(behind, q) {
			return true
		}
	}
	i := strings.LastIndexByte(before, '\'')
	return i >= 0 && (i == 0 || before[i-1] == ' ' || before[i-1] == '(' || before[i-1] == '[') && strings.Contains(behind, "'")
}

// isSaid reports whether a match in code is inside of a text that is only printed. In
// double quotes, a shell runs what is in $(…).
func isSaid(u *unit, from, to int) bool {
	if from > maxLook || !says().MatchString(u.lower[:min(len(u.lower), maxLook)]) {
		return false
	}
	before := u.text[:from]
	for _, q := range []byte{'"', '\''} {
		to := to
		if u.text[to-1] == q {
			to-- // a pattern looks at what is behind
		}
		behind := u.text[to:min(to+maxLook, len(u.text))]
		i := strings.IndexByte(before, q)
		if i < 0 || strings.Count(before, string(q))%2 == 0 {
			continue
		}
		end := strings.IndexByte(behind, q)
		if end < 0 || strings.ContainsAny(behind[end:], "|`$") {
			continue
		}
		inside := u.text[i+1 : to+end]
		if q == '"' && (strings.Contains(inside, "$(") || strings.Contains(inside, "`")) {
			continue
		}
		return !strings.ContainsRune(u.text[from:to], rune(q))
	}
	return false
}

// says matches a line of code that prints a text.
var says = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((echo|printf|print|say|info|warn|log|error|fail|die|usage|write-host|write-output|puts)\b|(console|logger|logging|log|sys\.std(out|err)|click|parser|process\.std(out|err)|fmt)\.\w+|raise \w+\(|throw new \w+\(|help\s*=|return\s+["'])`)
})
