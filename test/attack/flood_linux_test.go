package attack_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
)

// 9.8: a program that requests shared memory as often as possible, from as many processes as
// possible, and makes accounting for it slow, can neither keep the helper from ending the
// run nor make the helper large.
func TestFloodOfQuestions(t *testing.T) {
	const (
		timeout = 3 * time.Second
		memory  = 256 // MiB

		// The server kills a helper that does not respond after 5 s. A machine that is slow to end
		// such a run without a helper may take longer.
		late, times = 4 * time.Second, 4

		mostHelper = 64 << 10 // KiB; an idle helper has about 10 MiB
	)
	limits := sandbox.Limits{Timeout: timeout, Memory: memory << 20, Processes: 64}
	flood := func(t *testing.T, v variant, w *world, count int) (_ *sandbox.Result, over time.Duration) {
		t.Helper()
		begin := time.Now()
		res := v.run(t, w, limits, "maps", fmt.Sprint(count), fmt.Sprint(memory))
		return res, time.Since(begin) - timeout - grace
	}
	alone := newWorld(t)
	_, usual := flood(t, unconfined(t), alone, 30)
	awaitNone(t, alone.base, time.Now())
	most := max(late, times*usual)
	t.Logf("without a helper, such a run ends %v after its time", usual)
	for _, v := range confined(t) {
		for _, count := range []int{30, 300} { // fewer than the limit, and more
			t.Run(fmt.Sprintf("%s/%d", v.name, count), func(t *testing.T) {
				w := newWorld(t)
				stop, largest := watchHelpers()
				res, over := flood(t, v, w, count)
				close(stop)
				helper := <-largest
				t.Logf("%q, %v after its time; the largest helper had %d KiB", res.Cause, over, helper)
				if res.Cause != sandbox.CauseTimeout && (res.Cause != sandbox.CauseProcessLimit || count < 64) {
					t.Errorf("Cause = %q (%d %s, stderr %.200q), want %q", res.Cause, res.ExitCode, res.Signal, res.Stderr.Bytes(), sandbox.CauseTimeout)
				}
				if over > most {
					t.Errorf("the run ended %v after its time, want %v at most", over, most)
				}
				if helper == 0 || helper > mostHelper {
					t.Errorf("the largest helper had %d KiB, want at most %d", helper, mostHelper)
				}
				awaitNone(t, w.base, time.Now())
			})
		}
	}
}

// watchHelpers samples the memory of this process's helpers until stop is closed, and then
// sends the largest value in KiB.
func watchHelpers() (stop chan struct{}, largest <-chan int) {
	stop = make(chan struct{})
	most := make(chan int, 1)
	go func() {
		n := 0
		for {
			n = max(n, helperPeak())
			select {
			case <-stop:
				most <- n
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return stop, most
}

func helperPeak() int {
	most := 0
	statuses, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, name := range statuses {
		status, _ := os.ReadFile(name)
		if !bytes.Contains(status, fmt.Appendf(nil, "\nPPid:\t%d\n", os.Getpid())) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if !strings.Contains(string(cmdline), confine.Arg) {
			continue
		}
		for line := range strings.Lines(string(status)) {
			var kib int
			if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
				most = max(most, kib)
			}
		}
	}
	return most
}
