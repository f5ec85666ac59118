package markdown

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	md "github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A seen is a block of a document. For a table, it has the position and the cells of each
// row.
type seen struct {
	Kind string
	At   int
	Text string
	Rows [][]cell
}

// outlineBy returns the blocks of a document, parsing tables with tr.
func outlineBy(src []byte, tr md.ParagraphTransformer) []seen {
	p := md.NewParser(
		md.WithBlockParsers(
			util.Prioritized(md.NewListParser(), 300), util.Prioritized(md.NewListItemParser(), 400),
			util.Prioritized(md.NewCodeBlockParser(), 500), util.Prioritized(md.NewBlockquoteParser(), 800),
			util.Prioritized(md.NewParagraphParser(), 1000)),
		md.WithParagraphTransformers(util.Prioritized(tr, 100)))
	var out []seen
	_ = ast.Walk(p.Parse(text.NewReader(src)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() != ast.TypeBlock {
			return ast.WalkContinue, nil
		}
		b := seen{Kind: n.Kind().String(), At: n.Pos()}
		switch n := n.(type) {
		case *table:
			for _, r := range append([]row{n.header}, n.rows...) {
				b.Rows = append(b.Rows, append([]cell{{at: r.at}}, r.cells...))
			}
		case *extast.Table:
			for r := n.FirstChild(); r != nil; r = r.NextSibling() {
				cells := []cell{{at: r.Pos()}}
				for c := r.FirstChild(); c != nil; c = c.NextSibling() {
					if c.Lines().Len() == 0 {
						cells = append(cells, cell{at: -1})
						continue
					}
					s := c.Lines().At(0)
					cells = append(cells, cell{s.Start, s.Stop})
				}
				b.Rows = append(b.Rows, cells)
			}
			out = append(out, b)
			return ast.WalkSkipChildren, nil
		default:
			b.Text = string(n.Lines().Value(src))
		}
		out = append(out, b)
		return ast.WalkContinue, nil
	})
	return out
}

// Tables equal those of Goldmark's own extension, byte for byte.
func FuzzTable(f *testing.F) {
	for _, src := range []string{
		"| a | b |\n|---|---|\n| 1 | 2 |\n", "a|b\n-|-\n1|2", "a|b\r\n:-|-:\r\n1|2|3\r\n\r\nx", "text\nmore\n| a |\n| :-: |\n|  |\n",
		"| a |\n|-|-|\n| 1 | 2 | 3 |\n|\n||\n|||\n", "| a | b |\n|-|\n", "| `a\\|b` | \\| |\n|-|-|\n| \\\\| x |\n", "a\n-\n", "a\n--\n|--\nb", "|\n|-|\n|", "||\n|-|\n||",
		"> | a | b |\n> |---|---|\n> | 1 |\n", "- | a |\n  |---|\n  \t| 1 |\n", "a | b\n   -|-\n", "a | b\n    -|-\n", "a|b\n- -|-\n", "a|b\n::-|-\n", "a|b\n:|-\n", "a|b\n-|-|\n-|-\n1|2\n",
		"a\n|:-:\n-|-\n", "a\tb|c\n-\t|\t-\nd\t|\te\n", "a|b\n-\f|-\n", "a|b\n-\v|-\n", "é|ü\n-|-\nß\n\x00|\xff\n", "x\na|b\n-|-\ny\n-|-\n", strings.Repeat("|a", 40) + "\n" + strings.Repeat("|-", 40) + "\nb\n",
	} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 1<<10 { // too short to reach maxCells
			return
		}
		got, want := outlineBy(src, &tables{cells: maxCells}), outlineBy(src, extension.NewTableParagraphTransformer())
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(cell{})); diff != "" {
			t.Errorf("blocks of %q: -goldmark's +ours\n%s", src, diff)
		}
	})
}
