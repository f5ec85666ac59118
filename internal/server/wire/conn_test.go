package wire

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// A greeter is a host that answers every request and initializes its session.
type greeter struct{ Host }

func (greeter) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }
func (greeter) MaxMessage() int      { return 8 << 20 }

func (greeter) Reply(_ context.Context, m Message) mcp.JSONRPCMessage {
	m.Session.Initialize()
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(m.ID), Result: mcp.EmptyResult{}}
}

// alone is a chat in which nothing changes.
type alone struct{ Chat }

func (alone) Listen(*Session) {}

// A client that has a reply may reuse its id, as scripts that always send 1 do:
// the id is free before the reply is sent, but the request's resources are not.
func TestSameIDAgain(t *testing.T) {
	c := NewConn(greeter{}, alone{}, io.Discard, Share{Slots: NewSlots(), Full: fullOutput, Most: maxOutput})
	defer c.out.close()
	end := func(error) {}
	for i, m := range []string{`"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`, `"method":"ping"`} {
		raw := []byte(`{"jsonrpc":"2.0","id":1,` + m + `}`)
		e, id, _ := Frame(raw)
		r := &request{size: len(raw), cancel: end}
		if p := c.admit("1", r); p != nil {
			t.Fatal(p.Message)
		}
		if c.admit("1", &request{cancel: end}) == nil {
			t.Error("an id is taken twice")
		}
		c.handle(t.Context(), Message{Session: c.legacy, ID: id, Method: *e.Method, Params: e.Params, Raw: raw}, func() { c.answered("1", r) })
		if c.count() != 1 || c.held != len(raw) {
			t.Errorf("%d requests with %d bytes count, want the one", c.count(), c.held)
		}
		next := &request{cancel: end}
		if p := c.admit("1", next); p != nil {
			t.Fatalf("message %d: the id of a request that is answered: %s", i, p.Message)
		}
		c.release("1", r)
		if c.inFlight["1"] != next {
			t.Error("the end of a request frees the id of the next one")
		}
		c.release("1", next)
	}
	if c.count() != 0 || c.held != 0 {
		t.Errorf("%d requests with %d bytes are left", c.count(), c.held)
	}
}
