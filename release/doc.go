// Package release tests the contents of a release; see snapshot_test.go. Below it are the
// programs that make what goreleaser does not: bundles for clients, and the entry for the
// MCP registry. The folder tools pins the versions of third-party programs.
package release
