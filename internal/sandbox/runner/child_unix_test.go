//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/capture"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// systemChild has the behaviours that need Unix.
func systemChild(mode string, args []string) int {
	switch mode {
	case "ready": // FIFO: say so there, then stay
		f, err := os.OpenFile(args[0], os.O_WRONLY, 0)
		if err != nil {
			return 1
		}
		_ = f.Close()
		time.Sleep(time.Hour)
	case "fill": // MIB: have that much memory, and stay
		n, _ := strconv.Atoi(args[0])
		held := make([]byte, n<<20)
		for i := 0; i < len(held); i += os.Getpagesize() {
			held[i] = 1
		}
		time.Sleep(time.Hour)
		runtime.KeepAlive(held)
	case "hog": // COUNT MIB: that many processes, with that much memory each
		signal.Ignore(syscall.SIGTERM)
		n, _ := strconv.Atoi(args[0])
		for range n {
			filler := again("fill", nil)
			filler.Args = []string{filler.Path, args[1]}
			_ = filler.Start()
		}
		time.Sleep(time.Hour)
	case "bomb": // start others of its kind, and never end
		for {
			_ = again("bomb", nil).Start()
		}
	case "stubborn": // does not end on SIGTERM, and prints too much
		signal.Ignore(syscall.SIGTERM, syscall.SIGPIPE)
		for {
			_, _ = os.Stdout.WriteString(strings.Repeat("x", 4096))
		}
	case "polite": // ends on SIGTERM with a status of its own
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		go func() {
			for {
				if _, err := os.Stdout.WriteString(strings.Repeat("x", 4096)); err != nil {
					return
				}
			}
		}()
		signal.Ignore(syscall.SIGPIPE)
		<-c
		return 7
	case "stopped": // cannot even react, while a child of its own prints too much
		signal.Ignore(syscall.SIGTERM)
		if err := again("stubborn", nil).Start(); err != nil {
			return 1
		}
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
		time.Sleep(time.Hour) // another thread may take the signal, a moment later
	case "deaf": // FIFO: does not end on SIGTERM, says so there, then stays
		signal.Ignore(syscall.SIGTERM)
		return systemChild("ready", args)
	case "tells": // FIFO: prints too much, and says there when it is to end, then stays
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		signal.Ignore(syscall.SIGPIPE)
		for len(c) == 0 {
			_, _ = os.Stdout.WriteString(strings.Repeat("x", 4096))
		}
		return systemChild("ready", args)
	case "hold": // FIFO: prints its pid there, and keeps it open
		f, err := os.OpenFile(args[0], os.O_WRONLY, 0)
		if err != nil {
			return 1
		}
		fmt.Fprintln(f, os.Getpid())
		time.Sleep(time.Hour)
		_ = f.Close()
	case "server": // MODE FOLDER ARGS…: runs this program in a Runner
		return runAgain(args[0], args[1], args[2:])
	case "suicide":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		time.Sleep(time.Hour)
	case "leave": // HOW [stay]: starts a child that stays and holds all streams, prints its pid, ends or prints too much
		attr := &syscall.SysProcAttr{Setsid: args[0] == "setsid", Setpgid: args[0] == "setpgid"}
		cmd := again("sleep", attr)
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(cmd.Process.Pid)
		for len(args) > 1 {
			_, _ = os.Stdout.WriteString(strings.Repeat("x", 4096))
		}
	case "level": // LIMIT…: prints the level that is had under low hard limits
		for _, name := range args {
			resource := map[string]int{"cpu": unix.RLIMIT_CPU, "nproc": 6, "fsize": unix.RLIMIT_FSIZE}[name]
			low := map[string]uint64{"cpu": 20, "nproc": 4000, "fsize": 1 << 20}[name]
			_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: low, Max: low})
		}
		r := New(Options{Skip: skipped()})
		fmt.Print(r.Probe(context.Background()).Level)
		r.Close()
	case "tty":
		_, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		sid, _ := unix.Getsid(0)
		fmt.Print(errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES), sid == os.Getpid())
	case "fds":
		var open []string
		for fd := range 1024 {
			if fd > 2 && isRuntimes(fd) {
				continue
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				open = append(open, fmt.Sprint(fd))
			}
		}
		fmt.Print(strings.Join(open, " "))
	case "odd":
		return oddFiles(args[0])
	case "hijack": // replaces the folder for kept output before it prints
		if err := os.Symlink(args[0], capture.Dir); err != nil {
			return 1
		}
		_, _ = os.Stdout.WriteString(strings.Repeat("x", 100_000))
	default:
		fmt.Fprintf(os.Stderr, "no behaviour %q", mode)
		return 99
	}
	return 0
}

// again returns this program with another behaviour and the same streams.
func again(mode string, attr *syscall.SysProcAttr) *exec.Cmd {
	exe, err := os.Executable()
	return &exec.Cmd{
		Path: exe, Err: err, Env: []string{childVar + "=" + mode, "GORACE=atexit_sleep_ms=0"},
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: attr,
	}
}

// runAgain runs this program with another behaviour as a server would.
func runAgain(mode, dir string, args []string) int {
	exe, err := os.Executable()
	if err != nil {
		return 1
	}
	p, err := program.Lookup(exe, program.LookupOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := sandbox.Command{Program: p, Args: args, Dir: dir, Env: []string{childVar + "=" + mode, "GORACE=atexit_sleep_ms=0"}}
	_, err = New(Options{Skip: skipped(), TempDir: dir}).Run(context.Background(), allow(sandbox.Limits{}, c), c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// isRuntimes reports whether Go's own runtime opened fd in this process, for
// its poller or to learn its share of the processors.
func isRuntimes(fd int) bool {
	link, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return strings.HasPrefix(link, "anon_inode:") || strings.HasPrefix(link, "/sys/fs/cgroup/")
}

// oddFiles makes a file of every kind that a workspace may hold; outside is a file
// elsewhere.
func oddFiles(outside string) int {
	var failed int
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = 1
		}
	}
	must(os.WriteFile("plain", []byte("hello"), 0o600))
	must(os.Mkdir("dir", 0o700))
	must(os.WriteFile("dir/inner", []byte("x"), 0o600))
	must(os.WriteFile("new\nline\x1b[31m", []byte("x"), 0o600))
	must(os.WriteFile("bad\xff\xfeutf8", []byte("x"), 0o600))
	must(os.WriteFile(strings.Repeat("n", 255), nil, 0o600))
	must(unix.Mkfifo("fifo", 0o600))
	must(unix.Chmod(create("setid"), unix.S_ISUID|0o700))
	must(os.Symlink(outside, "link"))
	must(os.Symlink("plain", "inlink"))
	must(os.Symlink("/", "rootlink"))
	must(os.Link(outside, "hard"))
	must(os.WriteFile("secret", []byte("x"), 0))
	must(os.Truncate(create("sparse"), 10<<30))
	must(os.Mkdir(capture.Dir, 0o700))
	must(os.WriteFile(capture.Dir+"/mine", []byte("x"), 0o600))
	if l, err := net.Listen("unix", "socket"); err == nil {
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = l.Close()
	} else {
		must(err)
	}
	return failed
}

func create(name string) string {
	f, err := os.Create(name)
	if err == nil {
		_ = f.Close()
	}
	return name
}
