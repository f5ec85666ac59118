//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// behaviours returns the operations that take time or have an exit status of their own.
func behaviours() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		"exit":      func(args []string) int { return number(args, 0) },
		"same-user": sameUser,
		"victim":    victim,
		"stray":     stray,
		"flood":     flood,
		"swap":      swap,
		"mess":      mess,
		"drip":      drip,
		"spin":      func([]string) int { return spin() },
		"fill":      fill,
		"litter":    litter,
		"odd":       odd,
		"block":     block,
		"maps":      mapsFlood,
	}
}

func sameUser([]string) int {
	if os.Geteuid() == os.Getuid() && os.Getegid() == os.Getgid() {
		say("same")
	} else {
		say(fmt.Sprintf("euid %d", os.Geteuid()))
	}
	return 0
}

// victim is an ordinary process of the user's: it announces itself, and runs until its input
// ends.
func victim([]string) int {
	say("ready " + secretInMemory + "\n")
	_, _ = unix.Read(0, make([]byte, 1))
	return 0
}

// stray HOW FIFO [flood] starts something that is hard to kill, announces it at the FIFO,
// and keeps running, unless HOW is to end. None of it ends on SIGTERM.
func stray(args []string) int {
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGPIPE)
	how, ready := args[0], args[1]
	leave := false
	switch how {
	case "plain":
	case "fork":
		child(asChild)
	case "setpgid":
		child(asGroup)
	case "setsid", "holder":
		child(asSession)
		leave = how == "holder"
	case "daemon", "daemon-leave":
		devnull, err := unix.Open("/dev/null", unix.O_RDWR, 0)
		if err != nil {
			fail(err.Error())
		}
		child(asDaemon, uintptr(devnull))
		leave = how == "daemon-leave"
	case "subreaper":
		child(asSubreaper)
	case "hydra":
		child(asHydra)
	case "many":
		for range 40 {
			child(asSession)
		}
	case "stopped":
		child(asStopped)
	case "kill-parent":
		killAgain(os.Getppid())
	case "kill-all":
		// Kill every process that it can, which must be few. In a process namespace the parent is
		// process 1; otherwise it must be out of reach.
		if parent := os.Getppid(); parent != 1 && unix.Kill(parent, 0) == nil {
			fail("not tried: the parent can be signalled")
		}
		killAgain(-1)
	default:
		fail("no way to stray " + how)
	}
	f, err := os.OpenFile(ready, os.O_WRONLY, 0)
	if err != nil {
		fail(err.Error())
	}
	_ = f.Close()
	if leave {
		return 0
	}
	if len(args) > 2 {
		return flood([]string{"out", "-1", "x"})
	}
	stay()
	return 0
}

// killAgain kills a process repeatedly, in case its number is used again.
func killAgain(pid int) {
	for range 20 {
		_ = unix.Kill(pid, unix.SIGKILL)
		pause(1_000_000)
	}
}

// child makes a child of fork do something.
func child(do childFunc, args ...uintptr) {
	var a [6]uintptr
	copy(a[:], args)
	if _, e := forkDo(do, &a); e != 0 {
		fail(e.Error())
	}
}

// flood STREAM BYTES TEXT [COUNTS] writes TEXT until BYTES bytes are written, or forever if
// BYTES is negative. The file COUNTS always has the number of bytes written to each stream.
func flood(args []string) int {
	fd := map[string]int{"out": 1, "err": 2}
	n, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		fail(err.Error())
	}
	counts := -1
	if len(args) > 3 {
		if counts, err = unix.Open(args[3], unix.O_WRONLY|unix.O_CREAT, 0o600); err != nil {
			fail(err.Error())
		}
	}
	var wrote [3]int64
	block := bytes.Repeat([]byte(args[2]), max(1, 64<<10/len(args[2])))
	for i := 0; n != 0; i++ {
		part := block
		if n > 0 {
			part = block[:min(n, int64(len(block)))]
		}
		to, ok := fd[args[0]]
		if !ok { // both, alternating
			to = 1 + i%2
		}
		w, err := unix.Write(to, part)
		if err != nil {
			stay() // nobody reads, but this must not end by itself
		}
		if n > 0 {
			n -= int64(w)
		}
		if wrote[to] += int64(w); counts >= 0 {
			_, _ = unix.Pwrite(counts, fmt.Appendf(nil, "%d %d\n", wrote[1], wrote[2]), 0)
		}
	}
	return 0
}

// drip writes one byte per millisecond, forever.
func drip([]string) int {
	for {
		say(".")
		pause(1_000_000)
	}
}

// spin uses up processor time, until SIGXCPU.
func spin() int {
	plainSignal(unix.SIGXCPU)
	for n := uint64(1); n != 0; n += 2 {
		_ = n * n
	}
	return 0
}

// fill PATH BYTES writes a file of that size.
func fill(args []string) int {
	plainSignal(unix.SIGXFSZ)
	f, err := os.Create(args[0])
	if err != nil {
		fail(err.Error())
	}
	block := make([]byte, 1<<20)
	for n := number(args, 1); n > 0; n -= len(block) {
		if _, err := f.Write(block[:min(n, len(block))]); err != nil {
			fail(err.Error())
		}
	}
	return 0
}

// litter COUNT creates COUNT empty files.
func litter(args []string) int {
	for i := range number(args, 0) {
		dir := fmt.Sprintf("d%03d", i/1000)
		if i%1000 == 0 {
			_ = os.Mkdir(dir, 0o700)
		}
		fd, err := unix.Open(fmt.Sprintf("%s/f%06d", dir, i), unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err != nil {
			fail(err.Error())
		}
		_ = unix.Close(fd)
	}
	return 0
}

// odd creates entries that are not artifacts in the working folder. It prints a line for
// each that it could not create.
func odd([]string) int {
	for name, err := range map[string]error{
		"fifo":              unix.Mkfifo("fifo", 0o600),
		"device":            unix.Mknod("device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))),
		"link":              os.Symlink("/etc/passwd", "link"),
		"loop":              os.Symlink("loop", "loop"),
		"hard":              twoNames("hard", "hard2"),
		"sparse":            sparse("sparse"),
		"new\nline\x1b[31m": os.WriteFile("new\nline\x1b[31m", []byte("x"), 0o600),
		"bad\xff\xfeutf8":   os.WriteFile("bad\xff\xfeutf8", []byte("x"), 0o600),
		"a long name":       os.WriteFile(strings.Repeat("n", 255), nil, 0o600),
	} {
		if err != nil {
			say(fmt.Sprintf("%s: %v\n", name, err))
		}
	}
	return 0
}

func twoNames(a, b string) error {
	if err := os.WriteFile(a, []byte("x"), 0o600); err != nil {
		return err
	}
	return os.Link(a, b)
}

func sparse(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(10 << 30)
}
