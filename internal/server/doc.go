// Package server is the bridge between packs and MCP clients: the six base
// tools, the tools of enabled packs, prompts, resources, the Skills extension,
// and the instructions a model reads. A [Server] is the host of the transports:
// package wire brings messages over standard input and output, and package httpd over
// Streamable HTTP and HTTP+SSE, each in every era of the protocol that it has.
//
// It does not decide whether a call may happen, which is package gate's, and it does
// not read frames, keep sessions, bound what clients send or ask who they are, which
// is the transports'.
//
// Every tool call takes one road, [Server.call]: the arguments are decoded, the
// tool prepares a request made of facts, the gate decides, a person is asked in
// the way the client's protocol era has for it, and only with a permit does the
// tool do its work. A tool cannot be reached otherwise. Any other request that gives
// contents, or changes a chat, takes the same road from [Server.decide] on.
//
// A chat owns what was enabled and allowed in it, and its workspaces. Nothing of
// one chat is visible in another: pack tools are not registered with the
// library, which would show them to everybody, but added by a filter to the
// list that one chat sees.
package server
