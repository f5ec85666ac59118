package attack_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A world is the user's machine, created anew for each row: a home with a key, a pack, a
// workspace, and programs that listen. Fields that start as 0 or empty are set when a row
// names them.
type world struct {
	base string // the parent of the folders below
	tmp  string // TMPDIR for serve; empty: the system's
	// ownWorkspaces makes serve give each chat its own workspace.
	ownWorkspaces bool
	names         map[string]string
	listen        map[string]int // name → descriptor of a socket, to see who connected
	victim        *exec.Cmd
}

func (w *world) dir(name string) string { return filepath.Join(w.base, name) }

// newWorld creates the folders.
func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{base: base, listen: map[string]int{}}
	w.names = map[string]string{
		"home": w.dir("home"), "secret": w.dir("home/.ssh/id_rsa"), "outside": w.dir("outside"),
		"pack": w.dir("pack"), "ws": w.dir("ws"),
	}
	for _, dir := range []string{"home/.ssh", "outside", "pack/empty", "ws/folder"} {
		if err := os.MkdirAll(w.dir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"home/.ssh/id_rsa": "canary key", "pack/data.txt": "the pack's own", "outside/file": "somebody's", "ws/file": "the chat's",
	} {
		if err := os.WriteFile(w.dir(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("data.txt", w.dir("pack/link.txt")); err != nil {
		t.Fatal(err)
	}
	w.names["probe"] = probe(t)
	return w
}

// copyProgram gives the program a second name if possible.
func copyProgram(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o700)
}

// command returns the command that runs the probe with args in the workspace.
func (w *world) command(args []string) (sandbox.Command, error) {
	p, err := program.Lookup(w.names["probe"], program.LookupOptions{})
	return sandbox.Command{
		Program: p, Args: args, Dir: w.dir("ws"),
		// Without it, Go opens files to find out how many processors it may use.
		Env: []string{"HOME=" + w.dir("ws"), "GODEBUG=containermaxprocs=0,updatemaxprocs=0"},
	}, err
}

// policy returns the policy that a server gives a tool.
func (w *world) policy(network sandbox.Network) sandbox.Policy {
	p := sandbox.Policy{ReadOnly: []string{w.dir("pack"), w.names["probe"]}, Writable: []string{w.dir("ws")}, Network: network}
	if network == sandbox.NetworkHosts {
		p.Hosts = []hosts.Host{{Name: "api.example.com", Port: 443}}
	}
	return p
}

// fill replaces the names in braces by the test's paths and the like, creating them when
// they are first needed.
func (w *world) fill(t *testing.T, args []string) []string {
	t.Helper()
	filled := make([]string, len(args))
	for i, arg := range args {
		for {
			before, rest, ok := strings.Cut(arg, "{")
			name, after, ok2 := strings.Cut(rest, "}")
			if !ok || !ok2 {
				break
			}
			if w.names[name] == "" {
				w.names[name] = w.make(t, name)
			}
			arg = before + w.names[name] + after
		}
		filled[i] = arg
	}
	return filled
}

// forget keeps only these names; the others disappeared with a subtest.
func (w *world) forget(names map[string]string) {
	w.names, w.listen, w.victim = names, map[string]int{}, nil
}

// make creates a thing that a row can name.
func (w *world) make(t *testing.T, name string) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("making {%s}: %v", name, err)
		}
	}
	switch name {
	case "tcp":
		fd := w.socket(t, name, unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
		must(unix.Listen(fd, 8))
		return port(t, fd)
	case "udp":
		return port(t, w.socket(t, name, unix.AF_INET, unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	case "unix":
		path := w.dir("outside/s")
		must(unix.Listen(w.socket(t, name, unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: path}), 8))
		return path
	case "unix-ws", "unix-pack":
		path := w.dir(strings.TrimPrefix(name, "unix-") + "/s")
		must(unix.Listen(w.socket(t, name, unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: path}), 8))
		return path
	case "dgram":
		path := w.dir("outside/d")
		w.socket(t, name, unix.AF_UNIX, unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: path})
		return path
	case "abstract":
		path := fmt.Sprintf("@packs-mcp-attack-%d-%d", os.Getpid(), time.Now().UnixNano())
		must(unix.Listen(w.socket(t, name, unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: path}), 8))
		return path
	case "victim":
		return strconv.Itoa(w.startVictim(t))
	case "pty":
		master, slave, err := pty.Open()
		if err != nil {
			lacks(t, "pty", "no pseudo terminal: "+err.Error())
		}
		t.Cleanup(func() { _, _ = master.Close(), slave.Close() })
		return slave.Name()
	case "shm":
		id, err := unix.SysvShmGet(0, 4096, unix.IPC_CREAT|0o600)
		if err != nil {
			lacks(t, "sysvipc", "no shared memory: "+err.Error())
		}
		t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
		return strconv.Itoa(id)
	case "devshm":
		f, err := os.CreateTemp("/dev/shm", "packs-mcp-attack-")
		if err != nil {
			lacks(t, "shm", "no shared memory: "+err.Error())
		}
		_ = f.Close()
		t.Cleanup(func() { _ = os.Remove(f.Name()) })
		return f.Name()
	case "mq":
		return messageQueue(t)
	case "setuid":
		return w.setuid(t)
	case "run":
		return folderIn(t, "/run")
	}
	t.Fatalf("nothing is called {%s}", name)
	return ""
}

