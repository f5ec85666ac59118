//go:build amd64 || arm64

package confine

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers to which a child first moves its descriptors. They are above those that a
// helper has open.
//
// Only the child uses these numbers. The helper has several threads, and for such
// a process the kernel waits for an RCU grace period, often more than 10 ms, each
// time a high number makes its descriptor table grow. The child has one thread.
const (
	fdOrders = 100 + iota // a byte means SIGTERM to all, end of file means kill all
	fdReport              // takes records
	fdStdin
	fdStdout
	fdStderr
	fdQuestions // takes the descriptor of the filter's listener
	fdServer    // the lifeline, until the listener and the descriptors of the layers are sent
	fdLayers    // the file system of the layers
	fdLower     // the folder that is being layered
	fdWork      // its work folder
	fdUpper     // where its changes go; MaxLayers of them

	fdFirstFree = fdUpper + MaxLayers
)

// A move is a descriptor and its new number. No old number is another's new one: the
// helper checks that all old ones are below fdOrders.
type move struct{ from, to int }

// descriptors moves a child's descriptors to their fixed numbers, and closes all
// others.
func (p *plan) descriptors(moves []move) {
	for _, m := range moves {
		p.call("place a descriptor", unix.SYS_DUP3, m.from, m.to, unix.O_CLOEXEC)
	}
	p.call("close the helper's descriptors", unix.SYS_CLOSE_RANGE, 3, fdOrders-1, 0)
	// gVisor reads the last number as signed.
	p.call("close the helper's descriptors", unix.SYS_CLOSE_RANGE, fdFirstFree, math.MaxInt32, 0)
}

// signals gives every signal its default disposition. All are blocked.
func (p *plan) signals() {
	const size = 32 // struct sigaction of the kernel, all zero: SIG_DFL
	none := new([size]byte)
	for sig := 1; sig <= 64; sig++ {
		if sig != int(unix.SIGKILL) && sig != int(unix.SIGSTOP) {
			p.call("reset signals", unix.SYS_RT_SIGACTION, sig, unsafe.Pointer(none), 0, 8)
		}
	}
}

// unprivileged drops every capability for good, and keeps programs that carry
// privileges from granting them. In a user namespace of our own none of this can
// fail. Outside, a process without privileges cannot drop them.
func (p *plan) unprivileged(own bool) {
	const ( // capabilities(7), "The securebits flags"; each has a lock beside it
		noRoot      = 1<<0 | 1<<1
		fixupLocked = 1 << 3
		keepLocked  = 1 << 5
		noRaise     = 1<<6 | 1<<7
		secureBits  = noRoot | fixupLocked | keepLocked | noRaise
	)
	s := p.call("lock the secure bits", unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
	missing := uintptr(0) // the errno of a kernel without secure bits and ambient capabilities, such as gVisor's
	if !own {
		s.ignore[0] = uintptr(unix.EPERM)
		if bare() {
			missing = uintptr(unix.EINVAL)
		}
	}
	s.ignore[1] = missing
	for c := range lastCap() + 1 {
		s := p.call("drop a capability from the bounding set", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if !own {
			s.ignore[0] = uintptr(unix.EPERM)
		}
	}
	p.call("clear the ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0).ignore[0] = missing
	p.call("drop the capabilities", unix.SYS_CAPSET,
		unsafe.Pointer(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}), unsafe.Pointer(new([2]unix.CapUserData)))
	p.call("set no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	p.call("hide from ptrace", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// bare reports whether this process has no capability in any set, and no_new_privs. Neither it nor a
// program that it starts in the same user namespace can get one again, whatever their user is
// (capabilities(7), "Transformation of capabilities during execve()"). Secure bits then make no
// difference, and the ambient capabilities, which are a part of the permitted ones, are none.
func bare() bool {
	if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 1 {
		return false
	}
	var have [2]unix.CapUserData
	if unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &have[0]) != nil || have != [2]unix.CapUserData{} {
		return false
	}
	for c := range lastCap() + 1 {
		if n, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); err != nil || n != 0 {
			return false
		}
	}
	return true
}

// lastCap is the highest capability that the kernel knows.
func lastCap() int {
	c := 0
	for {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c+1), 0, 0, 0); err != nil {
			return c
		}
		c++
	}
}

