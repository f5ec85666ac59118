package attack_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// strays are the ways in which a program tries to outlive its run, with whether
// it ends by itself. None of it ends on SIGTERM.
var strays = []struct {
	how    string
	leaves bool
}{
	{"plain", false}, {"fork", false}, {"setpgid", false}, {"setsid", false}, {"daemon", false},
	{"daemon-leave", true}, {"holder", true}, {"subreaper", false}, {"hydra", false}, {"kill-parent", false},
	{"kill-all", false}, {"many", false}, {"stopped", false},
}

// allowance is how long what a level kills may take to be gone.
func (v variant) allowance() time.Duration {
	if v.level == sandbox.LevelFull {
		return 100 * time.Millisecond
	}
	return time.Second
}

// inTime runs attempt until it takes no longer than the allowance. A machine
// that has other things to do may be late; what counts is then how long it
// needs for one plain process.
func (v variant) inTime(t *testing.T, attempt func(t *testing.T) (late time.Duration)) {
	t.Helper()
	const tries, most = 3, 12
	var lates []time.Duration
	for range most {
		late := attempt(t)
		if late <= v.allowance() || t.Failed() {
			return
		}
		if plainKill(t) < v.allowance()/10 {
			if lates = append(lates, late); len(lates) == tries {
				t.Errorf("everything was gone after %v, want %v at most", lates, v.allowance())
				return
			}
		}
	}
	lacks(t, "timing", "this machine is too busy to tell how long it takes")
}

// plainKill returns how long one process without any confinement takes to be
// gone.
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
	_ = running(w.base) // a look is part of it
	return time.Since(begin)
}

// PK-01 to PK-08: whatever a program starts is gone after a timeout, a
// cancellation, too much output, or its own end.
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

// mustScopeSignals skips what would kill the tests themselves if the sandbox
// did not keep it from that.
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

// killOnce starts a program that strays, ends it in one way, and returns how
// long after its SIGKILL the last of it was there.
func (v variant) killOnce(t *testing.T, how, way string) time.Duration {
	t.Helper()
	w := newWorld(t)
	ready := fifo(t, w.dir("ws/ready"))
	marker := w.dir("ws/ready") // in every command line of what the program forks
	args := []string{"stray", how, ready}
	if way == "output" {
		args = append(args, "flood")
	}
	cmd, err := w.command(args)
	if err != nil {
		t.Fatal(err)
	}
	policy := w.policy(sandbox.NetworkNone)
	policy.Limits.OutputTotal = 1 << 20
	policy.Limits.Timeout = time.Minute
	if way == "timeout" {
		policy.Limits.Timeout = 300 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := make(chan time.Time, 1) // when what ends the run happened
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
	if res.Cause != causes[way] {
		t.Errorf("Cause = %q (%d %s, stderr %q), want %q", res.Cause, res.ExitCode, res.Signal, res.Stderr.Bytes(), causes[way])
	}
	if res.Duration > policy.Limits.Timeout+20*time.Second {
		t.Errorf("Duration = %v", res.Duration)
	}
	gone := awaitNone(t, marker, returned)
	return gone.Sub(kill)
}

// fifo makes a FIFO.
func fifo(t *testing.T, path string) string {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// patience is how long the tests wait for what must happen.
const patience = 20 * time.Second

// awaitFIFO returns when somebody has opened the FIFO to write.
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

// releaseFIFO lets go whoever is in awaitFIFO.
func releaseFIFO(path string) {
	if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		_ = unix.Close(fd)
	}
}

// awaitNone waits until no process has the marker in its command line or the
// name of its program, and returns when that was. It kills those that stay.
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

// running returns the processes that have the marker in their command line,
// their environment or the path of their program, but for zombies.
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

// PK-01 to PK-08 on the end of the server itself, by SIGTERM and by SIGKILL,
// which leaves it no time to do anything.
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

// endServer has a server of its own run a program that strays, ends the server,
// and returns how long the last of it was there after the server's end, or
// after the SIGKILL that the server gives.
func (v variant) endServer(t *testing.T, exe, how string, sig unix.Signal) time.Duration {
	t.Helper()
	w := newWorld(t)
	ready := fifo(t, w.dir("ws/ready"))
	// A program with a path of its own, so that its helpers can be told from
	// those of other tests.
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
			continue // a program that another test starts still has our copy open, for a moment
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
