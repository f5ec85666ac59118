package memo_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
)

// A scan writes what it sees of each directory. The next scan reads that while it
// looks at the directories.
func Example() {
	w := memo.NewWriter(new(memo.Memo))
	root := w.Begin(&memo.Node{Entries: "dbilling/"})
	w.End(w.Begin(&memo.Node{Name: "billing", Entries: "fSKILL.md/"}))
	w.End(root)
	last := w.Memo("/srv/packs")

	var top, below memo.Node
	subs, _ := last.Read(0, &top)
	for {
		name, at, ok := subs.Next()
		if !ok {
			break
		}
		last.Read(at, &below)
		_, isPack := below.Entries.Find("SKILL.md")
		fmt.Println(name, isPack)
	}
	// Output: billing true
}
