// Package httpd serves the clients of a [Host] over HTTP: Streamable HTTP of both
// protocol versions, and the older HTTP+SSE. [New] makes a [Server], which is an
// [net/http.Handler]; [Server.Serve] serves it on a listener.
//
// It refuses a request from a foreign page, or without a token, before reading any
// of the body: package guard decides who may use the server. Everything that belongs
// to one credential (sessions, connections, chats, room for messages and answers) is
// out of reach of the others.
//
// It does not know what a message means: the host handles tools, prompts,
// resources and the questions about them, and package wire has the frames,
// sessions and bounds that do not depend on the transport. It issues no tokens,
// and speaks neither HTTP/2 nor WebSocket.
package httpd
