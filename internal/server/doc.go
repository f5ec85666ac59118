// Package server connects packs to MCP clients: the six base tools, the tools of
// enabled packs, prompts, resources, the Skills extension, and the instructions that
// a model reads. A [Server] is the host of the transports: package wire brings
// messages over standard input and output, and package httpd over Streamable HTTP and
// HTTP+SSE, each in every protocol era that it supports.
//
// It does not decide whether a call may happen; package gate does. It does not read
// frames, keep sessions, bound what clients send or ask who they are; the transports
// do.
//
// Every tool call goes through [calls.Road.Decide]: the tool prepares a request made of
// facts, the gate decides, a person is asked, and only with a permit does the tool do
// its work. There is no other way to reach a tool. Any other request that returns
// contents, or changes a chat, goes there too.
//
// A chat owns what was enabled and allowed in it, and its workspaces. Nothing of one
// chat is visible in another. Pack tools are not registered with the library, which
// would show them to every client; a filter adds them to the list of one chat.
package server
