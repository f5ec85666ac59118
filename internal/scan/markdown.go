package scan

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
	"github.com/packs-mcp/packs-mcp/internal/scan/words"
)

// markdown cuts a document into units: paragraphs, list items and cells of tables and block
// quotes as prose, comments, and fenced blocks as quotations. first is the
// number of lines before the body. It leaves out paragraphs and lines of code in which
// there is nothing to find.
func (f *file) markdown(first int) {
	m := &markdownReader{words: theMatcher().words, units: f.units, noComment: f.isPlain && !strings.Contains(f.text, "<!--")}
	m.body.words = m.words
	before := len(f.units)
	open := -1 // the line that began an unclosed fence
	for i := first; i < len(f.lines); i++ {
		if m.fence == "" {
			open = i
		}
		m.line(f.normal(f.lines[i]), i+1)
	}
	if m.fence != "" {
		// An unclosed fence would turn all the rest into a quotation, so one line could
		// hide it.
		m.body, m.fence, m.block = joiner{words: m.words}, "", nil
		m.noFence = true
		for i := open; i < len(f.lines); i++ {
			m.line(f.normal(f.lines[i]), i+1)
		}
	}
	m.endParagraph()
	if !m.note.empty() {
		m.put(m.note.take(comment))
	}
	f.units = m.units
	f.aside = make(map[int]bool)
	for i := range f.units[before:] {
		u := &f.units[before+i]
		if !u.aside && !u.bad {
			continue
		}
		for _, line := range u.lines {
			f.aside[line] = true
		}
	}
}

type markdownReader struct {
	words *words.Finder // of all patterns
	units []unit

	headings [7]bool // :: level of a current heading → it announces bad examples
	intro    string  // the last line of prose
	table    bool    // the heading of the table announces bad examples
	inTable  bool

	body      joiner // the paragraph
	quote     bool   // the paragraph is a block quote
	note      joiner // the comment that is open
	inComment bool
	noComment bool // none begins anywhere

	noFence bool
	fence   string // the fence that is open
	lang    string
	block   []blockLine
}

type blockLine struct {
	text string
	line int
}

// line takes the next line.
func (m *markdownReader) line(s string, n int) {
	if m.fence != "" {
		mark, rest := fenceOf(s)
		if strings.HasPrefix(mark, m.fence) && rest == "" {
			m.endFence()
			return
		}
		m.block = append(m.block, blockLine{s, n})
		return
	}
	if m.inComment {
		if before, after, ok := strings.Cut(s, "-->"); ok {
			m.note.add(before, n)
			m.put(m.note.take(comment))
			m.inComment = false
			s = after
		} else {
			m.note.add(s, n)
			return
		}
	}
	for !m.noComment {
		before, after, ok := strings.Cut(s, "<!--")
		if !ok || strings.Count(before, "`")%2 == 1 {
			break
		}
		inside, rest, closed := strings.Cut(after, "-->")
		m.note.add(inside, n)
		if !closed {
			m.inComment = true
			s = before
			break
		}
		m.put(m.note.take(comment))
		s = before + " " + rest
	}
	trimmed := strings.TrimSpace(s)
	if mark, lang := fenceOf(s); mark != "" && !m.noFence && (mark[0] == '~' || !strings.Contains(lang, "`")) {
		m.endParagraph()
		m.fence, m.lang = mark, letters.Lower(firstWord(lang))
		return
	}
	switch {
	case trimmed == "":
		m.endParagraph()
		m.inTable = false
		return
	case strings.HasPrefix(trimmed, "#"):
		m.endParagraph()
		level := len(trimmed) - len(strings.TrimLeft(trimmed, "#"))
		if level <= 6 {
			for i := level; i < len(m.headings); i++ {
				m.headings[i] = false
			}
			m.headings[level] = announced(trimmed)
		}
	case strings.HasPrefix(trimmed, ">"):
		if !m.quote {
			m.endParagraph()
			m.quote = true
		}
		m.body.add(strings.TrimSpace(strings.TrimLeft(trimmed, "> ")), n)
		return
	case strings.HasPrefix(trimmed, "|"):
		m.endParagraph()
		if !m.inTable {
			m.inTable, m.table = true, announced(trimmed)
		}
		for _, cell := range cells(trimmed) {
			m.body.add(cell, n)
			m.endParagraph()
		}
		return
	case isListItem(trimmed):
		m.endParagraph()
	case m.quote:
		m.endParagraph()
	}
	m.body.add(trimmed, n)
	m.intro = trimmed
	if strings.HasPrefix(trimmed, "#") {
		m.endParagraph()
	}
}

