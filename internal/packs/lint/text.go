package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

// Bounds on checks for warnings. [CodeNotChecked] reports what they leave out.
const (
	maxDocuments    = 200
	maxDocument     = 1 << 20 // bytes of one document
	maxTextWarnings = 20      // of one file
	maxFiles        = 20_000
	maxDepth        = 20
)

// A skip records what one bound leaves out.
type skip struct {
	first string // the path of the first
	count int
}

func (k *skip) add(file string) {
	if k.count++; k.count == 1 {
		k.first = file
	}
}

// skipped reports what a bound left out, if anything. The message continues after "3
// documents".
func (s *subject) skipped(k skip, unit, message, hint string) {
	if k.count == 0 {
		return
	}
	s.problems = append(s.problems, diag.Diagnostic{
		Code: CodeNotChecked, Severity: diag.Warning, File: k.first,
		Message: fmt.Sprintf("%s %s; this is the first", diag.Count(k.count, unit), message), Hint: hint,
	})
}

// A text is a text in a pack, with its place.
type text struct {
	file     string
	line     int // of its first character; 0 when only the file is known
	column   int
	pointer  string
	what     string // "the description", for messages
	s        string
	document bool // it has lines of its own
	// quiet says that the text may mention tools and files: it is a body, which is read
	// when it is opened, not metadata that models see beforehand.
	quiet bool
}

// texts checks all texts of the pack: its frontmatter, its documents, the strings in
// its tool files, and its file names. It also checks the programs that its tools run,
// and its tests.
func (s *subject) texts(ctx context.Context) error {
	if s.node != nil {
		s.yamlTexts(s.node, "", map[*yaml.Node]bool{})
	}
	files, err := s.files(ctx)
	if err != nil {
		return err
	}
	documents := 0
	var beyond, large skip
	for _, name := range files {
		s.fileName(name)
		isTools := name == formats.ToolsJSONFile || formats.Of(name) == formats.ToolPack
		isDocument := strings.EqualFold(path.Ext(name), ".md")
		if isDocument {
			documents++
		}
		if !isTools && !isDocument {
			continue
		}
		isOther := !isTools && name != s.pack.Entry // no other check reports its problems
		if isOther && documents > maxDocuments {
			beyond.add(name)
			continue
		}
		src, err := s.dir.ReadAll(name, maxDocument)
		if err != nil {
			if _, tooLarge := errors.AsType[*packfs.TooLargeError](err); tooLarge && isOther {
				large.add(name)
			}
			continue // a check that needs the file reports it
		}
		if set := charset.Of(src); isDocument && set != charset.UTF8 {
			src = set.Decode(src)
			if name != s.pack.Entry { // the frontmatter's reader has reported that one
				s.warn(text{file: name, line: 1}, tools.CodeNotUTF8, 0, fmt.Sprintf("the document is %s, not UTF-8, and is read as that", set), "save the file as UTF-8")
			}
		}
		switch {
		case isTools:
			s.jsonTexts(name, src)
		case name == s.pack.Entry && s.doc != nil:
			body := src[min(s.doc.BodyOffset, len(src)):]
			line := 1 + strings.Count(string(src[:len(src)-len(body)]), "\n")
			s.look(text{file: name, line: line, column: 1, what: "the document", s: string(body), document: true, quiet: true})
		default:
			s.look(text{file: name, line: 1, column: 1, what: "the document", s: strings.TrimPrefix(string(src), "\ufeff"), document: true, quiet: true})
		}
	}
	s.skipped(beyond, "document", fmt.Sprintf("not checked: the pack has more than %d", maxDocuments), "split the pack, or read them yourself")
	s.skipped(large, "document", fmt.Sprintf("of more than %d bytes not checked", maxDocument), "split the document, or read it yourself")
	s.markdownTools()
	s.programs()
	if s.opts.Profile == Default {
		s.runs(files)
		s.tests()
	}
	return ctx.Err()
}

