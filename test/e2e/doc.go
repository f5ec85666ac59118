// Package e2e tests the real program, as it is shipped, over every transport: with the
// official clients of the protocol, in Go (gosdk*_test.go) and TypeScript (*.test.mjs, run
// by scripts/e2e.sh); with mcp-go's client (mcpgo_test.go); and with real agents, offline
// (agents_*_test.go and langchain/, run by scripts/agents.sh). The agents' model is a script
// (model_*_test.go). The MCP Inspector (inspector_test.go) and the official conformance
// suite (conformance_test.go) check it as well.
//
// Tests for a single part are beside that part's code.
package e2e
