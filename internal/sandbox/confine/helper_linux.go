//go:build amd64 || arm64

package confine

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/broker"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/groups"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/memory"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/probe"
)

// lifeline is the helper's descriptor for the socket to the server.
const lifeline = 3

// stdioCount is how many descriptors come with a job: the program's standard
// input, output and error.
const stdioCount = 3

func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case Arg:
		os.Exit(Help())
	case CheckArg:
		os.Exit(probe.Main(os.Args[2:]))
	}
}

// Lifeline is the descriptor of the helper's socket to the server.
const Lifeline = lifeline

// Help does all of the helper's work and returns its exit status. It must run on the
// process's first thread, where Go initialises packages, so package container calls it
// from its init function, too.
func Help() int {
	rehearse()
	job, stdio, err := receive()
	if err != nil {
		return 1 // there is nobody to report to
	}
	group, err := newJobGroup(job)
	if group != nil {
		defer group.Remove() // nobody waits for this
	}
	var r *Report
	if err != nil {
		r = &Report{Failed: true, Step: StepGroup + err.Error()}
	} else {
		r = carryOut(job, stdio, group)
	}
	for message := r.Message(); len(message) > 0; {
		n, err := unix.Write(lifeline, message)
		if err != nil {
			return 1
		}
		message = message[n:]
	}
	return 0
}

// receive waits for the job.
func receive() (*Job, []int, error) {
	var head [HeadSize]byte
	control := make([]byte, unix.CmsgSpace(4*stdioCount))
	var n, cn int
	for {
		var err error
		n, cn, _, _, err = unix.Recvmsg(lifeline, head[:], control, unix.MSG_WAITALL|unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		break
	}
	if n != HeadSize {
		return nil, nil, errMalformed
	}
	messages, err := unix.ParseSocketControlMessage(control[:cn])
	if err != nil || len(messages) != 1 {
		return nil, nil, errMalformed
	}
	stdio, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(stdio) != stdioCount {
		return nil, nil, errMalformed
	}
	body := make([]byte, Length(head))
	for got := 0; got < len(body); {
		n, err := unix.Read(lifeline, body[got:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, nil, err
		case n == 0:
			return nil, nil, errMalformed
		default:
			got += n
		}
	}
	job, err := parseJob(body)
	return job, stdio, err
}

// newJobGroup makes the control group that a job asks for. It returns nil if the job
// asks for none, or none can be made and the supervisor can do without.
func newJobGroup(job *Job) (*groups.Group, error) {
	if job.Group == "" {
		return nil, nil
	}
	l := groups.Limits{Processes: job.Limits.Processes, Memory: job.Limits.Together, Processors: job.Limits.Processors}
	if l.Processes > 0 && job.Namespaces {
		l.Processes++ // our init
	}
	g, err := groups.New(job.Group, l)
	if err != nil && l.Memory <= 0 && l.Processors <= 0 {
		return nil, nil
	}
	return g, err
}

// carryOut starts the program, in the control group unless that is nil, and returns
// when none of its processes is left.
func carryOut(job *Job, stdio []int, group *groups.Group) *Report {
	orders, report, err := pipes()
	if err != nil {
		return failure("make pipes for the program", err)
	}
	questions, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return failure("make a socket for the filter's questions", err)
	}
	for _, fd := range append(stdio, report[1], orders[0], questions[1]) {
		if fd >= fdOrders { // moving descriptors could overwrite it
			return failure("place the program's descriptors", unix.EMFILE)
		}
	}
	if !job.Namespaces {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return failure("become the one to whom orphans fall", err)
		}
	}
	var around *groups.Watch
	if job.Contained {
		around = groups.WatchContainer() // before the program starts
	}
	f := newFamily(job, group, ends{stdio: stdio, orders: orders[0], report: report[1], questions: questions[1]})
	var maps []userMap
	if f.ns && os.Getuid() == 0 {
		if maps, err = userMaps(); err != nil {
			return failure(stepIDs, err)
		}
	}
	pid, err := f.fork()
	if err != nil {
		step := "start a process"
		if f.ns {
			step = "make namespaces"
		}
		return failure(step, err)
	}
	if maps != nil {
		err := mapUsers(pid, maps)
		if err == nil {
			_, err = unix.Write(orders[1], []byte{0})
		}
		if err != nil {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, unix.WALL, nil)
			return failure(stepIDs, err)
		}
	}
	if f.ns {
		// The kernel tears the mounts down when their last user ends. This descriptor makes
		// the helper the last user, after its answer, so we do not wait for it with the
		// init.
		_, _ = unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	// Not earlier: a process that cannot be dumped does not own its files in /proc, and
	// the child needs one of them to map its user.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	for _, fd := range append(stdio, report[1], orders[0], questions[1]) {
		_ = unix.Close(fd)
	}
	s := &supervisor{
		family: f, job: job, pid: pid, orders: orders[1], reports: report[0], group: group, around: around,
		broker: broker.New(questions[0], &memory.Shared{Limit: job.Limits.Data, Alive: func() (int, bool) { return memory.Alive(pid, job.Namespaces) }}),
	}
	return s.watch()
}

const stepIDs = "give the namespace its ids"

// ends holds the descriptors that a child gets.
type ends struct {
	stdio                     []int
	orders, report, questions int
}

// newFamily plans all work of a job's children.
func newFamily(job *Job, group *groups.Group, e ends) *family {
	f := &family{}
	moves := []move{{e.report, fdReport}, {e.stdio[0], fdStdin}, {e.stdio[1], fdStdout}, {e.stdio[2], fdStderr}, {e.questions, fdQuestions}}
	if job.Namespaces {
		f.ns = true
		f.flags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNS | unix.CLONE_NEWUTS
		if !job.HostNet {
			f.flags |= unix.CLONE_NEWNET
		}
		f.setup.descriptors(append(moves, move{e.orders, fdOrders}, move{lifeline, fdServer}))
		f.setup.signals()
		f.join(&f.setup, group)
		f.setup.namespaces(job, os.Getuid(), os.Getgid())
		f.setup.unprivileged(true)
	} else {
		f.program.descriptors(moves)
		f.program.signals()
		f.join(&f.program, group)
		f.program.sacrifice() // while it owns its files in /proc
		f.program.unprivileged(false)
	}
	if job.Filter.NoScope {
		job.Filter.Keep = append(job.Filter.Keep, int64(os.Getpid()))
	}
	job.Filter.NoQueues = !canLimit(unix.RLIMIT_MSGQUEUE)
	f.program.program(job)
	return f
}

// canLimit reports whether the kernel lets a process limit a resource. That it has as a limit what it has
// already, Linux never refuses.
func canLimit(resource int) bool {
	var own unix.Rlimit
	return unix.Getrlimit(resource, &own) == nil && unix.Prlimit(0, resource, &own, nil) == nil
}

// pipes makes the pipe for orders to an init and the pipe for records.
func pipes() (orders, report [2]int, err error) {
	for _, p := range []*[2]int{&orders, &report} {
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return orders, report, err
		}
	}
	return orders, report, nil
}

func failure(step string, err error) *Report {
	r := &Report{Failed: true, Step: step}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		r.Errno = uint64(errno)
	}
	return r
}

// readRecord reads a child's next record. It returns false at the end.
func readRecord(fd int, rec *record) bool {
	b := unsafe.Slice((*byte)(unsafe.Pointer(rec)), recordSize)
	for {
		n, err := unix.Read(fd, b)
		if err == unix.EINTR {
			continue
		}
		return err == nil && n == int(recordSize)
	}
}
