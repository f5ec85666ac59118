package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestKeepPrivate(t *testing.T) {
	if err := keepPrivate(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
			t.Error(err)
		}
	})
	if got, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || got != 0 {
		t.Errorf("PR_GET_DUMPABLE = %d, %v; want 0", got, err)
	}
}
