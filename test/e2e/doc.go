// Package e2e holds the tests that drive the real program, as it is shipped,
// over every transport with the official clients of the protocol: the Go one in
// gosdk*_test.go, the TypeScript ones in *.test.mjs, which scripts/e2e.sh runs;
// with mcp-go's in mcpgo_test.go; and with real agents, offline, in
// agents_*_test.go and langchain/, which scripts/agents.sh runs. The agents' model
// is a script (model_*_test.go). The MCP Inspector (inspector_test.go) and the
// official conformance suite (conformance_test.go) look at it as well.
//
// It is not where the rules of a single part are tested; those tests are
// beside their code.
package e2e
