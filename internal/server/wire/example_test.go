package wire_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// An echo is a host that answers each request with the name of its method.
type echo struct{}

func (echo) Open(wire.Client) (wire.Chat, error) { return room{}, nil }
func (echo) Redact(text string) string           { return text }
func (echo) MaxMessage() int                     { return 1 << 10 }
func (echo) Logger() *slog.Logger                { return slog.New(slog.DiscardHandler) }

func (echo) Reply(_ context.Context, m wire.Message) mcp.JSONRPCMessage {
	if m.Own {
		m.Session.Close()
	}
	if m.ID == nil {
		return nil
	}
	return mcp.JSONRPCResponse{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(m.ID), Result: map[string]string{"method": m.Method},
	}
}

// A room is a chat in which nothing changes, and which has no resources.
type room struct{ wire.Chat }

func (room) ID() string             { return "stdio-1" }
func (room) Listen(*wire.Session)   {}
func (room) Unlisten(*wire.Session) {}
func (room) Abandon()               {}
func (room) Close()                 {}

// The host answers valid requests; the wire refuses the rest itself, with the
// ids as the client wrote them.
func ExampleServeStdio() {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":"a","method":"ping"}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/list","id":8}`,
		`{"jsonrpc":"2.0","method":"notifications/progress"}`,
		`[]`,
	} {
		if err := wire.ServeStdio(context.Background(), echo{}, strings.NewReader(line), os.Stdout); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// {"jsonrpc":"2.0","id":"a","result":{"method":"ping"}}
	// {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message has \"id\" twice"}}
	// {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not supported; send one message a line"}}
}