// isAside reports whether a heading above announces bad examples.
func (m *markdownReader) isAside() bool {
	for _, announced := range m.headings {
		if announced {
			return true
		}
	}
	return m.inTable && m.table
}

func (m *markdownReader) endParagraph() {
	if !m.body.empty() {
		// Many documents put what matters most into a block quote.
		bad := m.quote && m.callsBad()
		if bad || m.isAside() || m.body.has() {
			u := m.body.take(prose)
			u.bad = bad
			m.put(u)
		}
		m.body.drop()
	}
	m.quote = false
}

// callsBad reports whether the last line of prose calls what follows bad.
func (m *markdownReader) callsBad() bool {
	intro := letters.Lower(m.intro)
	return labels().MatchString(intro) || forbids().MatchString(strings.TrimRight(intro, ": "))
}

func (m *markdownReader) put(u unit) {
	u.aside = u.zone != comment && m.isAside()
	m.units = append(m.units, u)
}

// endFence makes units of a fenced block: paragraphs of a text, logical lines of code.
func (m *markdownReader) endFence() {
	bad := m.callsBad()
	aside := m.isAside()
	lines := m.block
	m.fence, m.block, m.intro = "", nil, ""
	isText := isTextLang(m.lang)
	j := joiner{words: m.words}
	above := false // a remark above calls the line bad
	end := func() {
		if j.empty() {
			return
		}
		if bad || above || aside || j.has() {
			u := j.take(quoted)
			u.lang, u.bad, u.aside = m.lang, bad || above, aside
			m.units = append(m.units, u)
		}
		j.drop()
	}
	for _, l := range lines {
		trimmed := strings.TrimSpace(l.text)
		switch {
		case trimmed == "":
			end()
			above = false
			continue
		case isRemark(trimmed, m.lang):
			end()
			above = labels().MatchString(letters.Lower(trimmed))
		}
		j.add(trimmed, l.line)
		if !isText && !continues(trimmed) {
			end()
		}
	}
	end()
}

func isTextLang(lang string) bool {
	switch lang {
	case "", "text", "txt", "markdown", "md", "prompt", "xml", "html", "plaintext":
		return true
	}
	return false
}

// continues reports whether a command continues on the next line.
func continues(s string) bool {
	return strings.HasSuffix(s, `\`) || strings.HasSuffix(s, "|") || strings.HasSuffix(s, "&&") || strings.HasSuffix(s, "`") && strings.Count(s, "`") == 1
}

// cells returns the cells of a row of a table.
func cells(row string) []string {
	const bar = "\x00"
	row = strings.ReplaceAll(row, `\|`, bar)
	var out []string
	inCode := false
	from := 0
	for i := range len(row) {
		switch row[i] {
		case '`':
			inCode = !inCode
		case '|':
			if inCode && strings.Contains(row[i:], "`") {
				continue
			}
			if cell := strings.TrimSpace(strings.ReplaceAll(row[from:i], bar, "|")); cell != "" {
				out = append(out, cell)
			}
			from = i + 1
		}
	}
	if cell := strings.TrimSpace(strings.ReplaceAll(row[from:], bar, "|")); cell != "" {
		out = append(out, cell)
	}
	return out
}

// fenceOf returns the fence at the beginning of a line and the text after it, or ""
// if there is none.
func fenceOf(line string) (fence, info string) {
	begin := 0
	for begin < len(line) && (line[begin] == ' ' || line[begin] == '\t' || line[begin] == '>') {
		begin++
	}
	rest := line[begin:]
	if rest == "" || rest[0] != '`' && rest[0] != '~' {
		return "", ""
	}
	for _, c := range []string{"`", "~"} {
		if behind := strings.TrimLeft(rest, c); len(rest)-len(behind) >= 3 {
			return rest[:len(rest)-len(behind)], strings.TrimSpace(behind)
		}
	}
	return "", ""
}

func firstWord(s string) string {
	if i := strings.IndexAny(s, " \t{,:"); i >= 0 {
		return s[:i]
	}
	return s
}

// isListItem reports whether a line, without the space before it, begins an item: with a
// mark, or up to nine digits and a dot or parenthesis, and then a space. It is called
// for every line, and a regular expression took a third of a document's time.
func isListItem(s string) bool {
	digits := 0
	for digits < len(s) && '0' <= s[digits] && s[digits] <= '9' {
		digits++
	}
	if digits > 9 || len(s) <= digits+1 {
		return false
	}
	switch c := s[digits]; {
	case digits == 0 && c != '-' && c != '*' && c != '+', digits > 0 && c != '.' && c != ')':
		return false
	}
	switch s[digits+1] {
	case ' ', '\t', '\n', '\f', '\r':
		return true
	}
	return false
}

