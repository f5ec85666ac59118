package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	md "github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A table is a block with rows of raw cells. Goldmark's extension for tables is not used,
// since initialising its package would take a tenth of the program's start-up time.
type table struct {
	ast.BaseBlock
	header row
	rows   []row
}

// A row has as many cells as the delimiter row: missing ones are empty, and further ones
// are dropped.
type row struct {
	at    int // offset in the body
	cells []cell
}

// A cell is the position of its text; at is -1 for a missing cell.
type cell struct{ at, end int }

// Kind implements [ast.Node].
func (*table) Kind() ast.NodeKind { return extast.KindTable }

// Dump implements [ast.Node].
func (t *table) Dump(source []byte, level int) { ast.DumpHelper(t, source, level, nil, nil) }

// maxCells bounds the number of cells in all tables of a document. Short rows are padded,
// so even a small file can have very many.
const maxCells = 20_000

// tables turns paragraphs into tables, as GitHub does, while cells are left.
type tables struct{ cells int }

// Transform implements [md.ParagraphTransformer]. The lines above the header remain a
// paragraph.
func (t *tables) Transform(p *ast.Paragraph, reader text.Reader, _ md.Context) {
	lines, source := p.Lines(), reader.Source()
	for i := 1; i < lines.Len(); i++ {
		segment := lines.At(i)
		line := segment.Value(source)
		if len(bytes.Trim(line, "-:| \t\r\n")) > 0 {
			continue
		}
		// The first possible delimiter row decides.
		t.cells -= (bytes.Count(line, []byte("|")) + 1) * lines.Len()
		if t.cells >= 0 {
			makeTable(p, source)
		}
		return
	}
}

// makeTable turns the end of a paragraph into a table if one of its lines can be a
// delimiter row, and the line above it has no more cells.
func makeTable(p *ast.Paragraph, source []byte) {
	lines := p.Lines()
	for i := 1; i < lines.Len(); i++ {
		segment := lines.At(i)
		width := columnsOf(segment.Value(source))
		if width == 0 {
			continue
		}
		header, more := rowOf(lines.At(i-1), source, width)
		if more {
			return
		}
		t := &table{header: header}
		t.SetPos(p.Pos())
		for j := i + 1; j < lines.Len(); j++ {
			r, _ := rowOf(lines.At(j), source, width)
			t.rows = append(t.rows, r)
		}
		lines.SetSliced(0, i-1)
		p.Parent().InsertAfter(p.Parent(), p, t)
		if lines.Len() == 0 {
			p.Parent().RemoveChild(p.Parent(), p)
			return
		}
		last := lines.At(lines.Len() - 1)
		last.Stop-- // its line break
		lines.Set(lines.Len()-1, last)
		return
	}
}

// columnsOf returns the number of columns of a delimiter row, or 0 for any other line.
func columnsOf(line []byte) int {
	if indent, _ := util.IndentWidth(line, 0); indent > 3 || len(bytes.Trim(line, "-")) == 0 {
		return 0
	}
	marks := bytes.Split(line, []byte("|"))
	if util.IsBlank(marks[0]) {
		marks = marks[1:]
	}
	if n := len(marks) - 1; n >= 0 && util.IsBlank(marks[n]) {
		marks = marks[:n]
	}
	for _, c := range marks {
		c = bytes.TrimSuffix(bytes.TrimPrefix(bytes.Trim(c, " \t\r\n"), []byte(":")), []byte(":"))
		if len(c) == 0 || len(bytes.Trim(c, "-")) > 0 {
			return 0
		}
	}
	return len(marks)
}

// rowOf returns the first width cells of a line, and whether it has more. Cells are
// separated by each "|" without a "\" before it.
func rowOf(segment text.Segment, source []byte, width int) (r row, more bool) {
	r.at = segment.Start
	segment = segment.TrimLeftSpace(source)
	segment = segment.TrimRightSpace(source)
	line := segment.Value(source)
	at, end := 0, len(line)
	if len(line) > 0 {
		if line[0] == '|' {
			at++
		}
		if line[end-1] == '|' {
			end--
		}
	}
	for at < end && len(r.cells) < width {
		stop := at
		for stop < end && (line[stop] != '|' || stop > 0 && line[stop-1] == '\\') {
			stop++
		}
		text := text.NewSegment(segment.Start+at, segment.Start+stop)
		text = text.TrimLeftSpace(source)
		text = text.TrimRightSpace(source)
		r.cells = append(r.cells, cell{text.Start, text.Stop})
		at = stop + 1
	}
	for len(r.cells) < width {
		r.cells = append(r.cells, cell{at: -1})
	}
	return r, at < end
}
