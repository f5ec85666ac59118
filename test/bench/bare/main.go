// Command bare is the baseline for measuring packs-mcp: a server with the same library and
// the library's own transport, whose six tools do nothing.
package main

import (
	"context"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	s := server.NewMCPServer("bare", "1", server.WithToolCapabilities(true))
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		s.AddTool(
			mcp.NewTool(name, mcp.WithDescription("Does nothing."), mcp.WithString("text", mcp.Required())),
			func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText(req.GetString("text", "")), nil
			},
		)
	}
	if err := server.ServeStdio(s); err != nil {
		log.Fatal(err)
	}
}
