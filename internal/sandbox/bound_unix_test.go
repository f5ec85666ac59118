//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// §9.7: whatever a run does to hide how much it writes to its workspace, it is
// ended, and says why.
func TestWorkspaceBound(t *testing.T) {
	const most = 20 << 20
	for name, script := range map[string]string{
		"behind 10,001 names":    `i=0; while [ $i -le 10000 ]; do : >f$i; i=$((i+1)); done; dd if=/dev/zero of=z bs=1M count=60 2>/dev/null; sleep 10`,
		"65 folders deep":        `i=0; while [ $i -le 65 ]; do mkdir d; cd d; i=$((i+1)); done; dd if=/dev/zero of=z bs=1M count=60 2>/dev/null; sleep 10`,
		"300 folders deep":       `i=0; while [ $i -le 300 ]; do mkdir d; cd d; i=$((i+1)); done; sleep 10`,
		"in a closed folder":     `mkdir d; dd if=/dev/zero of=d/z bs=1M count=60 2>/dev/null; chmod 0 d; chmod 0 .; sleep 10`,
		"set aside":              `python3 -c 'import ctypes,os; f=os.open("z",os.O_CREAT|os.O_WRONLY); ctypes.CDLL(None).fallocate(f,1,ctypes.c_long(0),ctypes.c_long(60<<20))'; sleep 10`,
		"in a file with no name": `exec 3>z; rm z; dd if=/dev/zero bs=1M count=60 >&3 2>/dev/null; sleep 10`,
		"all at the end":         `dd if=/dev/zero of=z bs=1M count=60 2>/dev/null`,
		"in too many names":      `i=0; while [ $i -le 3000 ]; do : >g$i; i=$((i+1)); done; sleep 10`,
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(script, "python3") {
				if _, err := exec.LookPath("python3"); err != nil {
					t.Skip("no python3 to call fallocate with")
				}
			}
			eachLevel(t, func(t *testing.T, r *Runner) {
				dir := plantTree(t, nil)
				_, c := inProject(t, dir, script)
				c.Dir = c.Workspace
				opened(t, c.Workspace)
				limits := Limits{Workspace: most, Timeout: 30 * time.Second}
				if strings.Contains(name, "names") && !strings.Contains(name, "behind") {
					limits.LayerNames = 2000
				}
				begin := time.Now()
				res, err := r.Run(t.Context(), Policy{Writable: []string{c.Workspace}, Limits: limits}, c)
				if err != nil {
					t.Fatal(err)
				}
				if res.Cause != CauseWorkspaceLimit {
					t.Errorf("the run ended with %q after %v, want it ended by the bound (stderr %q)", res.Cause, time.Since(begin), res.Stderr.Bytes())
				}
				if strings.HasSuffix(script, "sleep 10") && res.ExitCode == 0 {
					t.Errorf("the run ended by itself, after %v, want it ended while it goes on", res.Duration)
				}
			})
		})
	}
}

// opened opens the folders in dir for the end of the test, which removes them.
func opened(t *testing.T, dir string) {
	t.Cleanup(func() {
		_ = os.Chmod(dir, 0o700)
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && err == nil {
				_ = os.Chmod(path, 0o700) // before its names are read
			}
			return nil
		})
	})
}

// A run within its bounds is let alone, also when the workspace was too full
// before, and it only looks around.
func TestWorkspaceWithinBounds(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		dir := plantTree(t, nil)
		_, c := inProject(t, dir, "sleep 0.4; echo x >y")
		c.Dir = c.Workspace
		if err := os.WriteFile(c.Workspace+"/old", make([]byte, 4<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		p := Policy{Writable: []string{c.Workspace}, Limits: Limits{Workspace: 8 << 20}}
		if res, err := r.Run(t.Context(), p, c); err != nil || res.Cause != CauseExit {
			t.Errorf("Run = %+v, %v, want no limit reached", res, err)
		}
	})
}

// A disk that has no more than the log's reserve starts nothing.
func TestReserve(t *testing.T) {
	dir := plantTree(t, nil)
	p, c := inProject(t, dir, "true")
	free, ok := freeSpace(dir)
	if !ok {
		t.Skip("the system does not tell how full a disk is")
	}
	r := New(Options{Skip: skipped(), TempDir: t.TempDir(), ReserveDir: dir, Reserve: 2 * free})
	defer r.Close()
	if res, err := r.Run(t.Context(), p, c); err == nil || !strings.Contains(err.Error(), "kept for the log") {
		t.Errorf("Run = %+v, %v, want it refused", res, err)
	}
}
