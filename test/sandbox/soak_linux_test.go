package sandbox_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// soakVar is how many runs TestSoak makes in each variant; "make soak-sandbox" sets it.
const soakVar = "SANDBOX_SOAK"

const atATime = 8

// markVar is in the environment of every run of the soak, to recognise what it leaves.
const markVar = "SANDBOX_SOAK_MARK"

// A habit is the behavior of a program in the soak.
type habit struct {
	name   string
	script string // a shell script
	stdin  string
	strays bool // leaves a process that has left its process group
	hangs  bool // does not end by itself
	code   int
	signal string
	cause  sandbox.Cause
	fails  bool // cannot be started
}

func habits() []habit {
	return []habit{
		{name: "ends", script: "exit 0"},
		{name: "fails", script: "echo out; echo err >&2; exit 3", code: 3},
		{name: "works", script: "sleep 0.01; date >/dev/null; cat >/dev/null", stdin: "input"},
		{name: "does not read", script: "exit 125", stdin: strings.Repeat("x", 1<<20), code: 125},
		{name: "forks", script: "for i in 1 2 3 4 5 6 7 8; do sleep 0.01 & done; wait"},
		{name: "crashes", script: "kill -SEGV $$", code: -1, signal: "SIGSEGV"},
		{name: "floods", script: "exec cat /dev/zero", cause: sandbox.CauseOutputLimit, code: -1},
		{name: "litters", script: `mkdir -p "$TMPDIR/a/b"; echo x > "$TMPDIR/a/b/c"; chmod 0 "$TMPDIR/a/b" "$TMPDIR/a"; echo y > left; mkfifo p 2>/dev/null; exit 0`},
		{name: "leaves a child", script: "sleep 1000 & exit 4", code: 4},
		{name: "leaves a session", script: "setsid sleep 1000 >/dev/null 2>&1 & exit 5", strays: true, code: 5},
		{name: "leaves a holder of its output", script: "setsid sleep 1000 & exit 6", strays: true, code: 6},
		{name: "leaves a daemon", script: "(setsid sh -c 'sleep 1000 & exec sleep 1000' &); exit 7", strays: true, code: 7},
		{name: "hangs", script: "sleep 1000", hangs: true},
		{name: "ignores SIGTERM", script: "trap '' TERM; sleep 1000 & wait; wait; wait", hangs: true},
		{name: "stops", script: "kill -STOP $$", hangs: true},
		{name: "is no program", fails: true},
	}
}

// A disturbance is an external event during a run.
type disturbance int

const (
	undisturbed disturbance = iota
	timedOut
	cancelled
	shutDown
	killedFromOutside // the program, or a process that confines it
	disturbances
)

// Thousands of runs, with everything that can go wrong, leave nothing behind: no process,
// zombie, mount, namespace, control group, descriptor, temporary file, goroutine or confined
// thread.
func TestSoak(t *testing.T) {
	need(t, "sh", "sleep", "setsid", "mkfifo")
	runs := 50
	if s := os.Getenv(soakVar); s != "" {
		var err error
		if runs, err = strconv.Atoi(s); err != nil || runs < atATime {
			t.Fatalf("%s=%q, want a number of runs from %d on", soakVar, s, atATime)
		}
	}
	eachVariant(t, func(t *testing.T, v variant) {
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		r := v.runner(t, runner.Options{Grace: 30 * time.Millisecond, ShutdownGrace: 10 * time.Millisecond, Drain: 50 * time.Millisecond})
		s := &soak{v: v, r: r, mark: fmt.Sprintf("%s=%d-%d", markVar, os.Getpid(), time.Now().UnixNano()), rooms: make(chan *room, atATime)}
		for range atATime {
			s.rooms <- newRoom(t)
		}
		s.there = s.survivors()
		s.run(t, 3*atATime) // what a process opens once stays open
		before := inventory(t)
		begin := time.Now()
		s.run(t, runs)
		t.Logf("%d runs in %v, by what happened to them: %v", runs, time.Since(begin).Round(time.Millisecond), s.outcomes)
		s.helperGone(t)
		r.Close()
		s.leavesNothing(t, before, temp)
	})
}

