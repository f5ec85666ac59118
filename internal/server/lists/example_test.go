package lists_test

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// chat is a chat that enabled tools of its own.
type chat struct {
	catalog *packs.Catalog
	tools   []mcp.Tool
}

func (c *chat) Catalog(context.Context) *packs.Catalog { return c.catalog }
func (c *chat) Tools(*packs.Catalog) []mcp.Tool        { return c.tools }
func (c *chat) HasOwnPacks() bool                      { return false }
func (c *chat) HasOwnTools() bool                      { return true }

// printer prints what a client is told.
type printer struct{}

func (printer) Tell(n wire.Note) { fmt.Println(n.Method) }

// A client is told when its tools are others than those it was given.
func Example() {
	c := &chat{catalog: new(packs.Catalog)}
	f := lists.NewFollower(c, lists.NewShared(lists.Options{
		Tools:  func(*packs.Catalog) []mcp.Tool { return nil },
		Differ: func(_, _ *packs.Catalog) (prompts, resources bool) { return false, false },
	}))
	f.Listen(printer{})
	f.GiveTools(context.Background(), c.Tools)
	f.Follow(context.Background())
	c.tools = []mcp.Tool{{Name: "notes__find"}}
	f.Follow(context.Background())
	// Output:
	// notifications/tools/list_changed
}
