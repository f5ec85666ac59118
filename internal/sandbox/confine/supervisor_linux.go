//go:build amd64 || arm64

package confine

import (
	"os"
	"path"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/broker"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/groups"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/processes"
)

// A supervisor watches over what the helper forked, and carries out orders.
type supervisor struct {
	family  *family
	job     *Job
	pid     int            // of the child: the init, or the program
	orders  int            // to the init
	reports int            // from the children
	group   *groups.Group  // counts processes; nil: the supervisor counts
	around  *groups.Watch  // of the container's control group; nil: the job is in none
	broker  *broker.Broker // answers what the filter asks

	report  Report
	killing bool // everything is to end now
	reaped  bool // the child was waited for
	buried  int  // how many processes were waited for
}

// countEvery is how often processes are counted where the kernel's own limit is no
// use: for root, and where it would count all of the user's processes.
const countEvery = 25 * time.Millisecond

// watch returns when nothing is left.
func (s *supervisor) watch() *Report {
	if s.job.Namespaces {
		s.watchInit()
	} else {
		s.watchProgram()
	}
	s.report.TooMuch = s.report.TooMuch || s.outOfMemory() // the kernel was faster
	return &s.report
}

// watchInit waits for the init of a PID namespace, with which everything in the
// namespace ends.
func (s *supervisor) watchInit() {
	const lifelineAt, reportsAt, brokerAt = 0, 1, 2
	fds := []unix.PollFd{{Fd: lifeline, Events: unix.POLLIN}, {Fd: int32(s.reports), Events: unix.POLLIN}, {Events: unix.POLLIN}}
	timeout := -1
	count := s.job.Limits.Processes > 0 && os.Getuid() == 0 && s.group == nil
	if count || s.job.Limits.Together > 0 {
		timeout = int(countEvery / time.Millisecond)
	}
	heard, counted := false, time.Now()
	for {
		fds[brokerAt].Fd = s.broker.FD
		if _, err := unix.Poll(fds, timeout); err != nil && err != unix.EINTR {
			break
		}
		if fds[brokerAt].Revents != 0 {
			s.broker.Attend(fds[brokerAt].Revents)
		}
		if fds[lifelineAt].Revents != 0 && s.obey() {
			fds[lifelineAt].Fd = -1
		}
		if timeout > 0 && !s.killing && time.Since(counted) >= countEvery {
			counted = time.Now()
			if count && !s.hasRoom() {
				s.tooMany()
			}
			s.checkMemory()
		}
		if fds[reportsAt].Revents == 0 {
			continue
		}
		var rec record
		if !readRecord(s.reports, &rec) {
			break // the init is gone or sends nothing more
		}
		s.note(&rec)
		heard = true
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(s.pid, &status, unix.WALL, nil); err != unix.EINTR {
			break
		}
	}
	s.reaped = true
	if !heard {
		s.report.Status = uint64(unix.SIGKILL)
	}
}

// note records what a child reported.
func (s *supervisor) note(rec *record) {
	switch rec.kind {
	case saysSetup, saysProgram:
		what := s.family.program.what
		if rec.kind == saysSetup {
			what = s.family.setup.what
		}
		step := "set up"
		if i := int(rec.index); i >= 0 && i < len(what) {
			step = what[i]
		}
		s.report.Failed, s.report.Step, s.report.Errno = true, step, uint64(rec.errno)
	case saysEnd:
		if s.report.Failed {
			return
		}
		s.report.Status = uint64(uint32(rec.wait))
		s.use(int64(rec.usage.Utime.Sec)+int64(rec.usage.Stime.Sec), int64(rec.usage.Utime.Usec)+int64(rec.usage.Stime.Usec), rec.usage.Maxrss)
	}
}

func (s *supervisor) use(sec, usec, maxRSS int64) {
	s.report.CPU, s.report.MaxRSS = sec*1e6+usec, maxRSS
}

// obey carries out the server's orders, and reports whether the server closed the
// socket.
func (s *supervisor) obey() bool {
	var b [1]byte
	n, err := unix.Read(lifeline, b[:])
	switch {
	case err == unix.EINTR || err == unix.EAGAIN:
		return false
	case err == nil && n == 1 && b[0] == OrderTerminate:
		s.terminate()
		return false
	}
	s.kill()
	return true
}

func (s *supervisor) terminate() {
	if s.job.Namespaces {
		_, _ = unix.Write(s.orders, []byte{OrderTerminate})
		return
	}
	for _, pid := range processes.Descendants() {
		_ = unix.Kill(pid, unix.SIGTERM)
	}
}

func (s *supervisor) kill() {
	s.killing = true
	if s.job.Namespaces && !s.reaped {
		_ = unix.Kill(s.pid, unix.SIGKILL)
	}
}

