//go:build unix

package runner

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// §9.7: a run that writes too much to its workspace is ended, however it hides that,
// and the result says why.
func TestWorkspaceBound(t *testing.T) {
	const most = 20 << 20
	for name, script := range map[string]string{
		"behind 10,001 names":    `i=0; while [ $i -le 10000 ]; do : >f$i; i=$((i+1)); done; dd if=/dev/zero of=z bs=1M count=60 2>/dev/null; sleep 10`,
		"65 folders deep":        `i=0; while [ $i -le 65 ]; do mkdir d; cd d; i=$((i+1)); done; dd if=/dev/zero of=z bs=1M count=60 2>/dev/null; sleep 10`,
		"300 folders deep":       `i=0; while [ $i -le 300 ]; do mkdir d; cd d; i=$((i+1)); done; sleep 10`,
		"in a closed folder":     `mkdir d; dd if=/dev/zero of=d/z bs=1M count=60 2>/dev/null; chmod 0 d; chmod 0 .; sleep 10`,
		"in a file with no name": `exec 3>z; rm z; dd if=/dev/zero bs=1M count=60 >&3 2>/dev/null; sleep 10`,
		"all at the end":         `dd if=/dev/zero of=z bs=1M count=60 2>/dev/null`,
		"in too many names":      `i=0; while [ $i -le 3000 ]; do : >g$i; i=$((i+1)); done; sleep 10`,
	} {
		t.Run(name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T, r *Runner) {
				dir := plantTree(t, nil)
				_, c := inProject(t, dir, script)
				c.Dir = c.Workspace
				opened(t, c.Workspace)
				limits := sandbox.Limits{Workspace: most, Timeout: 30 * time.Second}
				if strings.Contains(name, "names") && !strings.Contains(name, "behind") {
					limits.LayerNames = 2000
				}
				begin := time.Now()
				res, err := r.Run(t.Context(), sandbox.Policy{Writable: []string{c.Workspace}, Limits: limits}, c)
				if err != nil {
					t.Fatal(err)
				}
				if res.Cause != sandbox.CauseWorkspaceLimit {
					t.Errorf("the run ended with %q after %v, want it ended by the bound (stderr %q)", res.Cause, time.Since(begin), res.Stderr.Bytes())
				}
				if strings.HasSuffix(script, "sleep 10") && res.ExitCode == 0 {
					t.Errorf("the run ended by itself, after %v, want it ended while it goes on", res.Duration)
				}
			})
		})
	}
}

// opened makes the folders in dir accessible at the end of the test, so that they can
// be removed.
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

// §9.7: a run allocates no space that it does not write, where there is a filter of
// system calls. Elsewhere it is ended once it has too much.
func TestAllocatedSpace(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 to call fallocate with")
	}
	const script = `import ctypes, errno, os, time
f = os.open("z", os.O_CREAT | os.O_WRONLY)
libc = ctypes.CDLL(None, use_errno=True)
if libc.fallocate(f, 1, ctypes.c_long(0), ctypes.c_long(60 << 20)) < 0:
    print(errno.errorcode[ctypes.get_errno()], os.fstat(f).st_blocks)
    os.posix_fallocate(f, 0, 1 << 20)
    print(os.fstat(f).st_size)
else:
    time.sleep(10)
`
	eachLevel(t, func(t *testing.T, r *Runner) {
		if runtime.GOOS != "linux" {
			t.Skip("no fallocate on this system")
		}
		_, c := inProject(t, plantTree(t, nil), "exec python3 -c '"+script+"'")
		c.Dir = c.Workspace
		res, err := r.Run(t.Context(), sandbox.Policy{Writable: []string{c.Workspace}, Limits: sandbox.Limits{Workspace: 20 << 20}}, c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Probe(t.Context()).Level == sandbox.LevelNone {
			if res.Cause != sandbox.CauseWorkspaceLimit {
				t.Errorf("the run ended with %q, want it ended by the bound (stderr %q)", res.Cause, res.Stderr.Bytes())
			}
			return
		}
		if got, want := string(res.Stdout.Bytes()), "ENOTSUP 0\n1048576\n"; got != want || res.Cause != sandbox.CauseExit {
			t.Errorf("the run printed %q and ended with %q, want %q: nothing allocated, and 1 MiB written (stderr %q)", got, res.Cause, want, res.Stderr.Bytes())
		}
	})
}

// §9.7: a run that has too much on disk gets no time to write on.
func TestOverBoundsEndsAtOnce(t *testing.T) {
	const most = 8 << 20
	fill := "trap '' TERM; while :; do dd if=/dev/zero of=%s/z bs=1M count=64 2>/dev/null; done"
	for _, test := range []struct {
		name, dir string
		want      sandbox.Cause
	}{
		{"workspace", "$PWD", sandbox.CauseWorkspaceLimit},
		{"cache", "$PACKS_CACHE", sandbox.CauseCacheLimit},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T, r *Runner) {
				r.o.Grace = time.Minute // for a program that ignores SIGTERM
				p, c := cached(t, cacheFolder(t), fmt.Sprintf(fill, test.dir))
				p.Limits = sandbox.Limits{Workspace: most, Cache: most, Timeout: 50 * time.Second}
				res, err := r.Run(t.Context(), p, c)
				if err != nil {
					t.Fatal(err)
				}
				if res.Cause != test.want || res.Duration > 30*time.Second {
					t.Errorf("the run ended with %q after %v, want %q at once", res.Cause, res.Duration, test.want)
				}
			})
		})
	}
}

// A run within its bounds is not ended, even if the workspace was too full before and
// the run only reads.
func TestWorkspaceWithinBounds(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		dir := plantTree(t, nil)
		_, c := inProject(t, dir, "sleep 0.4; echo x >y")
		c.Dir = c.Workspace
		if err := os.WriteFile(c.Workspace+"/old", make([]byte, 4<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		p := sandbox.Policy{Writable: []string{c.Workspace}, Limits: sandbox.Limits{Workspace: 8 << 20}}
		if res, err := r.Run(t.Context(), p, c); err != nil || res.Cause != sandbox.CauseExit {
			t.Errorf("Run = %+v, %v, want no limit reached", res, err)
		}
	})
}

// Nothing is started while the disk has no more than the log's reserve.
func TestReserve(t *testing.T) {
	dir := plantTree(t, nil)
	p, c := inProject(t, dir, "true")
	r := New(Options{Skip: skipped(), TempDir: t.TempDir(), ReserveDir: dir, Reserve: math.MaxInt64})
	defer r.Close()
	if res, err := r.Run(t.Context(), p, c); err == nil || !strings.Contains(err.Error(), "kept for the log") {
		t.Errorf("Run = %+v, %v, want it refused", res, err)
	}
}
