// Package bubble says how bubblewrap is started for a fair comparison with ours:
// with all namespaces, and the folders and devices that a run at level full has.
package bubble

import (
	"os"
	"os/exec"
)

// Path returns where bubblewrap is. Its package is called bubblewrap.
func Path() (string, error) { return exec.LookPath("bwrap") }

// Args returns the command line that runs argv under bubblewrap, in a workspace
// that it may write to, with a pack that it may read.
func Args(bwrap, workspace, pack string, argv ...string) []string {
	args := []string{
		bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--hostname", "sandbox",
		"--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--ro-bind-try", "/opt", "/opt",
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else if _, err := os.Stat(dir); err == nil {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/dev/shm",
		"--ro-bind", pack, pack, "--bind", workspace, workspace, "--chdir", workspace,
		"--setenv", "TMPDIR", "/tmp", "--")
	return append(args, argv...)
}
