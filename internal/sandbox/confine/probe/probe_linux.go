//go:build amd64 || arm64

package probe

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Checks that the probe's program can be asked for, as arguments.
const (
	Namespaces = "namespaces" // it is in a PID namespace, and in a file tree that is new
	Landlock   = "landlock"   // Landlock refuses what nothing else does
	Loopback   = "loopback"   // it can connect to itself over a loopback interface
	Container  = "container"  // it is in a container with nothing but a read-only root
	OwnKernel  = "own-kernel" // the same, in one whose kernel is not the machine's, so that its settings may be changed
	Layer      = "layer"      // it can change everything in the layered folder that is the next argument
)

// Main checks that this process is confined as intended, by attempting what must
// fail. It prints what is wrong, and returns the exit status.
func Main(args []string) int {
	amiss := func(format string, a ...any) int {
		_, _ = fmt.Fprintf(os.Stdout, format+"\n", a...) //nolint:forbidigo // this is all of a process, and what it prints is its answer
		return 1
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return amiss("reading /proc/self/status: %v", err)
	}
	// gVisor has no line for this in the status.
	if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 1 {
		return amiss("the process can gain privileges (no_new_privs %d, %v)", n, err)
	}
	for _, want := range []string{"Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"} {
		if strings.HasPrefix(want, "CapBnd") && len(args) > 0 && args[0] != Namespaces && args[0] != Container && args[0] != OwnKernel {
			continue // an unprivileged process cannot drop what it cannot use
		}
		if !strings.Contains(string(status), want+"\n") {
			return amiss("the process has not %q", want)
		}
	}
	if !slices.Contains(args, Loopback) {
		if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0); err == nil {
			_ = unix.Close(fd)
			return amiss("the process can make a socket")
		}
	}
	for len(args) > 0 {
		switch args[0] {
		case Namespaces:
			if pid := os.Getpid(); pid > 16 {
				return amiss("the process is not in a PID namespace of its own")
			}
			if os.Getppid() != 1 {
				return amiss("the process has another parent than the init of its namespace")
			}
			var root unix.Statfs_t
			if err := unix.Statfs("/", &root); err != nil || root.Type != unix.TMPFS_MAGIC || root.Flags&unix.ST_RDONLY == 0 {
				return amiss("the root folder is not a new, read-only one (%v)", err)
			}
			if _, err := os.Lstat("/proc/1/cwd/sys/kernel"); err == nil {
				return amiss("the process can look around by way of the init")
			}
			if err := unix.Chmod("/etc", 0o755); err != unix.EROFS {
				return amiss("changing the mode of /etc gives %v", err)
			}
		case Container:
			if err := errors.Join(inContainer(), fixedSettings()); err != nil {
				return amiss("%v", err)
			}
		case OwnKernel:
			if err := inContainer(); err != nil {
				return amiss("%v", err)
			}
		case Landlock:
			// Anyone who may make files may make the device 0:0.
			name := os.Getenv("TMPDIR") + "/device"
			err := unix.Mknod(name, unix.S_IFCHR, 0)
			if err != unix.EACCES {
				_ = os.Remove(name)
				return amiss("making a device gives %v", err)
			}
		case Loopback:
			if err := callSelf(); err != nil {
				return amiss("a connection of the process to itself: %v", err)
			}
		case Layer:
			if len(args) < 2 {
				return amiss("the check %q needs a folder", Layer)
			}
			args = args[1:]
			if err := changeLayer(args[0]); err != nil {
				return amiss("changing a layered folder: %v", err)
			}
		default:
			return amiss("no such check: %q", args[0])
		}
		args = args[1:]
	}
	return 0
}

// inContainer looks for what a container must not have.
func inContainer() error {
	if pid := os.Getpid(); pid > 64 || os.Getppid() != 1 {
		return fmt.Errorf("the process %d is not in a PID namespace of its own", pid)
	}
	var root unix.Statfs_t
	if err := unix.Statfs("/", &root); err != nil || root.Flags&unix.ST_RDONLY == 0 {
		return fmt.Errorf("the root folder is not read-only (%v)", err)
	}
	links, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(links)) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name != "lo" {
			return fmt.Errorf("the container has the network interface %q", name)
		}
	}
	if f, err := os.Open("/dev/mem"); err == nil {
		_ = f.Close()
		return errors.New("the container has /dev/mem")
	}
	return nil
}

// fixedSettings returns an error if the settings of the kernel can be changed.
func fixedSettings() error {
	for _, dir := range []string{"/proc/sys", "/sys"} {
		var at unix.Statfs_t
		if err := unix.Statfs(dir, &at); err != nil || at.Flags&unix.ST_RDONLY == 0 {
			return fmt.Errorf("%s is not read-only (%v)", dir, err)
		}
	}
	return nil
}

// callSelf connects to a port that it listens on.
func callSelf() error {
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(server)
	here := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(server, here); err != nil {
		return err
	}
	if err := unix.Listen(server, 1); err != nil {
		return err
	}
	at, err := unix.Getsockname(server)
	if err != nil {
		return err
	}
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(client)
	return unix.Connect(client, at)
}
