// Package storetest starts the engines of stores for tests: a NATS server in this
// process, and PostgreSQL's own programs. A machine that lacks the latter skips the test
// by the name "postgres", which PACKS_MCP_REQUIRE turns into a failure.
package storetest
