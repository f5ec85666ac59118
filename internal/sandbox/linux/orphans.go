//go:build linux && (amd64 || arm64)

package linux

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/processes"
)

// adoptOrphans makes this process the parent of a killed supervisor's children, or
// undoes that. No other process would know them. It is a property of the whole
// process: it also adopts daemons that others start below it.
func adoptOrphans(yes bool) {
	var v uintptr
	if yes {
		v = 1
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, v, 0, 0, 0)
}

// orphanTime bounds how long killing orphans may take.
const orphanTime = time.Second

// killOrphans kills what a killed supervisor left behind: children of this process
// that have a seccomp filter which this process lacks.
func killOrphans() {
	own := filters(os.Getpid())
	pause := 100 * time.Microsecond
	for deadline := time.Now().Add(orphanTime); time.Now().Before(deadline); pause = min(2*pause, 10*time.Millisecond) {
		var orphans []int
		for _, pid := range processes.Children(os.Getpid()) {
			if filters(pid) > own {
				orphans = append(orphans, pid)
			}
		}
		if len(orphans) == 0 {
			return
		}
		for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			for _, pid := range orphans {
				_ = unix.Kill(pid, sig)
			}
		}
		time.Sleep(pause)
		for _, pid := range orphans {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// filters returns how many seccomp filters a process has, or 0 on kernels before 5.9,
// which do not report it.
func filters(pid int) int {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(status)) {
		if n, ok := strings.CutPrefix(line, "Seccomp_filters:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(n))
			return n
		}
	}
	return 0
}
