package scan

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
	"github.com/packs-mcp/packs-mcp/internal/scan/words"
)

// A pattern finds one way to break a rule. It is tried on units that contain one of its
// words, in lower case.
type pattern struct {
	rule   string
	prompt bool // it is about text for a model, not about commands
	// The severity in code, and in a document with the command; none: no finding there.
	// For a prompt: in prose, and in data.
	code, doc findings.Severity
	words     []string
	expr      func() *regexp.Regexp // compiled when a text first has one of the words
	// judge can change or drop a match; nil: it counts.
	judge func(u *unit, from, to int, s findings.Severity) (findings.Severity, bool)
	only  []zone // nil: everywhere
	sign  sign   // not a finding by itself, but together with another in the same script
}

// lazily returns an expression that is compiled when it is first needed. Most texts need
// few of them, and to compile all takes longer than to scan a pack.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
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

// signs holds the line of the first occurrence of each sign in a file; 0: none.
type signs [numSigns]int

// The severities, as patterns name them; none is no severity.
const (
	critical = findings.Critical
	high     = findings.High
	medium   = findings.Medium
	low      = findings.Low
	info     = findings.Info
	none     = info + 1
)

// A matcher has all patterns, and finds their words.
type matcher struct {
	patterns []pattern
	words    *words.Finder // the index of a list is that of its pattern
}

// theMatcher is made by the first scan.
var theMatcher = sync.OnceValue(func() *matcher {
	m := &matcher{patterns: allPatterns()}
	lists := make([][]string, len(m.patterns))
	for i, p := range m.patterns {
		lists[i] = p.words
	}
	m.words = words.New(lists)
	return m
})

// Bounds of the search. A unit is searched in overlapping windows; the overlap is
// longer than nearly all matches.
const (
	window  = 2 << 10
	overlap = 1 << 10
	// maxMatches bounds the matches of one pattern in one window.
	maxMatches = 50
	// maxWork bounds the bytes that patterns search in one folder: some seconds of work.
	// The largest of 259 real packs takes a fiftieth of it.
	maxWork = 64 << 20
)

// A search is of one folder.
type search struct {
	*matcher
	marks []uint64
	work  int  // bytes that patterns have searched
	over  bool // maxWork was exceeded
}

func newSearch() *search {
	m := theMatcher()
	return &search{matcher: m, marks: make([]uint64, (len(m.patterns)+63)/64)}
}

// find calls each with every match that counts in a unit.
func (s *search) find(u *unit, each func(p *pattern, from, to int, severity findings.Severity)) {
	if !s.words.Has(u.text) { // as most have none
		return
	}
	u.lower = letters.Lower(u.text)
	for begin := 0; ; begin += window - overlap {
		end := min(begin+window, len(u.lower))
		s.part(u, begin, end, each)
		if end == len(u.lower) {
			return
		}
	}
}

func (s *search) part(u *unit, begin, end int, each func(*pattern, int, int, findings.Severity)) {
	text := u.lower[begin:end]
	if !s.words.Mark(text, s.marks) {
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
		for _, m := range p.expr().FindAllStringIndex(text, maxMatches) {
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

// severity returns the severity of a match in a unit; none if it is no finding there.
func (p *pattern) severity(u *unit) findings.Severity {
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
			return max(p.code, high)
		case data:
			return max(p.doc, medium)
		}
		return low
	}
	switch u.zone {
	case code, comment:
		return p.code
	case remark:
		return none
	}
	return p.doc
}

// maxLook bounds how far a judge looks around a match: a unit may be as long as the file
// and have many matches.
const maxLook = 400

// before returns the text before an offset, at most maxLook bytes, in lower case.
func (u *unit) before(at int) string { return u.lower[max(0, at-maxLook):at] }

// behind returns the text from an offset on, at most maxLook bytes, in lower case.
func (u *unit) behind(at int) string { return u.lower[at:min(at+maxLook, len(u.lower))] }

// around returns a match and its surroundings in lower case.
func (u *unit) around(from, to int) string {
	return u.before(from) + u.lower[from:to] + u.behind(to)
}

// excused returns the severity of a match that is quoted or that the words before it
// forbid.
func (u *unit) excused(p *pattern, from, to int, s findings.Severity) findings.Severity {
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
	if p.prompt && u.zone == prose && letters.IsQuoted(before, u.behind(to)) {
		return low
	}
	if u.aside {
		return low
	}
	return s
}

// isSaid reports whether a match in code is inside a text that is only printed. In
// double quotes, a shell runs the command in $(…).
func isSaid(u *unit, from, to int) bool {
	if from > maxLook || !says().MatchString(u.lower[:min(len(u.lower), maxLook)]) {
		return false
	}
	before := u.text[:from]
	for _, q := range []byte{'"', '\''} {
		to := to
		if u.text[to-1] == q {
			to-- // the pattern includes the next character
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
