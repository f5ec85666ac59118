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

// The levels of headings that mean something.
const (
	toolLevel = 3
	partLevel = 4
)

// A section is what stands under one heading of level 1 to 3, or before the
// first one.
type section struct {
	level int    // 0 before the first heading
	at    int    // offset of the heading's text in the body
	title string // as written
	intro []ast.Node
	parts []part
}

// A part is what stands under one heading of level 4.
type part struct {
	at     int
	title  string // in lower case
	blocks []ast.Node
}

// name returns the heading without what Markdown needs around a name.
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

// outline reads the body. Headings inside lists and quotations are text. The
// fence is the last one, if nothing closes it.
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

// heading returns the text of a heading, and where it begins.
func (m *document) heading(h *ast.Heading) (title string, at int) {
	if h.Lines().Len() == 0 {
		return "", max(h.Pos(), 0)
	}
	first := h.Lines().At(0)
	return strings.TrimSpace(string(first.Value(m.src))), first.Start
}

// closed reports whether a line ends the fence: it is the one after the
// content, which goes on to the end of the text otherwise.
func (m *document) closed(f *ast.FencedCodeBlock) bool {
	end := len(m.src)
	if n := f.Lines().Len(); n > 0 {
		end = f.Lines().At(n - 1).Stop
	} else if i := bytes.IndexByte(m.src[max(f.Pos(), 0):], '\n'); i >= 0 {
		end = max(f.Pos(), 0) + i + 1
	}
	return end < len(m.src)
}

// fenceText returns what is in a fence, with "\n" at the end of each line.
func (m *document) fenceText(f *ast.FencedCodeBlock) string {
	return strings.ReplaceAll(string(f.Lines().Value(m.src)), "\r\n", "\n")
}

// text returns the paragraphs and lists among blocks, with an empty line between them.
// Each paragraph and each item of a list is on one line.
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

// items returns the items of a list as they are marked. Lists in it are text of their
// item: so deep, they are not looked into.
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

// node returns a place in the body, and a text that stands there.
func (m *document) node(at int, text string) *strictjson.Node {
	return &strictjson.Node{Kind: strictjson.Text, Start: min(m.base+max(at, 0), m.base+len(m.src)), Text: text}
}

// newMarkdownParser returns a parser of blocks for one document. What stands
// inside a line is not parsed: names, commands and cells are read as they are
// written.
//
// A document cannot make it work long or take much memory: how deeply lists and
// quotations may be nested, and how many cells all tables may have, is bounded.
// Beyond that they are text.
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

// maxNesting is how deeply lists and quotations are looked into. What is in
// them declares nothing; it only matters where they end.
const maxNesting = 2

// shallow opens no block too deep in others.
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
