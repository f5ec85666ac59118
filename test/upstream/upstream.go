// Package upstream provides sources of packs for tests, all on this machine: repositories
// served by the real git over http and the real sshd over ssh, a registry, a site and a
// rulebook server.
//
// If this machine lacks something, such as "sshd", the test is skipped by that name;
// PACKS_MCP_REQUIRE turns that into a failure.
package upstream

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Files are the files of one state of a source, by path. Scripts, whose names end in
// .sh, are executable.
type Files map[string]string

func mode(name string) os.FileMode {
	if strings.HasSuffix(name, ".sh") {
		return 0o755
	}
	return 0o644
}

// Absent skips a test because this machine lacks something.
func Absent(t testing.TB, name, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), name) {
		t.Fatalf("%s: required by PACKS_MCP_REQUIRE, but %s", name, reason)
	}
	t.Skipf("%s: %s", name, reason)
}
