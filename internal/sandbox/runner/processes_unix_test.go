//go:build linux && (amd64 || arm64)

package runner

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A program cannot exceed its limit of processes: the kernel refuses more, or, where
// only we count, the run is ended.
func TestRunProcesses(t *testing.T) { // PK-10
	sh, err := program.Lookup("/bin/sh", program.LookupOptions{})
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	for _, skip := range [][]sandbox.Level{nil, {sandbox.LevelFull}} {
		r := New(Options{Skip: skip, TempDir: t.TempDir()})
		defer r.Close()
		t.Run(r.Probe(t.Context()).Level.String(), func(t *testing.T) {
			if r.Probe(t.Context()).Level == sandbox.LevelNone {
				t.Skip("no confinement here")
			}
			for _, tc := range []struct{ about, script string }{
				// At most 300, if nothing stops it.
				{"waits", `i=0; while [ $i -lt 300 ]; do sleep 20 & i=$((i+1)); echo $i; done; wait`},
				// Ends before anyone has counted.
				{"ends at once", `i=0; while [ $i -lt 30 ]; do sleep 20 & i=$((i+1)); echo $i; done`},
			} {
				ws := behave(t, "").Dir
				c := sandbox.Command{Program: sh, Args: []string{"-c", tc.script}, Dir: ws, Env: sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: ws})}
				begin := time.Now()
				res, err := r.Run(t.Context(), allow(sandbox.Limits{Processes: 20, Timeout: 10 * time.Second}, c), c)
				if err != nil {
					t.Fatal(err)
				}
				started := 0
				for line := range strings.Lines(string(res.Stdout.Bytes())) {
					if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
						started = max(started, n)
					}
				}
				t.Logf("%s: %d started in %v, %q, status %d: %s", tc.about, started, time.Since(begin), res.Cause, res.ExitCode, res.Stderr.Head)
				refused := res.ExitCode != 0 && started < 20
				ended := res.Cause == sandbox.CauseProcessLimit
				if !refused && !ended {
					t.Errorf("%s: the program started %d processes, want at most 20, or its end", tc.about, started)
				}
			}
		})
	}
}

// Devices are the host's own. A program run by root's server owns them, and must not
// change who may use them.
func TestRunDevices(t *testing.T) {
	sh, err := program.Lookup("/bin/sh", program.LookupOptions{})
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	ws := behave(t, "").Dir
	// The attempts would change nothing even if they succeeded.
	const script = `
for d in / /dev /dev/null /dev/tty /proc /etc /usr; do
	chmod "$(stat -c %a "$d")" "$d" 2>/dev/null && echo "changed the mode of $d"
done
echo written >/dev/null || echo "cannot write to /dev/null"
exec 3<>/dev/ptmx || echo "no terminal of its own"
true >/dev/tty && echo "has a terminal"
exit 0`
	c := sandbox.Command{Program: sh, Args: []string{"-c", script}, Dir: ws, Env: sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: ws})}
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	if r.Probe(t.Context()).Level != sandbox.LevelFull {
		t.Skip("only level full has a file tree of its own")
	}
	res, err := r.Run(t.Context(), allow(sandbox.Limits{}, c), c)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(res.Stdout.Bytes())); res.ExitCode != 0 || got != "" {
		t.Errorf("the program ended with status %d and found:\n%s\n%s", res.ExitCode, got, res.Stderr.Bytes())
	}
}