// program turns the child into the confined program.
func (p *plan) program(j *Job) {
	p.call("begin a session", unix.SYS_SETSID)
	if !j.Namespaces {
		// If the supervisor is killed, the kernel must kill the program.
		p.call("die with the supervisor", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(unix.SIGKILL), 0, 0, 0)
	}
	for std, fd := range []int{fdStdin, fdStdout, fdStderr} {
		p.call("place a standard stream", unix.SYS_DUP3, fd, std, 0)
	}
	p.limits(j)
	p.openFolder(j.Dir, hasOpenat2())
	if j.layered(j.Dir) == nil { // a layered one was checked below the layer
		p.expect("the working folder "+Replaced, slotFrom, j.DirID)
	}
	p.call(StepFolder, unix.SYS_FCHDIR, slotFrom)
	p.landlock(j.Landlock)
	p.call("close descriptors in the program", unix.SYS_CLOSE_RANGE, 3, ^uintptr(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
	p.call("unblock signals", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, unsafe.Pointer(new([8]byte)), 0, 8)
	p.seccomp(j.Filter)
	p.start(j)
}

// openFolder opens the folder at an absolute path that no symbolic link is part of. Without openat2(2) it
// opens one name after the other: what is at a name must be a folder itself.
func (p *plan) openFolder(dir string, openat2 bool) {
	const flags = unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY
	if openat2 {
		p.call(StepFolder, unix.SYS_OPENAT2, fdCWD, dir, p.how(flags), unix.SizeofOpenHow).out = uint8(slotFrom)
		return
	}
	p.call(StepFolder, unix.SYS_OPENAT, fdCWD, "/", flags, 0).out = uint8(slotFrom)
	for name := range strings.SplitSeq(dir, "/") {
		if name != "" {
			p.call(StepFolder, unix.SYS_OPENAT, slotFrom, name, flags|unix.O_NOFOLLOW, 0).out = uint8(slotFrom)
		}
	}
}

// hasOpenat2 reports whether the kernel has openat2(2), as Linux has from 5.6 on and gVisor's has not.
func hasOpenat2() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err == nil {
		_ = unix.Close(fd)
	}
	return err != unix.ENOSYS
}

// start executes the program if it and its interpreters are still the files that were
// hashed.
//
// A program that is neither a script nor the system's is executed by the descriptor that was
// compared, so that nothing can come between. The rest is compared by path, at the last moment, and
// a later exchange goes unnoticed: of an interpreter until the kernel opens it, which is next, and
// of a script until its interpreter opens it, some milliseconds later, since the interpreter gets
// only a path. That takes the user's rights on the program's folder. A pack's own scripts are
// copies in a private folder, where it is impossible.
func (p *plan) start(j *Job) {
	for i, f := range j.Files {
		if f.State == (State{}) || j.byDescriptor() {
			continue
		}
		what := StepProgram
		if i > 0 {
			what = StepInterpreter + f.Path
		}
		p.call(StepStart, unix.SYS_STATX, fdCWD, f.Path, 0, stateMask, unsafe.Pointer(&p.stat))
		p.same(what, j.seen(f))
	}
	argv, env := p.cstrings(append([]string{j.Path}, j.Args...)), p.cstrings(j.Env)
	if j.byDescriptor() {
		p.call(StepStart, unix.SYS_OPENAT, fdCWD, j.Path, unix.O_PATH|unix.O_CLOEXEC, 0).out = uint8(slotFrom)
		p.call(StepStart, unix.SYS_STATX, slotFrom, "", unix.AT_EMPTY_PATH, stateMask, unsafe.Pointer(&p.stat))
		p.same(StepProgram, j.seen(j.Files[0]))
		// A file with a registered interpreter (binfmt_misc) cannot be started this way:
		// the descriptor is closed by the time the interpreter opens it.
		p.call(StepStart, unix.SYS_EXECVEAT, slotFrom, "", argv, env, unix.AT_EMPTY_PATH).ignore[0] = uintptr(unix.ENOENT)
	}
	p.call(StepStart, unix.SYS_EXECVE, j.Path, argv, env)
}

// byDescriptor reports whether the program is started by the descriptor that
// was compared.
func (j *Job) byDescriptor() bool {
	return len(j.Files) == 1 && j.Files[0].State != (State{}) && !j.Files[0].System
}

// limits sets the kernel's limits for each process.
func (p *plan) limits(j *Job) {
	set := func(name string, resource int, soft, hard int64) {
		p.call("limit "+name, unix.SYS_PRLIMIT64, 0, resource, unsafe.Pointer(&unix.Rlimit{Cur: uint64(soft), Max: uint64(hard)}), 0)
	}
	// A limit of 0 does not stop a system program that collects cores (core_pattern
	// with "|"). A limit of one byte does, and is too small for a file.
	set("core files", unix.RLIMIT_CORE, 1, 1)
	if !j.Filter.NoQueues {
		set("message queues", unix.RLIMIT_MSGQUEUE, 0, 0)
	}
	l := j.Limits
	processes := int64(0)
	if l.Processes > 0 {
		processes = l.Processes + 1 // our init is one
		if !j.Namespaces {
			// The limit counts all of the user's processes, so the number of all tasks in the
			// system is added. It is a last resort: the supervisor counts, too.
			processes += tasks()
		}
	}
	const respite = 5 // seconds from SIGXCPU to SIGKILL
	for _, r := range []struct {
		name     string
		resource int
		value    int64
		respite  int64
	}{
		{"processor time", unix.RLIMIT_CPU, l.CPU, respite},
		{"memory", unix.RLIMIT_DATA, l.Data, 0},
		{"stack", unix.RLIMIT_STACK, stackLimit(l.Data), 0},
		{"open files", unix.RLIMIT_NOFILE, l.Files, 0},
		{"file size", unix.RLIMIT_FSIZE, l.FileSize, 0},
		{"processes", unix.RLIMIT_NPROC, processes, 0},
	} {
		if r.value <= 0 {
			continue
		}
		soft, hard := r.value, r.value+r.respite
		// The user's own limits may be lower, and must not be raised.
		own := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		if unix.Getrlimit(r.resource, &own) == nil && own.Max < uint64(hard) {
			hard = int64(own.Max)
			soft = min(soft, hard)
		}
		if r.resource == unix.RLIMIT_STACK && own.Cur < uint64(soft) {
			soft = int64(own.Cur) // threads get stacks of this size
		}
		set(r.name, r.resource, soft, hard)
	}
}

// stackLimit returns how many bytes the stack of a process may have. The limit on data
// does not count the stack. It is a tenth of that limit, and always enough for ordinary
// programs.
func stackLimit(data int64) int64 {
	const least, most = 8 << 20, 64 << 20
	if data <= 0 {
		return 0
	}
	return min(max(data/10, least), most)
}

// sacrifice makes the kernel kill the program first when memory runs out: its shared
// memory, in /dev/shm or elsewhere, counts toward no process's limit.
func (p *plan) sacrifice() { p.write("/proc/self/oom_score_adj", "1000") }

// tasks returns how many processes and threads the system has.
func tasks() int64 {
	const noIdea = 1 << 15
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return noIdea
	}
	// 0.20 0.18 0.12 1/80 11206: "1/80" is running tasks/all tasks
	_, rest, _ := strings.Cut(string(text), "/")
	number, _, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return noIdea
	}
	return n
}

