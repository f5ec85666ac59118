// Package release has the tests of what a release consists of; see snapshot_test.go.
// Below it are the programs that make what goreleaser does not: bundles for clients, and
// the entry of the MCP registry. In tools are the versions of the programs of others.
package release