// files returns the paths of the pack's files, without those of packs below
// it, sorted.
func (s *subject) files(ctx context.Context) ([]string, error) {
	var found []string
	var deep, long skip
	beyond := "" // the first file that is too many, where the walk ends
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		if err := ctx.Err(); err != nil || beyond != "" {
			return err
		}
		if depth > maxDepth {
			deep.add(dir)
			return nil
		}
		entries, truncated, err := s.dir.List(dir)
		if err != nil {
			return nil // serving reports it
		}
		if truncated {
			long.add(dir)
		}
		if dir != "." && slices.ContainsFunc(entries, func(e packfs.Entry) bool { return strings.EqualFold(e.Name, skillFile) }) {
			return nil // another pack
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name)
			switch {
			case e.Type == packfs.TypeFile && len(found) >= maxFiles:
				beyond = name
				return nil
			case e.Type == packfs.TypeFile:
				found = append(found, name)
			case e.Type == packfs.TypeDir && !strings.HasPrefix(e.Name, ".") && e.Name != "node_modules":
				if err := walk(name, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := walk(".", 0); err != nil {
		return nil, err
	}
	if beyond != "" {
		s.problems = append(s.problems, diag.Diagnostic{
			Code: CodeNotChecked, Severity: diag.Warning, File: beyond,
			Message: fmt.Sprintf("the pack has more than %d files, and those from here on are not checked", maxFiles),
			Hint:    "split the pack, or move what is not part of it elsewhere",
		})
	}
	s.skipped(deep, "folder", fmt.Sprintf("not checked, with all that is in them: they lie more than %d deep", maxDepth), "move what is in there further up")
	s.skipped(long, "folder", fmt.Sprintf("of more than %d files and folders not checked beyond these", packfs.MaxEntries), "spread them over several folders")
	slices.Sort(found)
	return found, nil
}

// fileName checks the name of a file.
func (s *subject) fileName(name string) {
	for _, h := range hiddenIn(name) {
		s.warn(text{file: name}, h.code, 0, fmt.Sprintf("the name of the file has %s %s: %+q", diag.Count(h.count, "character"), h.kind, clip(path.Base(name))), "rename the file")
	}
}

// yamlTexts checks every value in the frontmatter.
func (s *subject) yamlTexts(n *yaml.Node, key string, seen map[*yaml.Node]bool) {
	if seen[n] {
		return // a document may say the same thing in many places
	}
	seen[n] = true
	switch n.Kind {
	case yaml.ScalarNode:
		// Names have their own rules, and a list of allowed tools must name tools.
		quiet := key == "allowed-tools" || key == "name"
		s.look(text{file: s.pack.Entry, line: n.Line, column: n.Column, what: fmt.Sprintf("the value of %q", clip(key)), s: n.Value, quiet: quiet})
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			s.yamlTexts(n.Content[i+1], cmp.Or(key, n.Content[i].Value), seen)
		}
	default:
		for _, c := range n.Content {
			s.yamlTexts(c, key, seen)
		}
	}
}

// markdownTools checks the texts of the document's tools for what only metadata must
// not contain; the rest was checked with the document.
func (s *subject) markdownTools() {
	if s.set == nil {
		return
	}
	for _, t := range s.set.Tools {
		if t.File == s.pack.Entry {
			s.names(text{file: t.File, line: t.Line, what: fmt.Sprintf("tool %+q", t.Name), s: t.Description + "\n" + string(t.InputSchema)})
		}
	}
}

// programs looks for programs with misleading names.
func (s *subject) programs() {
	if s.set == nil {
		return
	}
	for _, t := range s.set.Tools {
		if t.Command == nil || !strings.ContainsFunc(t.Command.Program, func(r rune) bool { return r >= utf8.RuneSelf }) {
			continue
		}
		s.warn(text{file: t.File, line: t.Line}, CodeProgramLetters, 0,
			fmt.Sprintf("the program %+q has letters outside ASCII, which can look like others", clip(t.Command.Program)), "rename the program")
	}
}

// warn adds a warning about a text, at an offset in it.
func (s *subject) warn(t text, code string, offset int, message, hint string) {
	count := 0
	for _, d := range s.problems {
		if d.File == t.file && isTextCode(d.Code) {
			count++
		}
	}
	if count >= maxTextWarnings {
		more := diag.Diagnostic{
			Code: tools.CodeMore, Severity: diag.Info, File: t.file,
			Message: "more problems of the texts in this file are not shown", Hint: "fix these first",
		}
		if !slices.Contains(s.problems, more) {
			s.problems = append(s.problems, more)
		}
		return
	}
	d := diag.Diagnostic{Code: code, Severity: diag.Warning, File: t.file, Line: t.line, Column: t.column, Pointer: t.pointer, Message: message, Hint: hint}
	if t.document && t.line > 0 {
		before := t.s[:offset]
		d.Line += strings.Count(before, "\n")
		d.Column = offset - strings.LastIndexByte(before, '\n')
	}
	s.problems = append(s.problems, d)
}

func isTextCode(code string) bool { return strings.HasPrefix(code, "text-") }

// look warns about hidden characters in a text and about what it asks for.
func (s *subject) look(t text) {
	for _, h := range hiddenIn(t.s) {
		message := fmt.Sprintf("%s has %s %s: %+q", t.what, diag.Count(h.count, "character"), h.kind, h.first)
		if h.count > 1 {
			message += ", and so on"
		}
		if h.spelt != "" {
			message += fmt.Sprintf("; read as letters, some spell %+q", clip(h.spelt))
		}
		s.warn(t, h.code, h.offset, message, "remove them, so that a person sees all that a model reads")
	}
	if at := notUTF8(t.s); at >= 0 && !slices.ContainsFunc(s.problems, func(d diag.Diagnostic) bool { return d.File == t.file && d.Code == tools.CodeNotUTF8 }) {
		s.warn(t, tools.CodeNotUTF8, at, fmt.Sprintf("%s is not UTF-8", t.what), "save the file as UTF-8")
	}
	plain, offsets := visible(t.s)
	if t.document {
		plain = unquoted(plain)
	}
	lower := lowered(plain)
	for _, rule := range rules() {
		if m := rule.find(plain, lower); m != nil {
			at := offsets(m[0])
			s.warn(t, rule.code, at, fmt.Sprintf("%s %s: %+q", t.what, rule.says, clip(plain[m[0]:m[1]])), rule.hint)
		}
	}
	if !t.quiet {
		s.names(t)
	}
}

// names warns about tools and files that a text mentions which models see beforehand.
func (s *subject) names(t text) {
	plain, _ := visible(t.s)
	for _, rule := range mentions() {
		if m := rule.pattern.FindStringIndex(plain); m != nil {
			s.warn(t, rule.code, 0, fmt.Sprintf("%s %s: %+q", t.what, rule.says, clip(strings.TrimSpace(plain[m[0]:m[1]]))), rule.hint)
		}
	}
}

// A rule is something that a text should not say.
type rule struct {
	code    string
	pattern *regexp.Regexp
	says    string
	hint    string
	// A match begins with one of these words, in lower case; nil: with anything.
	starts []string
	here   *regexp.Regexp
	// except matches words before a match that forbid what it says.
	except *regexp.Regexp
}

// excuses reports whether the author does not mean a match in plain: it is quoted, as
// in a warning about such texts, or the words before it forbid it.
func (r *rule) excuses(plain string, from, to int) bool {
	begin := strings.LastIndexByte(plain[:from], '\n') + 1
	before, behind := plain[begin:from], plain[to:]
	if i := strings.IndexByte(behind, '\n'); i >= 0 {
		behind = behind[:i]
	}
	for _, q := range [][2]string{{`"`, `"`}, {"`", "`"}, {"“", "”"}, {"‘", "’"}, {"«", "»"}, {"„", "“"}} {
		opened := strings.Count(before, q[0]) > strings.Count(before, q[1])
		if q[0] == q[1] {
			opened = strings.Count(before, q[0])%2 == 1
		}
		if opened && strings.Contains(behind, q[1]) {
			return true
		}
	}
	if q := singleQuotes(); q[0].MatchString(before) && q[1].MatchString(behind) {
		return true
	}
	return r.except != nil && r.except.MatchString(before)
}

// singleQuotes matches the text before and after a text in single quotes. An
// apostrophe is inside a word and does not begin one.
var singleQuotes = sync.OnceValue(func() [2]*regexp.Regexp {
	return [2]*regexp.Regexp{regexp.MustCompile(`(^|[\s(\[])'[^']*$`), regexp.MustCompile(`^[^']*'($|\W)`)}
})

// worded returns a case-insensitive rule about wording: a match begins with one of
// the words and continues as in the pattern.
func worded(code, pattern, says string, starts ...string) rule {
	return rule{
		code: code, pattern: regexp.MustCompile(`(?i)\b` + pattern), says: says, hint: wordsHint,
		starts: starts, here: regexp.MustCompile(`^(?i:` + pattern + `)`),
	}
}

// saying matches the rest of a prohibition to say something: "say that you", "write
// that the model may", "write: ".
const saying = `\s+((say|claim|suggest|write|assume|accept|agree)\s+that\s+(\w+\s+){0,3}|(say|write|accept|follow|obey)\s*:\s*)`

// forbidden returns a rule that does not match what is forbidden by preceding words,
// whose end matches the pattern.
func forbidden(r rule, pattern string) rule {
	r.except = regexp.MustCompile(`(?i)\b(never|do\s+not|don['’]t|must\s+not|should\s+not|may\s+not|cannot|can['’]t|refuse\s+to|avoid)(` + pattern + `|` + saying + `)$`)
	return r
}

// find returns the first match of the pattern in plain that is not excused. lower is plain with
// ASCII letters in lower case. It tries only where a match can begin, which is many times faster
// than letting package regexp search.
func (r *rule) find(plain, lower string) []int {
	if r.starts == nil || strings.ContainsAny(plain, "ſ\u212A") { // which are s and k in another case
		for _, m := range r.pattern.FindAllStringIndex(plain, -1) {
			if !r.excuses(plain, m[0], m[1]) {
				return m
			}
		}
		return nil
	}
	var candidates []int
	for _, word := range r.starts {
		for at := 0; ; at++ {
			i := strings.Index(lower[at:], word)
			if i < 0 {
				break
			}
			at += i
			if at == 0 || !isWord(plain[at-1]) {
				candidates = append(candidates, at)
			}
		}
	}
	slices.Sort(candidates)
	done := 0 // where the last match that is excused ends
	for _, at := range candidates {
		m := r.here.FindStringIndex(plain[at:])
		if m == nil || at < done {
			continue
		}
		if !r.excuses(plain, at, at+m[1]) {
			return []int{at, at + m[1]}
		}
		done = at + m[1]
	}
	return nil
}

// isWord reports whether a byte belongs to a word, as for \b.
func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// lowered returns s with ASCII letters in lower case; offsets stay the same.
func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

const wordsHint = "say to the model what the pack is for, and nothing against the person who uses it"

// rules apply to all texts. They are made on first use, since servers never need
// them. They match wordings, so they also find harmless texts, and miss other
// wordings.
var rules = sync.OnceValue(func() []rule {
	return []rule{
		forbidden(worded(CodeTextOverride, `(ignore|disregard|forget|override|bypass)\s+((all|any|every|each|the|your|my|of|these|those)\s+)*(previous|prior|earlier|above|preceding|foregoing|former|system|original|existing)\s+(instruction|prompt|rule|message|direction|guideline|command|polic|safety)`,
			"wants to replace the model's instructions", "ignore", "disregard", "forget", "override", "bypass"), `\s+(\w+\s+){0,2}`),
		worded(CodeTextSecrecy, `(do\s+not|don['’]?t|never|must\s+not|should\s+not|avoid)\s+(ever\s+)?(tell(ing)?|inform(ing)?|notify(ing)?|alert(ing)?|warn(ing)?|(mention(ing)?|reveal(ing)?|disclos(e|ing)|report(ing)?|show(ing)?)\s+((this|that|it|these|them|any\s+of\s+this|this\s+\w+|these\s+\w+)\s+)?to)\s+(the|your|any)\s+(user|human|person)\b`,
			"wants something kept from the user", "do", "don", "never", "must", "should", "avoid"),
		forbidden(worded(CodeTextSecrecy, `(without\s+(the\s+)?(user|human)(['’]s)?\s+(knowledge|knowing|noticing|consent|awareness)|without\s+(telling|informing|notifying|alerting)\s+(the\s+|your\s+)?(user|human)|(keep|hide)\s+(this|it|these)\s+(a\s+)?(secret\s+)?from\s+(the|your)\s+(user|human)|(user|human)\s+(must|should|may)\s+(not|never)\s+(know|notice|be\s+(told|informed|aware)))\b`,
			"wants something kept from the user", "without", "keep", "hide", "user", "human"), `\s+[^.!?;:,]*`),
	}
})

// mentions apply to descriptions, schemas and the like. They are made on first use,
// too.
var mentions = sync.OnceValue(func() []rule {
	return []rule{
		{code: CodeTextOverride, pattern: regexp.MustCompile(`(?i)<\s*/?\s*(important|system|instructions?|assistant|secret)\s*>|<\|im_(start|end)\|>|\[/?INST\]`),
			says: "is marked up like an instruction to the model", hint: "describe the pack in plain sentences"},
		{code: CodeTextOtherTool, pattern: regexp.MustCompile(`\bmcp__[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__[A-Za-z0-9_*-]+`),
			says: "mentions another server's tool", hint: "mention only this pack's own tools"},
		{code: CodeTextCredential, pattern: regexp.MustCompile(`(?i)(~|\$HOME|\$\{HOME\}|/home/\w+|/root|/Users/\w+)/\.(ssh|aws|gnupg|netrc|kube|docker|config/gh|git-credentials)\b|\bid_(rsa|ed25519|ecdsa)\b|\.aws/credentials\b|/etc/shadow\b`),
			says: "speaks of a file with keys in it", hint: "let the tool take what it needs as an argument that the user sees"},
	}
})
