package seatbelt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is every program of a run: the real supervisor and confined helper,
// here on Linux; a sandbox-exec that confines nothing; and the program.

const (
	testArg  = "__seatbelt-test-helper"
	childArg = "__seatbelt-test-child"
)

func TestMain(m *testing.M) {
	// Exit without the hooks of the race detector, which waits for a second, and of
	// coverage, which prints.
	switch {
	case filepath.Base(os.Args[0]) == "sandbox-exec":
		syscall.Exit(fakeSandboxExec(os.Args))
	case len(os.Args) > 1 && os.Args[1] == testArg:
		syscall.Exit(helper(newLinux(), os.Args[2:]))
	case len(os.Args) > 2 && os.Args[1] == childArg:
		syscall.Exit(child(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// fakeSandboxExec reads its arguments like the real one, and fails like it if the
// profile asks for that.
func fakeSandboxExec(args []string) int {
	profile := ""
	i := 1
	for ; i < len(args) && args[i] != "--"; i += 2 {
		switch args[i] {
		case "-p":
			profile = args[i+1]
		case "-D":
			if !strings.Contains(args[i+1], "=") {
				return 64
			}
		default:
			return 64
		}
	}
	switch {
	case strings.Contains(profile, "nested"):
		fmt.Fprintln(os.Stderr, "sandbox-exec: sandbox_apply: Operation not permitted")
		return 71
	case strings.Contains(profile, "silent"):
		return 65
	case strings.Contains(profile, "killed"):
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		time.Sleep(time.Minute)
	case strings.Contains(profile, "hang"):
		time.Sleep(time.Minute)
	case strings.Contains(profile, "talkative"):
		fmt.Fprintln(os.Stderr, "sandbox-exec: something nobody needs to know")
	}
	fmt.Fprintln(os.Stderr, "sandbox-exec:", syscall.Exec(args[i+1], args[i+1:], os.Environ()))
	return 71
}

// A linux is a system that uses /proc.
type linux struct{}

func newLinux() linux { return linux{} }

func (linux) list() ([]proc, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []proc
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		// pid (command) state ppid pgrp session … starttime is the 22nd.
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
		all = append(all, proc{
			pid: pid, ppid: number(1), pgid: number(2), sid: number(3), start: int64(number(19)),
			uid: int(info.Sys().(*syscall.Stat_t).Uid), zombie: f[0] == "Z" || f[0] == "X",
		})
	}
	return all, nil
}

func (linux) marked(pid int, entry []byte) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(append([]byte{0}, env...), append(append([]byte{0}, entry...), 0))
}

func (linux) awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

func (linux) watch(int)                {}
func (linux) changed() <-chan struct{} { return nil }

// A childReport is what the child "report" prints.
type childReport struct {
	Args, Env   []string
	Dir         string
	Descriptors []string
	Limits      map[string][2]uint64
	Leader      bool // of a session
}

// child is the program of a run.
func child(mode string, args []string) int {
	switch mode {
	case "report":
		fds, _ := os.ReadDir("/proc/self/fd")
		r := childReport{Args: args, Env: os.Environ(), Limits: map[string][2]uint64{}}
		r.Dir, _ = os.Getwd()
		for _, fd := range fds {
			// Not descriptors that Go opened itself or that are closed by now.
			if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && (strings.HasPrefix(to, "pipe:") || to == os.DevNull) {
				r.Descriptors = append(r.Descriptors, fd.Name())
			}
		}
		for name, which := range map[string]int{
			"core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "fsize": unix.RLIMIT_FSIZE, "nofile": unix.RLIMIT_NOFILE,
		} {
			var l unix.Rlimit
			_ = unix.Getrlimit(which, &l)
			r.Limits[name] = [2]uint64{l.Cur, l.Max}
		}
		sid, _ := unix.Getsid(0)
		r.Leader = sid == os.Getpid()
		_ = json.NewEncoder(os.Stdout).Encode(r)
	case "exit":
		fmt.Fprint(os.Stderr, "to stderr")
		code, _ := strconv.Atoi(args[0])
		return code
	case "signal":
		n, _ := strconv.Atoi(args[0])
		_ = unix.Kill(os.Getpid(), syscall.Signal(n))
		time.Sleep(time.Minute)
	case "cat":
		b := make([]byte, 1<<20)
		n, _ := os.Stdin.Read(b)
		_, _ = os.Stdout.Write(b[:n])
	case "write": // FILE: as much as there may be
		f, err := os.Create(args[0])
		for block := make([]byte, 64<<10); err == nil; {
			_, err = f.Write(block)
		}
		return 1
	case "sleep": // FILE: writes its identity there
		say(args[0])
		time.Sleep(time.Minute)
	case "leave": // HOW FILE: starts a sleeper, says so, and ends or stays
		leave(args[0], args[1])
		if len(args) > 2 {
			time.Sleep(time.Minute)
		}
	case "half": // HOW FILE: the first half of a daemon
		leave(args[0], args[1])
	case "chain": // N FILE: goes on as another process, at most N times
		say(args[1])
		if n, _ := strconv.Atoi(args[0]); n > 0 {
			start(true, "chain", strconv.Itoa(n-1), args[1])
		}
	case "many": // N FILE
		n, _ := strconv.Atoi(args[0])
		for range n {
			start(false, "sleep", args[1])
		}
		time.Sleep(time.Minute)
	}
	return 0
}

// leave starts a sleeper that tries to hide.
func leave(how, file string) {
	switch how {
	case "plain":
		start(false, "sleep", file)
	case "session":
		start(true, "sleep", file)
	case "daemon":
		start(true, "half", "session", file)
	}
	for {
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func start(session bool, args ...string) {
	cmd := exec.Command(os.Args[0], append([]string{childArg}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	_ = cmd.Start()
}

// say adds this process to a file of processes.
func say(file string) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(f, os.Getpid())
		_ = f.Close()
	}
}
