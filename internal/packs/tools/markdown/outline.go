package markdown

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	md "github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// The levels of headings that have a meaning.
const (
	toolLevel = 3
	partLevel = 4
)

// A section is the text under one heading of level 1 to 3, or before the first one.
type section struct {
	level int    // 0 before the first heading
	at    int    // offset of the heading's text in the body
	title string // as written
	intro []ast.Node
	parts []part
}

// A part is the text under one heading of level 4.
type part struct {
	at     int
	title  string // in lower case
	blocks []ast.Node
}

// name returns the heading without the escapes and marks that Markdown needs around a name.
func (s *section) name() string {
	name := s.title
	if len(name) > 2 && name[0] == '`' && name[len(name)-1] == '`' {
		return strings.TrimSpace(name[1 : len(name)-1])
	}
	return strings.ReplaceAll(name, `\_`, "_")
}

func (s *section) all(title string) []part {
	var out []part
	for _, p := range s.parts {
		if p.title == title {
			out = append(out, p)
		}
	}
	return out
}

func (p part) fences() []*ast.FencedCodeBlock {
	var out []*ast.FencedCodeBlock
	for _, b := range p.blocks {
		if f, ok := b.(*ast.FencedCodeBlock); ok {
			out = append(out, f)
		}
	}
	return out
}

func (p part) hasFence() bool { return len(p.fences()) > 0 }

func (p part) tables() []*table {
	var out []*table
	for _, b := range p.blocks {
		if t, ok := b.(*table); ok {
			out = append(out, t)
		}
	}
	return out
}

func (p part) hasTable() bool { return len(p.tables()) > 0 }

// outline parses the body. Headings inside lists and quotations are text. unclosed is the
// last fence if nothing closes it.
func (m *document) outline() (sections []*section, unclosed *ast.FencedCodeBlock) {
	doc := newMarkdownParser().Parse(text.NewReader(m.src))
	current := &section{}
	sections = append(sections, current)
	for b := doc.FirstChild(); b != nil; b = b.NextSibling() {
		h, isHeading := b.(*ast.Heading)
		switch {
		case isHeading && h.Level <= toolLevel:
			current = &section{level: h.Level}
			current.title, current.at = m.heading(h)
			sections = append(sections, current)
		case isHeading && h.Level == partLevel:
			title, at := m.heading(h)
			current.parts = append(current.parts, part{title: strings.ToLower(title), at: at})
		case len(current.parts) > 0:
			last := &current.parts[len(current.parts)-1]
			last.blocks = append(last.blocks, b)
		default:
			current.intro = append(current.intro, b)
		}
	}
	if f, ok := doc.LastChild().(*ast.FencedCodeBlock); ok && !m.closed(f) {
		unclosed = f
	}
	return sections, unclosed
}

// heading returns the text of a heading and its offset.
func (m *document) heading(h *ast.Heading) (title string, at int) {
	if h.Lines().Len() == 0 {
		return "", max(h.Pos(), 0)
	}
	first := h.Lines().At(0)
	return strings.TrimSpace(string(first.Value(m.src))), first.Start
}

// closed reports whether a line closes the fence. That line follows the content, which
// otherwise extends to the end of the text.
func (m *document) closed(f *ast.FencedCodeBlock) bool {
	end := len(m.src)
	if n := f.Lines().Len(); n > 0 {
		end = f.Lines().At(n - 1).Stop
	} else if i := bytes.IndexByte(m.src[max(f.Pos(), 0):], '\n'); i >= 0 {
		end = max(f.Pos(), 0) + i + 1
	}
	return end < len(m.src)
}

// fenceText returns the content of a fence, with "\n" at the end of each line.
func (m *document) fenceText(f *ast.FencedCodeBlock) string {
	return strings.ReplaceAll(string(f.Lines().Value(m.src)), "\r\n", "\n")
}

// text returns the paragraphs and lists among blocks, with an empty line between them.
// Each paragraph and each list item is on one line.
func (m *document) text(blocks []ast.Node) string {
	var out []string
	for _, b := range blocks {
		text := ""
		switch b := b.(type) {
		case *ast.Paragraph:
			text = m.line(b)
		case *ast.List:
			text = strings.Join(m.items(b), "\n")
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n\n")
}

// items returns the items of a list with their markers. A nested list is text of its item,
// since the parser does not look that deep.
func (m *document) items(list *ast.List) []string {
	var out []string
	number := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		words := []string{string(rune(list.Marker))}
		if list.IsOrdered() {
			words[0] = strconv.Itoa(number) + words[0]
			number++
		}
		for b := item.FirstChild(); b != nil; b = b.NextSibling() {
			switch b.(type) {
			case *ast.Paragraph, *ast.TextBlock:
				words = append(words, m.line(b))
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// line returns the text of a block on one line.
func (m *document) line(b ast.Node) string {
	return strings.Join(strings.Fields(string(b.Lines().Value(m.src))), " ")
}

// node returns a node for the text at an offset of the body.
func (m *document) node(at int, text string) *strictjson.Node {
	return &strictjson.Node{Kind: strictjson.Text, Start: min(m.base+max(at, 0), m.base+len(m.src)), Text: text}
}

// newMarkdownParser returns a block parser for one document. It parses nothing inside a
// line: names, commands and cells are taken as written.
//
// A document cannot make it use much time or memory: the nesting of lists and quotations
// and the number of table cells are bounded. Beyond these bounds, they are text.
func newMarkdownParser() md.Parser {
	return md.NewParser(
		md.WithBlockParsers(
			util.Prioritized(md.NewSetextHeadingParser(), 100),
			util.Prioritized(md.NewThematicBreakParser(), 200),
			util.Prioritized(shallow{md.NewListParser()}, 300),
			util.Prioritized(md.NewListItemParser(), 400),
			util.Prioritized(md.NewCodeBlockParser(), 500),
			util.Prioritized(md.NewATXHeadingParser(), 600),
			util.Prioritized(md.NewFencedCodeBlockParser(), 700),
			util.Prioritized(shallow{md.NewBlockquoteParser()}, 800),
			util.Prioritized(md.NewHTMLBlockParser(), 900),
			util.Prioritized(md.NewParagraphParser(), 1000),
		),
		md.WithParagraphTransformers(util.Prioritized(&tables{cells: maxCells}, 100)),
	)
}

// maxNesting is how deeply lists and quotations are parsed. Their contents declare nothing;
// only their ends matter.
const maxNesting = 2

// shallow opens no block that is nested too deeply.
type shallow struct{ md.BlockParser }

func (s shallow) Open(parent ast.Node, reader text.Reader, pc md.Context) (ast.Node, md.State) {
	depth := 0
	for n := parent; n != nil && n.Parent() != nil; n = n.Parent() {
		depth++
	}
	if depth >= maxNesting {
		return nil, md.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}
