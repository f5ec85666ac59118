package offer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
)

// Nobody is offered a pack about which rules forbid everything.
func Example() {
	root, err := os.MkdirTemp("", "offer")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	for _, name := range []string{"notes", "secret"} {
		_ = os.Mkdir(filepath.Join(root, name), 0o700)
		_ = os.WriteFile(filepath.Join(root, name, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: Use it.\n---\n"), 0o600)
	}
	catalog, err := packs.Scan(context.Background(), packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := offer.New(offer.Options{
		Forbids:     func(_ call.Kind, id string) bool { return id == "secret" },
		Description: 100,
	})
	for _, p := range o.AsPrompts(o.Prompts(catalog)) {
		fmt.Println(p.Name)
	}
	// Output:
	// attach
	// detach
	// notes
}
