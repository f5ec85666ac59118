package server

import (
	"fmt"
	"testing"
)

// Of few packs, a tool's name is found at once, before there was a quiet moment
// and before anybody opened the pack; of packs that are not attached, after one.
func TestToolsAreFoundWithTheFirstQuery(t *testing.T) {
	declare := func(pack, tool string) string {
		return fmt.Sprintf("-- %s/tools.json --\n[{\"name\": %q, \"description\": \"D.\", \"command\": [\"true\"]}]\n", pack, tool)
	}
	tree := pack("near", "Something.") + declare("near", "open_ticket") + pack("far", "Else.") + declare("far", "close_incident")
	w := newWorld(t, tree, attachOnly("near"))
	index := func() (byTool map[string]int) {
		t.Helper()
		index, ids := w.srv.searched(t.Context())
		byTool = make(map[string]int)
		for _, word := range []string{"ticket", "incident"} {
			for _, h := range index.Search(word, 10, nil) {
				byTool[word+" of "+ids[h.Index]]++
			}
		}
		return byTool
	}
	if got := index(); len(got) != 1 || got["ticket of near"] != 1 {
		t.Errorf("the first query finds %v, want the tool of the pack that is attached", got)
	}
	w.srv.Ready(t.Context())
	if got := index(); len(got) != 2 || got["ticket of near"] != 1 || got["incident of far"] != 1 {
		t.Errorf("after a quiet moment, a query finds %v, want the tools of both", got)
	}
}
