// Package wire carries messages between clients and a [Host]: it reads their
// frames, bounds what a client may send, have in progress and leave unread,
// keeps what a client declared about itself, and writes replies, questions and
// notifications in order. [ServeStdio] serves one client over a pair of streams;
// package httpd serves many over HTTP with the same parts.
//
// It does not know what a request means: the host handles tools, prompts,
// resources, packs and the gate. It decides nothing about a call, does not
// listen on a network, and does not know about credentials.
//
// # How the parts fit
//
// A transport asks its Host to open a [Chat] for each conversation, and creates
// a [Session] for a client in it. It reads a message's frame with [Frame], asks
// [Early] whether the message may be handled at all, waits for a place in the
// client's [Slots], and passes the [Message] to the Host. The host's other
// messages go through the session, which reaches its client through a [Sender]:
// a [Conn], or the answer to an HTTP request. The Host knows sessions, but no
// transport.
package wire

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// A Host answers the messages that transports receive. It is safe for concurrent
// use.
type Host interface {
	// Open begins a chat, which the caller closes.
	Open(Client) (Chat, error)
	// Reply answers one message, with its id exactly as it arrived. It returns
	// nil for a notification, and for a request whose context ended with
	// [ErrCancelled]. It closes the message's session if Own is set.
	Reply(context.Context, Message) mcp.JSONRPCMessage
	// Redact removes from a text what nobody may be shown, such as tokens.
	Redact(text string) string
	// MaxMessage returns how many bytes one message may have.
	MaxMessage() int
	// Logger returns the logger for transports.
	Logger() *slog.Logger
}

// A Client is what a transport knows about a client before its first message.
type Client struct {
	Transport string      // a short word; the chat's id begins with it
	Ends      string      // when the chat ends, in words: "until this client closes"
	Person    string      // whose credential it has; empty: no particular person
	Origin    call.Origin // the zero value trusts least
	// Credential is the same for all clients of one person on all replicas, of a chat that
	// other replicas may go on with; otherwise empty.
	Credential string
}

// A Chat is a [Host]'s state for one conversation. Sessions belong to it.
type Chat interface {
	ID() string
	// Listen makes the chat call the session's Tell for changes, until Unlisten.
	Listen(*Session)
	Unlisten(*Session)
	// Abandon says that the client is gone and can answer no question. Its calls
	// may still finish; Close follows once they have.
	Abandon()
	Close()

	// ResourceKey returns the canonical spelling of a resource's URI, or why it
	// is not one.
	ResourceKey(uri string) (key string, err error)
	// AddSubscriber counts one more subscriber of a resource, or reports false
	// if there are too many; DropSubscriber undoes that.
	AddSubscriber(key string) bool
	DropSubscriber(key string)
	// Watch makes the chat tell the subscribed sessions when a resource changes.
	// It fails if the chat may not know about such a resource.
	Watch(key string) error
}

// A Message is one request or notification whose frame was read.
type Message struct {
	Session *Session
	Own     bool            // the session was made for this message
	ID      json.RawMessage // as it was written; nil: a notification
	Method  string
	Params  Params
	Raw     []byte // all of it
}