// helperGone kills the helper that waits for the next run, which must work without it.
func (s *soak) helperGone(t *testing.T) {
	for alive := true; alive; time.Sleep(time.Millisecond) { // the test's own timeout ends it
		alive = false
		for pid, p := range processes() {
			if p.parent == os.Getpid() && p.state != "Z" {
				alive = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	place := <-s.rooms
	defer func() { s.rooms <- place }()
	s.one(t, place, 0, habits()[0], undisturbed, 0)
}

// A room is where one run at a time happens.
type room struct {
	policy      sandbox.Policy
	shell, text sandbox.Command // text is a file that no system can execute
}

func newRoom(t *testing.T) *room {
	p := newPlace(t)
	write(t, p.pack, map[string]string{"text": "text\n"})
	if err := os.Chmod(filepath.Join(p.pack, "text"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &room{policy: p.policy(), shell: p.command(t, "sh", nil, nil), text: p.command(t, "./text", nil, nil)}
}

type soak struct {
	v     variant
	r     *runner.Runner
	mark  string
	rooms chan *room     // rooms that are free
	there map[int]string // processes of other tests, in the form of survivors

	mu       sync.Mutex
	outcomes map[string]int // guarded by mu
}

func (s *soak) run(t *testing.T, runs int) {
	s.outcomes = map[string]int{}
	usable := slices.DeleteFunc(habits(), func(h habit) bool { return h.strays && s.v.level == sandbox.LevelNone })
	work := make(chan int)
	var wg sync.WaitGroup
	for worker := range atATime {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(runs), uint64(worker)))
			place := <-s.rooms
			defer func() { s.rooms <- place }()
			for i := range work {
				h := usable[i%len(usable)]
				d := disturbance(rng.IntN(int(disturbances)))
				if h.hangs && d == undisturbed {
					d = timedOut
				}
				s.one(t, place, i, h, d, time.Duration(rng.IntN(30_000))*time.Microsecond)
			}
		})
	}
	for i := range runs {
		work <- i
	}
	close(work)
	wg.Wait()
}

// one makes one run, and checks its result as far as that is certain.
func (s *soak) one(t *testing.T, place *room, i int, h habit, d disturbance, after time.Duration) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	mark := fmt.Sprintf("%s-%d.", s.mark, i)
	command := place.shell
	command.Args = []string{"-c", h.script}
	if h.fails {
		command = place.text
	}
	command.Env = sandbox.MergeEnv(command.Env, []string{mark})
	command.Stdin = []byte(h.stdin)
	policy := place.policy
	policy.Limits = sandbox.Limits{Timeout: time.Minute, OutputTotal: 1 << 20}

	var disturbing sync.WaitGroup
	over := make(chan struct{})
	wait := func() bool {
		select {
		case <-time.After(after):
			return true
		case <-over:
			return false
		}
	}
	switch d {
	case timedOut:
		policy.Limits.Timeout = after + time.Microsecond
	case cancelled, shutDown:
		cause := map[disturbance]error{cancelled: context.Canceled, shutDown: sandbox.ErrShutdown}[d]
		disturbing.Go(func() {
			if wait() {
				cancel(cause)
			}
		})
	case killedFromOutside:
		disturbing.Go(func() {
			for wait() {
				chain := chainOf(mark)
				if len(chain) > 0 {
					_ = syscall.Kill(chain[int(after)%len(chain)], syscall.SIGKILL)
					return
				}
				after = time.Millisecond
			}
		})
	}
	res, err := s.r.Run(ctx, policy, command)
	close(over)
	disturbing.Wait()

	outcome := "error"
	switch {
	case err == nil:
		outcome = cmp.Or(string(res.Cause), res.Signal, fmt.Sprintf("status %d", res.ExitCode))
		if res.Level != s.v.level {
			t.Errorf("run %d, which %s, was at level %v, want %v", i, h.name, res.Level, s.v.level)
		}
	case errors.Is(err, context.Canceled) && (d == cancelled || d == shutDown):
		outcome = "not started"
	case h.fails:
		outcome = "cannot be started"
	case d != killedFromOutside:
		t.Errorf("run %d, which %s, disturbance %d: Run = %v, want a result", i, h.name, d, err)
	}
	s.mu.Lock()
	s.outcomes[outcome]++
	s.mu.Unlock()
	if d != undisturbed {
		return
	}
	switch {
	case h.fails:
		if err == nil {
			t.Errorf("run %d, of what %s, gave %+v, want an error", i, h.name, res)
		}
	case err != nil: // handled above
	case res.Cause != h.cause, h.cause == sandbox.CauseExit && (res.ExitCode != h.code || res.Signal != h.signal):
		t.Errorf("run %d, which %s, ended with status %d %s %s, want %d %s %s",
			i, h.name, res.ExitCode, res.Signal, res.Cause, h.code, h.signal, h.cause)
	}
}

// chainOf returns the program with a mark and its ancestors up to this process.
func chainOf(mark string) []int {
	all := processes()
	for pid, p := range all {
		if !bytes.Contains(p.environ, []byte(mark)) {
			continue
		}
		var chain []int
		for pid > 1 && pid != os.Getpid() && all[pid] != nil {
			chain = append(chain, pid)
			pid = all[pid].parent
		}
		if pid == os.Getpid() {
			return chain
		}
	}
	return nil
}