func (w *world) socket(t *testing.T, name string, family, kind int, at unix.Sockaddr) int {
	t.Helper()
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		t.Cleanup(func() { _ = unix.Close(fd) })
		err = unix.Bind(fd, at)
	}
	if err != nil {
		t.Fatalf("making {%s}: %v", name, err)
	}
	if at, ok := at.(*unix.SockaddrUnix); ok {
		t.Cleanup(func() { _ = os.Remove(at.Name) })
	}
	w.listen[name] = fd
	return fd
}

func port(t *testing.T, fd int) string {
	t.Helper()
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(at.(*unix.SockaddrInet4).Port)
}

// startVictim starts an unconfined process of the user's, with secrets in its environment
// and memory.
func (w *world) startVictim(t *testing.T) int {
	t.Helper()
	victim := exec.Command(probe(t), "victim")
	victim.Env = []string{"API_KEY=canary in environ"}
	victim.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	w.victim = victim
	t.Cleanup(func() {
		_ = in.Close()
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the victim is not ready: %v", err)
	}
	return victim.Process.Pid
}

func messageQueue(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("packs-mcp-attack-%d-%d", os.Getpid(), time.Now().UnixNano())
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		t.Fatal(err)
	}
	fd, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), unix.O_RDWR|unix.O_CREAT, 0o600, 0, 0, 0)
	if e != 0 {
		lacks(t, "mqueue", "no message queues: "+e.Error())
	}
	t.Cleanup(func() {
		_ = unix.Close(int(fd))
		_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(p)), 0, 0)
	})
	return name
}

// folderIn returns a folder of this machine that can be listed.
func folderIn(t *testing.T, parent string) string {
	t.Helper()
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		name := filepath.Join(parent, e.Name())
		if list, err := os.ReadDir(name); e.IsDir() && err == nil && len(list) > 0 {
			return name
		}
	}
	t.Skipf("there is no folder in %s", parent)
	return ""
}

// setuid creates a program in the pack that would run as another user, which only root can
// create.
func (w *world) setuid(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		lacks(t, "root", "a program of another user's cannot be made")
	}
	const nobody = 65534
	name := w.dir("pack/setuid")
	program, err := os.ReadFile(probe(t))
	if err == nil {
		err = errors.Join(os.WriteFile(name, program, 0o755), os.Chown(name, nobody, nobody), os.Chmod(name, 0o755|fs.ModeSetuid))
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// state describes everything of the user's that a program could change, except the
// workspace.
func (w *world) state(t *testing.T) map[string]string {
	t.Helper()
	s := map[string]string{}
	err := filepath.WalkDir(w.base, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.base, path)
		switch {
		case err != nil:
			return err
		case rel == "ws", rel == "state": // the program and the server may change these
			return fs.SkipDir
		case rel == ".":
			return nil
		}
		s[rel] = describe(path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, fd := range w.listen {
		s["{"+name+"}"] = heard(fd)
	}
	if w.victim != nil {
		s["{victim}"] = healthOf(w.victim.Process.Pid)
	}
	return s
}

func describe(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	text := ""
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		text = fmt.Sprintf("%d bytes %s", st.Size, beginning(path))
	}
	attrs := make([]byte, 256)
	n, _ := unix.Llistxattr(path, attrs)
	return fmt.Sprintf("mode %o owner %d:%d names %d times %v %v attributes %q %s",
		st.Mode, st.Uid, st.Gid, st.Nlink, st.Mtim, st.Ctim, attrs[:max(n, 0)], text)
}

// beginning returns the beginning of a file; times reveal other changes.
func beginning(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	b := make([]byte, 20)
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return fmt.Sprintf("%q %v", b[:n], err)
}

// heard reports whether somebody connected to a socket, and resets that.
func heard(fd int) string {
	if n, _, err := unix.Recvfrom(fd, make([]byte, 64), unix.MSG_DONTWAIT); err == nil {
		return fmt.Sprintf("%d bytes", n)
	}
	conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
	if err != nil {
		return "nobody"
	}
	_ = unix.Close(conn)
	return "a connection"
}

// healthOf describes the state and limits of a process.
func healthOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err.Error()
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	alive := fields[0] != "Z" && fields[0] != "X"
	var files unix.Rlimit
	_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &files)
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, pid)
	var cpus unix.CPUSet
	_ = unix.SchedGetaffinity(pid, &cpus)
	policy, _, _ := unix.Syscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(pid), 0, 0)
	ioprio, _, _ := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
	return fmt.Sprintf("alive %v files %d nice %d processors %d scheduler %d io %d", alive, files.Cur, nice, cpus.Count(), int(policy), int(ioprio))
}

// A reply is the probe's report about an operation.
type reply struct{ Op, Outcome, Detail string }

// replyOf parses the probe's report, or describes what became of the run instead.
func replyOf(res *sandbox.Result, err error) reply {
	if ce, ok := errors.AsType[*sandbox.ConfineError](err); ok {
		return reply{Outcome: "not started", Detail: ce.Error()}
	}
	if err != nil {
		return reply{Outcome: "error", Detail: err.Error()}
	}
	var r reply
	if json.Unmarshal(res.Stdout.Bytes(), &r) == nil {
		return r
	}
	r.Detail = string(res.Stderr.Bytes())
	if r.Outcome = res.Signal; r.Outcome == "" {
		r.Outcome = fmt.Sprintf("exit %d", res.ExitCode)
	}
	return r
}
