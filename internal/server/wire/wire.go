// Package wire carries messages between clients and a [Host]: it reads their frames,
// bounds what a client may send, have under way and leave unread, keeps what a client
// said of itself, and writes replies, questions and news in order. [ServeStdio] serves
// one client over a pair of streams; package httpd serves many over HTTP with the
// same parts.
//
// It does not know what a request means: tools, prompts, resources, packs and the
// gate are the host's. It decides nothing about a call, and neither listens on a
// network nor knows about credentials.
//
// # How the parts fit
//
// A transport has its Host open a [Chat] for each conversation, and makes a [Session]
// for a client in it. It reads a message's frame with [Frame], asks [Early] whether the
// message may be handled at all, waits for a place in the client's [Slots], and hands
// the [Message] to the Host. What the host has to say meanwhile goes through the
// session, which reaches its client by a [Sender]: a [Conn], or the answer to an HTTP
// request. The Host knows sessions, and no transport.
package wire

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// A Host answers the messages that transports bring. It is safe for concurrent use.
type Host interface {
	// Open begins a chat, which the caller closes.
	Open(Client) (Chat, error)
	// Reply answers one message, with its id exactly as it came. It returns nil for
	// a notification, and for a request whose context ended with [ErrCancelled]. It
	// closes the message's session if that is the message's own.
	Reply(context.Context, Message) mcp.JSONRPCMessage
	// Redact takes out of a text what nobody may be shown, such as tokens.
	Redact(text string) string
	// MaxMessage is how many bytes one message may have.
	MaxMessage() int
	// Logger is where transports log.
	Logger() *slog.Logger
}

// A Client is what a transport knows of a client before it says anything.
type Client struct {
	Transport string      // a short word, with which the chat's id begins
	Ends      string      // when the chat ends, in words: "until this client closes"
	Person    string      // whose credential it has; empty: nobody in particular
	Origin    call.Origin // the zero value trusts least
}

// A Chat is what a [Host] keeps of one conversation. Sessions belong to it.
type Chat interface {
	ID() string
	// Listen has a session told of changes with its Tell, until Unlisten.
	Listen(*Session)
	Unlisten(*Session)
	// Abandon says that the client is gone and can answer no question; its calls may
	// still end. Close follows when they have.
	Abandon()
	Close()

	// ResourceKey is the one spelling of a resource's URI, or says why it is none.
	ResourceKey(uri string) (key string, err error)
	// AddSubscriber counts one more session that wants to know of a resource, unless
	// there are too many; DropSubscriber takes that back.
	AddSubscriber(key string) bool
	DropSubscriber(key string)
	// Watch has the subscribed sessions told when a resource changes. It fails when
	// the chat may know of no such resource.
	Watch(key string) error
}

// A Message is one request or notification whose frame was read.
type Message struct {
	Session *Session
	Own     bool            // the session was made for this message
	ID      json.RawMessage // as it was written; nil: a notification
	Method  string
	Params  json.RawMessage
	Raw     []byte // all of it
}
