// Package upstream has the places that packs come from, for tests: repositories that the
// real git serves over http and the real sshd over ssh, a registry, a site and a server
// of rulebooks. All of them are on this machine.
//
// What this machine lacks skips a test by name, such as "sshd", which PACKS_MCP_REQUIRE
// turns into a failure.
package upstream

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Files are the files of one state of a source, by path. Those of scripts, whose names
// end in .sh, may be executed.
type Files map[string]string

func mode(name string) os.FileMode {
	if strings.HasSuffix(name, ".sh") {
		return 0o755
	}
	return 0o644
}

// Absent skips a test for what this machine lacks.
func Absent(t testing.TB, name, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), name) {
		t.Fatalf("%s: required by PACKS_MCP_REQUIRE, but %s", name, reason)
	}
	t.Skipf("%s: %s", name, reason)
}
