package drill

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Arg is the first argument that makes this program try one operation, print a
// report, and exit; see [Main].
const Arg = "__packs-mcp-attempt"

// A report is what a try prints: one line of JSON.
type report struct {
	Outcome string `json:"outcome"` // "ok", the name of an error, or what the operation documents
	Detail  string `json:"detail,omitempty"`
}

// Main tries the operation that args name, prints a report, and returns an exit
// status. Some operations are started by others, and print nothing.
func Main(in io.Reader, out io.Writer, args []string) int {
	if len(args) == 0 {
		return 2
	}
	switch args[0] {
	case opWait: // stays until the other end of the pipe is closed
		_, _ = in.Read(make([]byte, 1))
		return 0
	case opLinger:
		return linger(args[1:])
	case opNothing:
		return 0
	}
	err := Try(args)
	r := report{Outcome: Outcome(err)}
	if err != nil {
		r.Detail = err.Error()
	}
	line, merr := json.Marshal(r)
	if merr != nil {
		return 2
	}
	fmt.Fprintf(out, "%s\n", line)
	return 0
}

// Operations that other operations start.
const (
	opWait    = "wait"
	opLinger  = "linger"
	opNothing = "nothing"
)

// An answer is an outcome other than an error of the system.
type answer string

func (a answer) Error() string { return string(a) }

const (
	notThere = "not there"
	endedToo = "ended with the run" // set by Run after the run, not by an operation
)

// Outcome returns the word for the result of [Try].
func Outcome(err error) string {
	if err == nil {
		return ok
	}
	if a, is := errors.AsType[answer](err); is {
		return string(a)
	}
	return errorName(err)
}

// errUnknown is returned for an operation that this system, or this program, does
// not have.
var errUnknown = errors.New("no such operation")

// Try does one operation of [Rows], with names filled in. Each operation does just
// enough to show that it could do more.
func Try(op []string) error {
	need := map[string]int{
		"read-file": 1, "list-folder": 1, "create-file": 1, "change-file": 1, "connect": 2, "look-up": 1, "leave": 1,
		"processes": 1, "memory": 1, "large-file": 2, "variable": 1,
	}
	if n, is := need[op[0]]; is && len(op) != n+1 {
		return fmt.Errorf("%s takes %d arguments", op[0], n)
	}
	switch op[0] {
	case "read-file":
		_, err := os.ReadFile(op[1])
		return err
	case "list-folder":
		_, err := os.ReadDir(op[1])
		return err
	case "create-file":
		return put(op[1], os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	case "change-file":
		return put(op[1], os.O_WRONLY)
	case "connect":
		return dial(op[1], op[2], "")
	case "look-up":
		return dial("udp", op[1], question)
	case "variable":
		if _, found := os.LookupEnv(op[1]); !found {
			return answer(notThere)
		}
		return nil
	case "leave":
		return leave(op[1])
	case "processes", "memory", "large-file":
		n, err := strconv.Atoi(op[len(op)-1])
		if err != nil {
			return err
		}
		switch op[0] {
		case "processes":
			return processes(n)
		case "memory":
			return memory(n)
		}
		return large(op[1], n)
	}
	return trySystem(op)
}

func put(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("changed")
	return errors.Join(err, f.Close())
}

// question is a DNS query for the address of example.com.
const question = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x01\x00\x01"

// dial connects, and sends text if there is any.
func dial(network, address, text string) error {
	conn, err := net.DialTimeout(network, address, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if text != "" {
		_, err = io.WriteString(conn, text)
	}
	return err
}

// processes starts n processes, which end with this one.
func processes(n int) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	for range n {
		if err := start(r, nil, opWait); err != nil {
			return err
		}
	}
	time.Sleep(counted)
	return nil
}

// counted is how long excess processes stay: some levels count only from time to
// time, and end the run.
const counted = time.Second

// start starts this program for an operation. Without stdin, it reads nothing.
func start(stdin *os.File, sys *syscall.SysProcAttr, args ...string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	attr := &os.ProcAttr{Files: []*os.File{cmp.Or(stdin, null), null, null}, Sys: sys}
	p, err := os.StartProcess(os.Args[0], append([]string{os.Args[0], Arg}, args...), attr)
	if err != nil {
		return err
	}
	return p.Release()
}

// How often a process that is left behind says that it is alive, and how long it lives.
const (
	pulse    = 20 * time.Millisecond
	lingered = 5 * time.Second
)

// leave starts a process that tries to outlive the run, and returns when it runs.
func leave(file string) error {
	if err := start(nil, apart(), opLinger, file); err != nil {
		return err
	}
	for until := time.Now().Add(lingered); time.Now().Before(until); time.Sleep(pulse) {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
	}
	return answer("what it started is not there")
}

// linger writes how often it woke to a file, for some seconds. It ends when the file is
// gone: creating it again would leave it in a folder that is being removed.
func linger(args []string) int {
	if len(args) != 1 {
		return 2
	}
	f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE, 0o600)
	for n, until := 0, time.Now().Add(lingered); err == nil && time.Now().Before(until); n++ {
		if _, err := f.WriteString(strconv.Itoa(n)); err != nil {
			return 1
		}
		_ = f.Close()
		time.Sleep(pulse)
		f, err = os.OpenFile(args[0], os.O_WRONLY|os.O_TRUNC, 0)
	}
	return 0
}

// large writes a number of MiB to a new file.
func large(path string, mib int) error {
	ignoreFileSize()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for range mib {
		if _, err := f.Write(block); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}
