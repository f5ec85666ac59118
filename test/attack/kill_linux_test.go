package attack_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// strays lists the ways in which a program tries to outlive its run, and whether it ends by
// itself. None ends on SIGTERM.
var strays = []struct {
	how    string
	leaves bool
}{
	{"plain", false}, {"fork", false}, {"setpgid", false}, {"setsid", false}, {"daemon", false},
	{"daemon-leave", true}, {"holder", true}, {"subreaper", false}, {"hydra", false}, {"kill-parent", false},
	{"kill-all", false}, {"many", false}, {"stopped", false},
}

// allowance returns how long killed processes may take to disappear at a level.
func (v variant) allowance() time.Duration {
	if v.level == sandbox.LevelFull {
		return 100 * time.Millisecond
	}
	return time.Second
}

// inTime runs attempt until it takes no longer than the allowance. A busy machine may be
// late, so an attempt counts only if nothing waited for long meanwhile, and one plain
// process disappears at once after it.
func (v variant) inTime(t *testing.T, attempt func(t *testing.T) (late time.Duration)) {
	t.Helper()
	const tries, most = 3, 8
	var lates []time.Duration
	for range most {
		longest := stalls()
		late := attempt(t)
		waited := longest()
		if late <= v.allowance() || t.Failed() {
			return
		}
		if max(waited, plainKill(t)) < v.allowance()/10 {
			if lates = append(lates, late); len(lates) == tries {
				t.Errorf("everything was gone after %v, want %v at most", lates, v.allowance())
				return
			}
		}
	}
	lacks(t, "timing", "this machine is too busy to tell how long it takes")
}

// stalls watches how long this process has to wait for a processor, until longest is called,
// which returns the longest wait.
func stalls() (longest func() time.Duration) {
	over, result := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		var most time.Duration
		for {
			const pause = time.Millisecond
			begin := time.Now()
			select {
			case <-over:
				result <- most
				return
			case <-time.After(pause):
				most = max(most, time.Since(begin)-pause)
			}
		}
	}()
	return func() time.Duration { close(over); return <-result }
}

// plainKill returns how long an unconfined process takes to disappear when it is killed.
func plainKill(t *testing.T) time.Duration {
	t.Helper()
	w := newWorld(t)
	pid := w.startVictim(t)
	begin := time.Now()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(healthOf(pid), "alive false") {
		<-time.After(100 * time.Microsecond)
	}
	_ = running(w.base) // include the time for one scan
	return time.Since(begin)
}

// PK-01 to PK-08: everything that a program starts is gone after a timeout, a cancellation,
// too much output, or its own end.
func TestKill(t *testing.T) {
	for _, v := range confined(t) {
		for _, s := range strays {
			ways := []string{"timeout", "cancel", "output"}
			if s.leaves {
				ways = []string{"end"}
			}
			for _, way := range ways {
				t.Run(v.name+"/"+s.how+"/"+way, func(t *testing.T) {
					if s.how == "kill-all" || s.how == "kill-parent" {
						v.mustScopeSignals(t)
					}
					t.Parallel()
					v.inTime(t, func(t *testing.T) time.Duration { return v.killOnce(t, s.how, way) })
				})
			}
		}
	}
}

// mustScopeSignals skips tests in which the program would kill the tests themselves, unless
// the sandbox prevents that.
func (v variant) mustScopeSignals(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	cmd, err := w.command(w.fill(t, []string{"kill", "{victim}"}))
	if err != nil {
		t.Fatal(err)
	}
	if r := replyOf(v.runner.Run(t.Context(), w.policy(sandbox.NetworkNone), cmd)); r.Outcome != "EPERM" && r.Outcome != "ESRCH" {
		t.Skipf("a program can kill others (%s), which TestTable reports", r.Outcome)
	}
}

