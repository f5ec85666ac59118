//go:build unix

package servertest

import (
	"errors"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Alive reports whether a process with this id runs.
func Alive(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	return !errors.Is(unix.Kill(n, 0), unix.ESRCH)
}