// A process is an entry of /proc.
type process struct {
	parent  int
	state   string
	exe     string
	cmdline string
	environ []byte
}

// processes returns all processes that can be examined.
func processes() map[int]*process {
	all := map[int]*process{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue // it has ended
		}
		// pid (command) state ppid …; the command may contain anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(dir))
		p := &process{state: fields[0]}
		p.parent, _ = strconv.Atoi(fields[1])
		p.environ, _ = os.ReadFile(dir + "/environ")
		p.exe, _ = os.Readlink(dir + "/exe")
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		p.cmdline = strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))
		all[pid] = p
	}
	return all
}

// survivors returns processes of the soak: its children, dead or alive, processes that run
// this program without being an ancestor, and those with the mark.
func (s *soak) survivors() map[int]string {
	all := processes()
	self, _ := os.Readlink("/proc/self/exe")
	ours := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && all[pid] != nil; pid = all[pid].parent {
		ours[pid] = true
	}
	left := map[int]string{}
	for pid, p := range all {
		if _, ok := s.there[pid]; !ok && !ours[pid] && (p.parent == os.Getpid() || p.exe == self || bytes.Contains(p.environ, []byte(s.mark))) {
			left[pid] = fmt.Sprintf("process %d (parent %d, state %s): %s %s", pid, p.parent, p.state, p.exe, p.cmdline)
		}
	}
	return left
}

// inventory counts the resources of this process by kind.
func inventory(t *testing.T) map[string]int {
	t.Helper()
	held := map[string]int{"goroutines": runtime.NumGoroutine()}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			kind, _, _ := strings.Cut(target, ":[")
			held["descriptor of "+kind]++
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	held["mounts"] = bytes.Count(mounts, []byte("\n"))

	var groups []string
	for _, base := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified"} {
		more, _ := filepath.Glob(base + "/packs-mcp-*")
		groups = append(groups, more...)
	}
	for _, group := range groups {
		// The group of a living helper belongs to another test, or is not due yet.
		_, pid, _ := strings.Cut(filepath.Base(group), "packs-mcp-")
		if _, err := os.Stat("/proc/" + pid); err != nil {
			held["control groups of nobody"]++
		}
	}

	// A thread that was confined or moved to a namespace must not be reused, since the work
	// scheduled on it later would behave differently.
	tasks, _ := filepath.Glob("/proc/self/task/*")
	for _, task := range tasks {
		status, _ := os.ReadFile(task + "/status")
		for line := range strings.Lines(string(status)) {
			switch name, value, _ := strings.Cut(line, ":"); name {
			case "NoNewPrivs", "Seccomp", "Seccomp_filters", "CapEff", "CapBnd", "Uid":
				held["threads with another "+name] |= differs("/proc/self/status", name, value)
			}
		}
		spaces, _ := filepath.Glob(task + "/ns/*")
		for _, ns := range spaces {
			there, _ := os.Readlink(ns)
			here, _ := os.Readlink("/proc/self/ns/" + filepath.Base(ns))
			if there != "" && there != here {
				held["threads in another namespace "+filepath.Base(ns)]++
			}
		}
	}
	maps.DeleteFunc(held, func(_ string, n int) bool { return n == 0 })
	return held
}

// differs returns 1 if a line of the file does not have the expected value.
func differs(file, name, value string) int {
	data, _ := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		if n, v, _ := strings.Cut(line, ":"); n == name && v != value {
			return 1
		}
	}
	return 0
}

// leavesNothing checks that everything is as before. Processes that end by themselves have a
// second for that.
func (s *soak) leavesNothing(t *testing.T, before map[string]int, temp string) {
	t.Helper()
	var after map[string]int
	var left map[int]string
	more := func() (list []string) {
		after = inventory(t)
		for _, what := range slices.Sorted(maps.Keys(after)) {
			if after[what] > before[what] {
				list = append(list, fmt.Sprintf("%s: %d, before: %d", what, after[what], before[what]))
			}
		}
		return list
	}
	var held []string
	for deadline := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		left, held = s.survivors(), more()
		if len(left)+len(held) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, what := range held {
		t.Errorf("held after the runs: %s", what)
	}
	for _, pid := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("left after the runs: %s", left[pid])
		_ = syscall.Kill(pid, syscall.SIGKILL) // so that it is not left forever
	}
	if after["goroutines"] > before["goroutines"] {
		var stacks bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		t.Logf("goroutines:\n%s", &stacks)
	}
	err := filepath.WalkDir(temp, func(path string, d os.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), "packs") {
			t.Errorf("left after the runs: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
