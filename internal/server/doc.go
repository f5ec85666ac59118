// Package server is the bridge between packs and MCP clients: the six base
// tools, the tools of enabled packs, the instructions a model reads, and the
// transports. It is the only package that speaks MCP.
//
// Every tool call takes one road, [Server.call]: the arguments are decoded, the
// tool prepares a request made of facts, the gate decides, a person is asked in
// the way the client's protocol era has for it, and only with a permit does the
// tool do its work. A tool cannot be reached otherwise.
//
// A chat owns what was enabled and allowed in it, and its workspace. Nothing of
// one chat is visible in another: pack tools are not registered with the
// library, which would show them to everybody, but added by a filter to the
// list that one chat sees.
package server
