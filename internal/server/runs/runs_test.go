package runs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// A client is told which run has the turn that its own waits for, and which pack it is
// of only if the client may know about that pack.
func TestTurnOf(t *testing.T) {
	root := t.TempDir()
	testdata.Plant(t, root, "-- notes/SKILL.md --\n---\nname: notes\ndescription: N.\n---\n-- secret/SKILL.md --\n---\nname: secret\ndescription: S.\n---\n")
	catalog, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true}}})
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{
		Call: &calls.Call{Catalog: catalog},
		runs: New(Options{Offer: offer.New(offer.Options{Forbids: func(_ call.Kind, id string) bool { return id == "secret" }})}),
	}
	holder := changes.Holder{Folder: "/work", PID: 7}
	holder.Run.ID, holder.Run.Tool = "r-1", "build"
	for pack, named := range map[string]bool{"notes": true, "secret": false, "elsewhere": false} {
		holder.Run.Pack = pack
		text := r.turnOf(holder)
		if strings.Contains(text, pack) != named || strings.Contains(text, "build") != named || !strings.Contains(text, "/work") {
			t.Errorf("of %s, a client is told %q, want its name: %v", pack, text, named)
		}
	}
}

func Example() {
	r := &Run{runs: New(Options{})}
	fmt.Println(r.turnOf(changes.Holder{}))
	// Output:
	// its turn in a folder that another run may change
}
