package httpd_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// An echo is a host that answers each request with the name of its method.
type echo struct{}

func (echo) Open(wire.Client) (wire.Chat, error) { return room{}, nil }
func (echo) Redact(text string) string           { return text }
func (echo) MaxMessage() int                     { return 1 << 10 }
func (echo) Logger() *slog.Logger                { return slog.New(slog.DiscardHandler) }
func (echo) Drain()                              {}
func (echo) SharedWorkspace() string             { return "" }

func (echo) OverHTTP(ctx context.Context, _ http.Header) context.Context { return ctx }

func (echo) Reply(_ context.Context, m wire.Message) mcp.JSONRPCMessage {
	m.Session.Close()
	return mcp.JSONRPCResponse{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(m.ID), Result: map[string]string{"method": m.Method},
	}
}

// A room is a chat in which nothing changes and which has no resources.
type room struct{ wire.Chat }

func (room) ID() string { return "http-1" }
func (room) Close()     {}

// Without the token of a credential, no request reaches the host.
func ExampleServer() {
	h, err := httpd.New(echo{}, httpd.Options{Credentials: []httpd.Credential{{Token: "not a good one", Person: "ada"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	srv := httptest.NewServer(h)
	defer srv.Close()
	for _, token := range []string{"another", "not a good one"} {
		r, err := http.NewRequest("POST", srv.URL+"/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/list")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %s\n", resp.StatusCode, strings.TrimSpace(string(body)))
	}
	// Output:
	// 401 a token is required: Authorization: Bearer TOKEN
	// 200 {"jsonrpc":"2.0","id":7,"result":{"method":"tools/list"}}
}
