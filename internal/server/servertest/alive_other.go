//go:build !unix

package servertest

import "testing"

// Alive is only used by tests that need a POSIX shell.
func Alive(t *testing.T, _ string) bool {
	t.Helper()
	t.Fatal("this system has no POSIX shell")
	return false
}
