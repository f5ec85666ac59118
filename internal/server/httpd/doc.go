// Package httpd serves the clients of a [Host] over HTTP: Streamable HTTP of both
// protocol versions, and the older HTTP+SSE. [New] makes a [Server], which is an
// [net/http.Handler]; [Server.Serve] serves it on a listener.
//
// It decides who may speak: what comes from a foreign page, or without a token, is
// turned away before anything of a body is read, and whatever belongs to one
// credential (sessions, connections, chats, room for messages and answers) is out of
// reach of the others.
//
// It does not know what a message means: tools, prompts, resources and the questions
// about them are the host's, and frames, sessions and bounds that do not depend on
// the transport are package wire's. It issues no tokens, and speaks neither HTTP/2
// nor WebSocket.
package httpd
