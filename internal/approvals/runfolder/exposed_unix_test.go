//go:build unix

package runfolder

import (
	"os"
	"os/exec"
	"testing"
)

// The process is a real one that has ended and been waited for.
func TestProcessGone(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skipf("true: %v", err)
	}
	if pid := cmd.Process.Pid; ProcessGone(pid) != certain() {
		t.Errorf("ProcessGone(%d) = %v, want %v", pid, ProcessGone(pid), certain())
	}
}

// certain reports whether a process that is not visible here exists nowhere.
func certain() bool {
	if _, err := os.Lstat("/proc/self/ns"); err != nil {
		return true // no namespaces
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && ns == firstPIDs
}
