// Package frontmatter parses the YAML block at the head of a pack's entry document. It is
// lenient, and warns about each mistake that it tolerates.
//
// It does not check a pack against any specification: a name that is not a valid
// identifier is returned unchanged. It does not parse the Markdown below the block, and
// does not touch the disk.
package frontmatter

import (
	"bytes"
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// MaxSize is the default limit for the size of a block.
const MaxSize = 64 << 10 // 64 KiB

// MarkerSlack is room for the marker lines around a block of the largest size, in bytes.
const MarkerSlack = 1 << 10

// Codes of the diagnostics of this package. They are stable.
const (
	CodeMissing            = "frontmatter-missing"     // error: the file does not begin with a line "---"
	CodeUnclosed           = "frontmatter-unclosed"    // error: no closing line "---"
	CodeTooLarge           = "frontmatter-too-large"   // error: the block is larger than the limit
	CodeTooComplex         = "frontmatter-too-complex" // error: the block takes more steps to read than MaxSteps
	CodeUnread             = "frontmatter-unread"      // error: the block takes more steps than are left; a later scan may read it
	CodeNotMapping         = "frontmatter-not-mapping" // error: YAML, but not keys and values
	CodeInvalid            = "yaml-invalid"            // error: not YAML, and no key could be found in it
	CodeComment            = "value-comment"           // warning: a name or description ends at a #, which begins a comment
	CodeRecovered          = "yaml-recovered"          // warning: not YAML, but read after a repair; says which
	CodeDuplicate          = "key-duplicate"           // warning: a key occurs twice; the last one counts
	CodeWrongType          = "key-wrong-type"          // warning: a known key with a value of the wrong type; ignored, or read as the message says
	CodeNameMissing        = "name-missing"            // error: no name, an empty one, or a list or mapping
	CodeNameNotText        = "name-not-text"           // warning: a number, date or true/false, read as its text
	CodeCharset            = "document-charset"        // warning: not UTF-8; read in the encoding that was detected
	CodeDescriptionMissing = "description-missing"     // error: as for the name
	CodeDescriptionNotText = "description-not-text"    // warning: as for the name
)

// A Document is the content of a block. Texts are valid UTF-8, trimmed, and otherwise
// as written: they may hold control, bidi and invisible characters, which the code
// that shows them must escape.
type Document struct {
	Name        string // never empty after Parse
	Description string // whole, never empty after Parse

	Tags  []string
	Modes []string // where the pack is offered; empty means everywhere

	License       string
	Compatibility string
	ArgumentHint  string
	Version       string
	Author        string

	// MetadataVersion is the version in the mapping "metadata", where
	// agentskills.io/specification puts it.
	MetadataVersion string

	AllowedTools string // a list is joined with ", "; grants nothing

	// Defaults for the pack's Markdown tools; nil means not set.
	ReadOnly  *bool
	AlwaysAsk *bool
	Network   *bool
	Timeout   *int   // seconds, 1 to 300
	Review    bool   // a person sees every change of a tool before it is applied
	Cache     string // the name of the cache that each tool keeps between its runs; empty: none

	DisableModelInvocation bool  // not to be offered to the model
	UserInvocable          *bool // false: no prompt for people

	// BodyOffset is where the body begins in the document, in bytes. For a document
	// that is not UTF-8, it counts in the output of [charset.Text].
	BodyOffset int

	keys []keyLine
	raw  string     // the block, if it is valid YAML
	node *yaml.Node // the mapping, when recovery had to build it
}

type keyLine struct {
	key  string
	line int
}

// KeyLine returns the line of the file with the top-level key, or 0 if there is none.
func (d *Document) KeyLine(key string) int {
	for _, k := range d.keys {
		if k.key == key {
			return k.line
		}
	}
	return 0
}

// Node returns the whole block as a mapping node: keys verbatim, aliases expanded, and
// only the last of duplicate keys. Every key is a scalar. Lines are those of the file.
// For a block that needed no recovery, each call builds a new tree, since keeping ten
// thousand of them would take too much memory. Otherwise the tree belongs to the
// Document and must not be modified.
func (d *Document) Node() *yaml.Node {
	if d.node != nil {
		return d.node
	}
	lines := splitLines(d.raw)
	node := plainBlock(lines)
	var err error
	if node == nil {
		node, err = parseYAML(lines)
	}
	if err != nil || node == nil { // cannot happen: the same text was parsed before
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	dropDuplicates(node, func(*yaml.Node, *yaml.Node) {})
	return node
}

// Parse reads the block at the head of src. src is the beginning of the entry document
// that diagnostics call file; of a longer file, it must hold at least MaxSize plus a
// few bytes. The Document is nil if and only if one of the diagnostics is an error.
func Parse(file string, src []byte) (*Document, []diag.Diagnostic) {
	doc, problems := Inspect(file, src, MaxSize)
	if diag.HasErrors(problems) {
		return nil, problems
	}
	return doc, problems
}

// Inspect is Parse with a limit on the size of the block, in bytes. Even with an
// error it returns what it could read: the Document is nil only if no key could be
// read at all.
func Inspect(file string, src []byte, limit int) (*Document, []diag.Diagnostic) {
	doc, problems, _ := InspectWithin(file, src, limit, MaxSteps)
	return doc, problems
}

// InspectWithin is Inspect with a limit on the steps, see [MaxSteps]. It returns how
// many it took. If the limit is too low, and below MaxSteps, it reads nothing and the
// only diagnostic is [CodeUnread].
func InspectWithin(file string, src []byte, limit, steps int) (doc *Document, problems []diag.Diagnostic, took int) {
	p := &parser{file: file, steps: min(steps, MaxSteps)}
	doc = p.inspect(src, limit)
	if p.spent {
		p.problems = nil
		if p.steps == MaxSteps {
			p.report(diag.Error, CodeTooComplex, 1, 1, "the frontmatter takes too long to read: it has too many values, or too many mistakes", "move all but a few keys into the document's body, or into a file of its own")
		} else {
			p.report(diag.Error, CodeUnread, 1, 1, "the frontmatter was not read yet, since other packs took too long", "it is read at the next scan; put packs that are slow to read into a folder of packs of their own")
		}
		doc = nil
	}
	return doc, p.problems, p.took
}

// inspect is Inspect within p's limits.
func (p *parser) inspect(src []byte, limit int) *Document {
	if set := charset.Of(src); set != charset.UTF8 {
		src = set.Decode(src)
		p.report(diag.Warning, CodeCharset, 1, 1, fmt.Sprintf("the document is %s, not UTF-8, and is read as that", set), "save the file as UTF-8")
	}
	block, state := Find(src)
	switch {
	case state == NotFound:
		message, hint := missingMessage(src)
		p.report(diag.Error, CodeMissing, 1, 1, message, hint)
		return nil
	case state == Unclosed && len(src)-block.Start <= limit:
		message := "the frontmatter has no closing line ---"
		if line, n := almostMarker(src[block.Start:]); n > 0 {
			message += fmt.Sprintf("; line %d, %q, does not close it", n+1, clip(string(bytes.TrimSpace(line))))
		}
		p.report(diag.Error, CodeUnclosed, 1, 1, message, "put a line that is only --- after the last key")
		return nil
	case state == Unclosed || block.End-block.Start > limit:
		p.report(diag.Error, CodeTooLarge, 1, 1, fmt.Sprintf("the frontmatter is larger than %d bytes", limit), "move text into the document's body, or close the block with a line that is only ---")
		return nil
	}

	if rest, ok := afterMarker(src[block.End:]); ok {
		p.report(diag.Warning, CodeRecovered, 2+bytes.Count(src[block.Start:block.End], newline), 1,
			fmt.Sprintf("the line --- that ends the frontmatter has %qafter it, which is read as the first line of the body", clip(string(bytes.TrimSpace(rest)))), "put it on a line of its own")
	}
	doc := p.mapping(src[block.Start:block.End])
	if doc == nil {
		return nil
	}
	doc.BodyOffset = block.Body
	p.fields(doc)
	return doc
}

// missingMessage says what the file has at its head instead of a block, and what to
// do about it.
func missingMessage(src []byte) (message, hint string) {
	const begin = "begin the file with a line ---, then name: and description:, then a line ---"
	text := bytes.TrimSpace(bytes.TrimPrefix(src, bom))
	first, rest, _ := bytes.Cut(text, newline)
	switch {
	case len(src) == 0:
		return "the file is empty", begin
	case isFence(first) && bytes.HasPrefix(bytes.TrimSpace(rest), marker):
		return fmt.Sprintf("the frontmatter is inside a code fence: the file begins with %q", clip(string(first))), "remove the line before the first ---, and the one that closes the fence"
	case isFence(first) && beginsWithKey(rest):
		return fmt.Sprintf("the file begins with a code fence, %q, where the line --- should be", clip(string(first))), "write --- in place of both lines of the fence"
	case bytes.HasPrefix(text, marker) && !bytes.HasPrefix(bytes.TrimPrefix(src, bom), marker):
		return "the file has something before the line --- that opens the frontmatter", "remove what is before it"
	case bytes.HasPrefix(first, []byte("+++")):
		return fmt.Sprintf("the frontmatter begins with %q, and is not YAML between lines ---", clip(string(bytes.TrimSpace(first)))), begin
	case bytes.HasPrefix(text, marker) && beginsWithKey(rest):
		return fmt.Sprintf("the line that opens the frontmatter is %q", clip(string(bytes.TrimSpace(first)))), "make the first line ---, and nothing else"
	case bytes.HasSuffix(bytes.TrimSpace(first), marker) && bytes.ContainsAny(first[:1], "!#"):
		return fmt.Sprintf("the line that opens the frontmatter begins with %q", first[:1]), "make the first line ---, and nothing else"
	}
	if line := laterBlock(src); line > 0 {
		return fmt.Sprintf("the frontmatter begins only on line %d, after %q", line, clip(string(bytes.TrimSpace(first)))), "move it to the beginning of the file"
	}
	return "the file has no frontmatter: its first line is not ---", begin
}

// laterBlock returns the line of a block that begins a little below the head of the
// file, where it is not read, or 0.
func laterBlock(src []byte) int {
	const most = 20 // lines; a block further down is an example
	for at, n := 0, 1; at < len(src) && n <= most; n++ {
		line, next, _ := cutLine(src, at)
		if isFence(line) {
			return 0 // an example, too
		}
		if n > 1 && isMarker(line) && beginsWithKey(src[next:]) {
			return n
		}
		at = next
	}
	return 0
}

// beginsWithKey reports whether a text begins with a key that packs have.
func beginsWithKey(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return bytes.HasPrefix(text, []byte("name:")) || bytes.HasPrefix(text, []byte("description:"))
}

// isFence reports whether a line begins or ends a Markdown code block.
func isFence(line []byte) bool {
	return bytes.HasPrefix(line, []byte("```")) || bytes.HasPrefix(line, []byte("~~~"))
}

// State says how much of a block Find saw.
type State int

const (
	// NotFound means that the text does not begin with an opening line.
	NotFound State = iota
	// Unclosed means that the closing line is not in the text; it may come
	// after it when the text is only the beginning of a file.
	Unclosed
	// Closed means that the whole block is in the text.
	Closed
)

// A Block says where a block is: src[Start:End] is its YAML, and the document's
// body begins at Body.
type Block struct{ Start, End, Body int }

var (
	bom     = []byte("\ufeff")
	marker  = []byte("---")
	newline = []byte("\n")
)

// Find finds the block at the head of src, which is UTF-8. The opening line is the
// first of the file (after a byte order mark), and the closing line is the next "---".
// Both may have trailing spaces but no leading ones. A heading directly after the
// closing marker, as in "---# Title", is the first line of the body.
func Find(src []byte) (Block, State) {
	at := 0
	if bytes.HasPrefix(src, bom) {
		at = len(bom)
	}
	line, next, whole := cutLine(src, at)
	if !isMarker(line) || !whole {
		if isMarker(line) {
			return Block{Start: len(src), End: len(src), Body: len(src)}, Unclosed
		}
		return Block{}, NotFound
	}
	block := Block{Start: next}
	for at = next; at < len(src); at = next {
		line, next, _ = cutLine(src, at)
		if isMarker(line) {
			block.End, block.Body = at, next
			return block, Closed
		}
		if rest, ok := afterMarker(line); ok {
			block.End, block.Body = at, at+len(line)-len(rest)
			return block, Closed
		}
	}
	block.End, block.Body = len(src), len(src)
	return block, Unclosed
}

// cutLine returns the line that begins at offset at, the offset of the next,
// and whether the line has its newline.
func cutLine(src []byte, at int) (line []byte, next int, whole bool) {
	if i := bytes.IndexByte(src[at:], '\n'); i >= 0 {
		return src[at : at+i], at + i + 1, true
	}
	return src[at:], len(src), false
}

func isMarker(line []byte) bool {
	return bytes.HasPrefix(line, marker) && len(bytes.TrimRight(line[len(marker):], " \t\r")) == 0
}

// afterMarker returns the heading that follows a closing marker on the same line. With
// a space before it, it would be a YAML comment.
func afterMarker(line []byte) (heading []byte, ok bool) {
	line, _, _ = bytes.Cut(line, newline)
	rest, ok := bytes.CutPrefix(line, marker)
	if !ok || !bytes.HasPrefix(rest, []byte("#")) {
		return nil, false
	}
	return rest, bytes.HasPrefix(bytes.TrimLeft(rest, "#"), []byte(" "))
}

// almostMarker returns the first line of a block that was probably meant to close it,
// and its number, or 0.
func almostMarker(block []byte) (line []byte, n int) {
	for at := 0; at < len(block); {
		var next int
		line, next, _ = cutLine(block, at)
		if n++; bytes.HasPrefix(line, marker) || bytes.Equal(bytes.TrimSpace(line), marker) || bytes.Equal(bytes.TrimSpace(line), []byte("...")) {
			return line, n
		}
		at = next
	}
	return nil, 0
}

// maxWarnings is how many warnings one block can have: enough to see what is wrong,
// and too few to fill a catalog.
const maxWarnings = 20

// parser collects what is found while one block is read.
type parser struct {
	file     string
	warnings int
	problems []diag.Diagnostic
	block    string // being read
	steps    int    // limit
	took     int    // steps taken so far, at most steps
	spent    bool   // the limit was too low
}

func (p *parser) report(s diag.Severity, code string, line, column int, message, hint string) {
	if s != diag.Error {
		if p.warnings++; p.warnings > maxWarnings {
			if p.warnings == maxWarnings+1 {
				p.cutShort()
			}
			return
		}
	}
	p.problems = append(p.problems, diag.Diagnostic{
		Code: code, Severity: s, File: p.file, Line: line, Column: column, Message: message, Hint: hint,
	})
}

// cutShort makes the last warning say that there are more.
func (p *parser) cutShort() {
	for i := len(p.problems) - 1; i >= 0; i-- {
		if d := &p.problems[i]; d.Severity != diag.Error {
			d.Message += "; more problems are not shown"
			return
		}
	}
}

// mapping reads the block's YAML, with recovery, into a Document without any fields
// filled in yet. After reporting an error it returns nil.
func (p *parser) mapping(block []byte) *Document {
	text := string(block)
	p.block = text
	lines := splitLines(text)
	doc := &Document{}
	node, err := p.parse(lines)
	switch {
	case err != nil:
		if node = p.recover(lines, err); node == nil {
			return nil
		}
		doc.node = node
	case node == nil:
		node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		doc.node = node
	case node.Kind != yaml.MappingNode:
		p.report(diag.Error, CodeNotMapping, node.Line, node.Column, "the frontmatter is not keys with values", "write each key as key: value on a line of its own")
		return nil
	default:
		doc.raw = text
	}
	dropDuplicates(node, func(earlier, later *yaml.Node) {
		p.report(diag.Warning, CodeDuplicate, earlier.Line, earlier.Column,
			fmt.Sprintf("key %q is there again on line %d, and the last one counts", clip(earlier.Value), later.Line), "remove one of the two")
	})
	for i := 0; i < len(node.Content); i += 2 {
		doc.keys = append(doc.keys, keyLine{node.Content[i].Value, node.Content[i].Line})
	}
	p.read(doc, node)
	return doc
}

// clip shortens a text of the pack for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