// killOnce starts a program that strays, ends it in one way, and returns how long after its
// SIGKILL its last process existed.
func (v variant) killOnce(t *testing.T, how, way string) time.Duration {
	t.Helper()
	w := newWorld(t)
	ready := fifo(t, w.dir("ws/ready"))
	marker := w.dir("ws/ready") // part of the command line of every process it forks
	args := []string{"stray", how, ready}
	if way == "output" {
		args = append(args, "flood")
	}
	cmd, err := w.command(args)
	if err != nil {
		t.Fatal(err)
	}
	policy := w.policy(sandbox.NetworkNone)
	policy.Limits.OutputTotal = 64 << 10 // soon exceeded, since the clock runs from ready on
	policy.Limits.Timeout = time.Minute
	if way == "timeout" {
		policy.Limits.Timeout = 300 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := make(chan time.Time, 1) // when the event happened that ends the run
	go func() {
		awaitFIFO(ready)
		began <- time.Now()
		if way == "cancel" {
			cancel()
		}
	}()
	res, err := v.runner.Run(ctx, policy, cmd)
	returned := time.Now()
	releaseFIFO(ready)
	if err != nil {
		t.Fatal(err)
	}
	kill := (<-began).Add(grace)
	switch {
	case way == "timeout":
		kill = res.Started.Add(policy.Limits.Timeout + grace)
	case way == "end":
		kill = res.Started.Add(res.Duration)
	}
	causes := map[string]sandbox.Cause{"timeout": sandbox.CauseTimeout, "cancel": sandbox.CauseCancelled, "output": sandbox.CauseOutputLimit}
	if v.ownKernel && how == "kill-parent" { // it ended its own run, and everything with it
		causes[way] = sandbox.CauseExit
	}
	if res.Cause != causes[way] {
		t.Errorf("Cause = %q (%d %s, stderr %q), want %q", res.Cause, res.ExitCode, res.Signal, res.Stderr.Bytes(), causes[way])
	}
	if res.Duration > policy.Limits.Timeout+20*time.Second {
		t.Errorf("Duration = %v", res.Duration)
	}
	gone := awaitNone(t, marker, returned)
	return gone.Sub(kill)
}

// fifo creates a FIFO.
func fifo(t *testing.T, path string) string {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// patience is how long the tests wait for something that must happen.
const patience = 20 * time.Second

// awaitFIFO waits until a process opens the FIFO for writing.
func awaitFIFO(path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for until := time.Now().Add(patience); time.Now().Before(until); {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, _ := unix.Poll(fds, int(time.Until(until).Milliseconds())); n > 0 {
			return
		}
	}
}

// releaseFIFO lets awaitFIFO return.
func releaseFIFO(path string) {
	if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		_ = unix.Close(fd)
	}
}

// awaitNone waits until no process has the marker in its command line or the name of its
// program, and returns when that was. It kills processes that remain.
func awaitNone(t *testing.T, marker string, from time.Time) time.Time {
	t.Helper()
	for {
		left := running(marker)
		if len(left) == 0 {
			return time.Now()
		}
		if time.Since(from) > patience {
			t.Errorf("processes are left: %v", left)
			for pid := range left {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			return time.Now()
		}
		<-time.After(time.Millisecond)
	}
}

// running returns the processes, except zombies, that have the marker in their command line,
// environment or program path.
func running(marker string) map[int]string {
	found := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		environ, _ := os.ReadFile(dir + "/environ")
		exe, _ := os.Readlink(dir + "/exe")
		if strings.Contains(string(cmdline)+string(environ)+exe, marker) && !strings.Contains(healthOf(pid), "alive false") {
			found[pid] = fmt.Sprintf("%.80q", cmdline)
		}
	}
	return found
}

// PK-01 to PK-08 when the server itself ends: by SIGTERM, and by SIGKILL, which leaves it no
// time to clean up.
func TestServerEnds(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range confined(t) {
		for _, s := range strays {
			if s.leaves {
				continue
			}
			for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
				t.Run(fmt.Sprintf("%s/%s/%s", v.name, s.how, unix.SignalName(sig)), func(t *testing.T) {
					if s.how == "kill-all" || s.how == "kill-parent" {
						v.mustScopeSignals(t)
					}
					t.Parallel()
					v.inTime(t, func(t *testing.T) time.Duration { return v.endServer(t, exe, s.how, sig) })
				})
			}
		}
	}
}

