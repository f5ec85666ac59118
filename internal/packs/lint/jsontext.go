package lint

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// jsonTexts checks every string in a JSON file, including keys, after decoding
// escapes. It skips a file that is not JSON: the tools parser reports that, and must
// be satisfied first.
func (s *subject) jsonTexts(file string, src []byte) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	root, err := strictjson.Parse(src)
	if err != nil {
		return
	}
	lines := []int{0} // offsets at which lines begin
	for i, c := range src {
		if c == '\n' {
			lines = append(lines, i+1)
		}
	}
	look := func(value string, start int, pointer string) {
		line := sort.SearchInts(lines, start+1)
		s.look(text{
			file: file, line: line, column: start - lines[line-1] + 1, pointer: pointer,
			what: fmt.Sprintf("the text at %s", clip(pointer)), s: value,
		})
	}
	var visit func(n *strictjson.Node, pointer string)
	visit = func(n *strictjson.Node, pointer string) {
		if n.Kind == strictjson.Text {
			look(n.Text, n.Start, pointer)
		}
		for i, item := range n.Items {
			visit(item, fmt.Sprintf("%s/%d", pointer, i))
		}
		for _, m := range n.Members {
			// Cut, since this path precedes that of every value below.
			at := pointer + strictjson.Pointer([]string{clip(m.Key)})
			look(m.Key, m.Start, at)
			visit(m.Value, at)
		}
	}
	visit(root, "")
}
