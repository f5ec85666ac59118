//go:build unix

package server

import (
	"errors"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// alive reports whether a process with this id runs.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	return !errors.Is(unix.Kill(n, 0), unix.ESRCH)
}