// endServer has a separate server run a program that strays, ends the server, and returns
// how long the program's last process existed after the server's end, or after the server's
// SIGKILL.
func (v variant) endServer(t *testing.T, exe, how string, sig unix.Signal) time.Duration {
	t.Helper()
	w := newWorld(t)
	ready := fifo(t, w.dir("ws/ready"))
	// The program has a unique path, so that its helpers can be told from those of other
	// tests.
	own := w.dir("server")
	if err := copyProgram(exe, own); err != nil {
		t.Fatal(err)
	}
	var server *exec.Cmd
	var complaints strings.Builder
	for {
		server = exec.Command(own, w.base, "stray", how, ready)
		server.Env = append(os.Environ(), serverVar+"="+v.level.String(), probeVar+"="+probe(t), "GORACE=atexit_sleep_ms=0")
		server.Stderr = &complaints
		err := server.Start()
		if errors.Is(err, unix.ETXTBSY) {
			continue // another test's child briefly has our copy open
		}
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	exited := make(chan error, 1)
	go func() {
		exited <- server.Wait()
		releaseFIFO(ready)
	}()
	awaitFIFO(ready)
	if len(running(w.base)) < 2 {
		t.Error("the server runs nothing")
	}
	ended := time.Now()
	if sig == unix.SIGTERM {
		ended = ended.Add(grace)
	}
	_ = server.Process.Signal(sig)
	if err := <-exited; sig == unix.SIGTERM && err != nil {
		t.Errorf("the server ends with %v: %s", err, complaints.String())
	}
	return awaitNone(t, w.base, time.Now()).Sub(ended)
}

// leftKills is how many servers TestLeftovers kills at each level.
const leftKills = 30

// 9.14: after many servers were killed during runs, the next start removes everything they
// left, and nothing of a living server.
func TestLeftovers(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(confined(t), unconfined(t)) {
		t.Run(v.name, func(t *testing.T) {
			w := newWorld(t)
			ready := fifo(t, w.dir("ws/ready"))
			alive := v.startServer(t, exe, w, ready)
			awaitFIFO(ready)
			var servers []*exec.Cmd
			for range leftKills {
				servers = append(servers, v.startServer(t, exe, w, ready))
				awaitFIFO(ready)
			}
			for _, server := range servers { // only now, since each start would remove what the previous server left
				_ = server.Process.Kill()
				_ = server.Wait()
			}
			planted := plant(t, w)
			before := tempFolders(t, w.base)
			if v.level != sandbox.LevelFull && len(before) <= leftKills {
				t.Fatalf("%d killed servers left %q: nothing is tested", leftKills, before)
			}
			if level := newRunner(v.level, w.base).Probe(t.Context()).Level; level != v.level {
				t.Fatalf("Level() = %s, want %s", level, v.level)
			}
			want := 1 // the living server's
			if v.level == sandbox.LevelFull {
				want = 0
			}
			// The process that a killed server was just starting holds its lock a moment longer, and
			// a later start removes its folder.
			var left []string
			for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
				left = slices.DeleteFunc(tempFolders(t, w.base), func(name string) bool { return slices.Contains(planted, name) })
				if len(left) <= want || time.Now().After(deadline) {
					break
				}
				newRunner(v.level, w.base).Probe(t.Context())
			}
			if len(left) != want {
				t.Errorf("after the next start there are %q, want %d", left, want)
			}
			for _, name := range planted {
				if _, err := os.Lstat(w.dir(name)); err != nil {
					t.Errorf("what was planted as %q is gone: %v", name, err)
				}
			}
			if text, err := os.ReadFile(w.dir("outside/file")); string(text) != "somebody's" {
				t.Errorf("a file behind a planted link is %q, %v", text, err)
			}
			_ = alive.Process.Kill()
			_ = alive.Wait()
			awaitNone(t, w.base, time.Now())
			if left := groupsLeft(t); len(left) > 0 {
				newRunner(v.level, w.base).Probe(t.Context())
				if left = slices.DeleteFunc(groupsLeft(t), func(dir string) bool { return !slices.Contains(left, dir) || inUse(dir) }); len(left) > 0 {
					t.Errorf("control groups are left: %q", left)
				}
			}
		})
	}
}

// startServer starts a server with a program that keeps running.
func (v variant) startServer(t *testing.T, exe string, w *world, ready string) *exec.Cmd {
	t.Helper()
	server := exec.Command(exe, w.base, "stray", "plain", ready)
	server.Env = append(os.Environ(), serverVar+"="+v.level.String(), probeVar+"="+probe(t), "GORACE=atexit_sleep_ms=0")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	return server
}

// plant creates things beside the temporary folders of runs that are not such folders.
func plant(t *testing.T, w *world) (names []string) {
	t.Helper()
	for name, plant := range map[string]func(string) error{
		"packs-run-1": func(path string) error { return os.Symlink(w.dir("outside"), path) },
		"packs-run-2": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"packs-run-x": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		if err := plant(w.dir(name)); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if os.Getuid() == 0 { // belongs to another user
		if err := errors.Join(os.Mkdir(w.dir("packs-run-3"), 0o700), os.Chown(w.dir("packs-run-3"), 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		names = append(names, "packs-run-3")
	}
	return names
}

// tempFolders returns the entries of a folder that are named like a run's temporary folder.
func tempFolders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "packs-run-") {
			names = append(names, e.Name())
		}
	}
	return names
}

// groupsLeft returns the control groups of runs.
func groupsLeft(t *testing.T) []string {
	t.Helper()
	groups, _ := filepath.Glob("/sys/fs/cgroup/packs-mcp-*")
	more, _ := filepath.Glob("/sys/fs/cgroup/*/packs-mcp-*")
	return append(groups, more...)
}

// inUse reports whether a control group has members, is locked (perhaps by another test's
// server), or no longer exists.
func inUse(dir string) bool {
	if members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err != nil || len(members) > 0 {
		return true
	}
	f, err := os.Open(dir)
	if err != nil {
		return true
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}