// landlock confines the thread to what the rules allow.
func (p *plan) landlock(r Ruleset) {
	if r.FS == 0 {
		return
	}
	attr := &unix.LandlockRulesetAttr{Handled_access_fs: r.FS, Handled_access_net: r.Net, Scoped: r.Scoped}
	p.call("make a Landlock ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, unsafe.Pointer(attr), rulesetSize(r), 0).out = uint8(slotTree)
	p.rules = make([]pathBeneath, len(r.Rules))
	for i, rule := range r.Rules {
		p.rules[i].access = rule.Access & r.FS
		if p.rules[i].access == 0 {
			continue
		}
		first := len(p.steps)
		p.call("open "+rule.Path, unix.SYS_OPENAT2, fdCWD, rule.Path,
			p.how(unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW), unix.SizeofOpenHow).out = uint8(slotFrom)
		p.expect(fmt.Sprintf("folder %q %s", rule.Path, Replaced), slotFrom, rule.ID)
		parent := p.call("allow "+rule.Path, 0)
		parent.kind, parent.arg[0], parent.from[1] = doParent, uintptr(i), uint8(slotFrom)
		p.call("allow "+rule.Path, unix.SYS_LANDLOCK_ADD_RULE, slotTree, unix.LANDLOCK_RULE_PATH_BENEATH,
			unsafe.Pointer(&p.rules[i]), 0)
		p.call("close "+rule.Path, unix.SYS_CLOSE, slotFrom)
		s := &p.steps[first] // a missing path needs no rule
		s.ignore, s.skip = [2]uintptr{uintptr(unix.ENOENT), uintptr(unix.EACCES)}, len(p.steps)-first-1
	}
	p.call("restrict by Landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, slotTree, 0)
}

// rulesetSize returns how many bytes of the attributes this kernel understands.
func rulesetSize(r Ruleset) int {
	switch {
	case r.Scoped != 0:
		return 24
	case r.Net != 0:
		return 16
	}
	return 8
}