// checkMemory ends everything when the kernel has ended a process because all of them had
// too much memory together. What would be left is a run with holes.
func (s *supervisor) checkMemory() {
	if !s.killing && s.outOfMemory() {
		s.report.TooMuch = true
		s.kill()
	}
}

func (s *supervisor) outOfMemory() bool { return s.group.OutOfMemory() || s.around.OutOfMemory() }

func (s *supervisor) tooMany() {
	s.report.TooMany = true
	s.kill()
}

// hasRoom reports whether the PID namespace is within its limit of processes. The
// init does not count.
func (s *supervisor) hasRoom() bool {
	// The init's root folder has the processes as the init sees them.
	d, err := os.Open(path.Join("/proc", strconv.Itoa(s.pid), "root", "proc"))
	if err != nil {
		return true // it is gone
	}
	defer d.Close()
	var theirs, ours unix.Stat_t
	if unix.Fstat(int(d.Fd()), &theirs) != nil || unix.Stat("/proc", &ours) != nil || theirs.Dev == ours.Dev {
		return true // it is not there yet
	}
	var n int64
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if name[0] >= '1' && name[0] <= '9' {
				n++
			}
		}
		if err != nil {
			return n-1 <= s.job.Limits.Processes
		}
	}
}

// watchProgram waits for the program, and then kills what it left behind: all its
// descendants are ours, since we adopt orphans.
func (s *supervisor) watchProgram() {
	const lifelineAt, reportsAt, programAt, brokerAt = 0, 1, 2, 3
	fds := []unix.PollFd{
		{Fd: lifeline, Events: unix.POLLIN},
		{Fd: int32(s.reports), Events: unix.POLLIN},
		{Fd: -1, Events: unix.POLLIN},
		{Events: unix.POLLIN},
	}
	if pidfd, err := unix.PidfdOpen(s.pid, 0); err == nil {
		fds[programAt].Fd = int32(pidfd)
	}
	pause, counted := countEvery, time.Now()
	for !s.reaped && !s.killing {
		fds[brokerAt].Fd = s.broker.FD
		if _, err := unix.Poll(fds, int(pause/time.Millisecond)); err != nil && err != unix.EINTR {
			break
		}
		if fds[brokerAt].Revents != 0 {
			s.broker.Attend(fds[brokerAt].Revents)
		}
		if fds[reportsAt].Revents != 0 {
			var rec record
			if !readRecord(s.reports, &rec) {
				fds[reportsAt].Fd = -1 // the program was started
			} else {
				s.note(&rec)
			}
		}
		if fds[lifelineAt].Revents != 0 && s.obey() {
			fds[lifelineAt].Fd = -1
		}
		// A program that makes thousands of orphans must not fill the system with zombies.
		before := s.buried
		s.reap()
		pause = countEvery
		if s.buried > before {
			pause = time.Millisecond
		}
		s.checkMemory()
		// Count once more when the program has ended: it may have started too many since
		// the last count, and those it left are still there.
		most := s.job.Limits.Processes
		if most <= 0 || s.group != nil || !s.reaped && time.Since(counted) < countEvery {
			continue
		}
		counted = time.Now()
		if int64(len(processes.Descendants())) > most {
			s.tooMany()
		}
	}
	s.killAll()
	if fds[reportsAt].Fd >= 0 {
		s.lastWord()
	}
}

// lastWord reads what the child reported after the last poll and before it ended:
// that the program could not be started. It does not wait.
func (s *supervisor) lastWord() {
	fds := []unix.PollFd{{Fd: int32(s.reports), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		var rec record
		if err == nil && n > 0 && readRecord(s.reports, &rec) {
			s.note(&rec)
		}
		return
	}
}

// reap waits for ended children, and reports whether none are left.
func (s *supervisor) reap() (none bool) {
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, &usage)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return true
		case pid == 0:
			return false
		}
		s.buried++
		if pid == s.pid {
			s.reaped = true
			if !s.report.Failed {
				s.report.Status = uint64(status)
				s.use(int64(usage.Utime.Sec)+int64(usage.Stime.Sec), int64(usage.Utime.Usec)+int64(usage.Stime.Usec), int64(usage.Maxrss))
			}
		}
	}
}

// killAll kills until no process is left. It first forbids them to start others and
// stops them all, so that none starts another meanwhile.
func (s *supervisor) killAll() {
	if s.group != nil {
		_ = s.group.Limit(0)
	}
	pause := 50 * time.Microsecond
	for !s.reap() {
		for _, pid := range processes.Descendants() {
			_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{}, nil) // children inherit it
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		for _, pid := range processes.Descendants() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(pause)
		pause = min(2*pause, 5*time.Millisecond)
	}
}
