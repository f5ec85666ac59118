//go:build !unix

package server

import "testing"

// alive is only used by tests that need a POSIX shell.
func alive(t *testing.T, _ string) bool {
	t.Helper()
	t.Fatal("this system has no POSIX shell")
	return false
}