// announced reports whether a heading announces bad examples or other people's
// behaviour. It is called for every heading, few of which have one of the words
// with which the expression begins.
func announced(heading string) bool {
	a := announces()
	return a.words.Has(heading) && a.expr.MatchString(letters.Lower(heading))
}

// announcement has the patterns for announced.
type announcement struct {
	words *words.Finder // the beginning of each alternative in the expression
	expr  *regexp.Regexp
}

var announces = sync.OnceValue(func() announcement {
	marks := []string{"❌", "✗", "✘", "🚫", "⛔", "🛑", "👎"}
	begins := slices.Clone(marks)
	alternatives := []string{
		"bad", "wrong", "incorrect", "insecure", "vulnerable", "vulnerabilit(y|ies)", "unsafe", "dangerous", "malicious", "hostile", "suspicious", "forbidden", "prohibited", "disallowed", "blocked", "denied",
		"anti-?patterns?", "attacks?", "attackers?", "exploits?", "exploitation", "injections?", "payloads?", "threats?", "red flags?", "pitfalls?", "mistakes?", "not to do", "never do", "do not", "don't", "not allowed", "to avoid",
		"to flag", "to detect", "detection", "indicators?", "risks?", "rationali[sz]ations?", "obfuscat(ion|ed)", "evasion", "jailbreaks?", "critical rules", "reverse shells?",
	}
	for _, alternative := range alternatives {
		begin, _ := regexp.MustCompile(alternative).LiteralPrefix()
		begins = append(begins, begin)
	}
	return announcement{
		words: words.New([][]string{begins}),
		expr:  regexp.MustCompile(strings.Join(marks, "|") + `|\b(` + strings.Join(alternatives, "|") + `)\b`),
	}
})

// labels matches a line before an example, or a remark in it, that calls the example
// bad. It does not match a condition, as in "if you don't have it".
var labels = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`❌|✗|✘|🚫|⛔|🛑|👎|` +
		`^\W*(bad|wrong|incorrect|insecure|vulnerable|unsafe|dangerous|malicious|forbidden|prohibited|anti-?patterns?|attacks?|exploits?|payloads?)\b[^.]{0,60}$|` +
		`^\W*(don't|do not|never|avoid|no)( do this| this)?\W*$|` +
		`\b(vulnerable|malicious|hostile|attackers?('s)?|attacks?|insecure|unsafe|dangerous|suspicious|blocked|denied|forbidden)\b( \w+){0,4} (examples?|code|patterns?|commands?|inputs?|payloads?|scripts?|samples?|texts?|strings?|skills?|packs?|values?)\b[^.]{0,40}$`)
})

// forbids matches the words before something that is forbidden. Between the forbidding
// word and its object, it allows only words that do not reverse the meaning: "to avoid
// errors, run" forbids nothing.
var forbids = sync.OnceValue(func() *regexp.Regexp {
	const between = `((ever|just|blindly|any|all|a|an|the|commands?|things?|patterns?|something|anything|stuff|destructive|dangerous|malicious|hidden|suspicious|raw|direct|such|as|like|with|or|and|of|to|it|e\.g\.|following|these|those|shell|scripts?|code|text|texts|that|says?|saying|tells?|containing|contains?|which|inputs?|instructions?|phrases?|prompts?|words?|wording|requests?|attempts?|strings?|files?|from|in|on|user|tools?|output|documents?|content|you|ask|asks|asking|"|'|\(|,|:)\s*)*$`
	const acts = `((run|running|use|using|execute|executing|pipe|piping|suggest|suggesting|recommend|call|calling|type|add|adding|commit|write|writing|do|doing|allow|allowing|follow|following|obey|accept|believe|say|paste|pasting|put|putting|store|send|print)\s+)?`
	return regexp.MustCompile(`\b((never|do not|don't|must not|mustn't|should not|shouldn't|may not|avoid|refuse to|refuses to|refuse|reject|rejects|instead of|rather than|beware of|not to|forbidden to|must never|will not|not)\s+(ever\s+|just\s+|blindly\s+)?` + acts + between +
		`|(block|blocks|blocked|flag|flags|flagged|detect|detects|detecting|deny|denies|forbid|forbids|prohibit|prohibits|disallow|looks? for|watch for|watch out for|search(es)? for|scans? for|checks? for|catch|catches|report|reports|treat|strip|ignore)\s+` + between + `)`)
})

// codeSpans matches code spans in a sentence.
var codeSpans = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`[^`]*`") })
