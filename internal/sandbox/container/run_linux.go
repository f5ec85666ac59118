//go:build amd64 || arm64

package container

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/groups"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
)

// Paths of our files in a container.
const (
	helperPath = "/.packs-mcp"
	socketPath = "/.packs-mcp.sock"
)

// label marks our containers. Its value is the run's folder, which is locked while
// the server lives; see package temp.
const label = "packs-mcp.run"

// userOf returns the user of a container's processes: the server's own, without any
// capability, so that files keep their owner. The root of a rootless engine is that
// user.
func userOf(rootless bool) string {
	if rootless {
		return "0:0"
	}
	return strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())
}

// helperMemory is the helper's share of a container's memory, and helperTasks the
// most threads that it has.
const (
	helperMemory = 64 << 20
	helperTasks  = 32
)

// leastFiles is how many files the helper may have open at least. mostTasks bounds the
// user's processes on the whole machine, with those in containers; PidsLimit bounds the
// container's own.
const (
	leastFiles = 256
	mostTasks  = 16 << 10
)

// newSpec returns a container with everything but its folders.
func newSpec(p *pinned, runtime string, limits sandbox.Limits) *spec {
	s := &spec{
		Image: p.image.ID, Entrypoint: []string{helperPath, Arg}, Cmd: []string{}, User: p.user, WorkingDir: "/", Hostname: "pack",
		// The helper mostly waits, and fewer threads start sooner.
		Env: []string{"GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"},
	}
	s.Healthcheck.Test = []string{"NONE"} // run no health check of the image
	h := &s.HostConfig
	h.NetworkMode, h.IpcMode, h.CgroupnsMode = "none", "private", "private"
	h.ReadonlyRootfs, h.CapDrop, h.SecurityOpt = true, []string{"ALL"}, []string{"no-new-privileges"}
	h.PidsLimit = int64(limits.Processes) + helperTasks
	h.Memory = limits.Memory + helperMemory
	h.MemorySwap = h.Memory // no more than that
	h.ShmSize = limits.Workspace
	h.Tmpfs = map[string]string{"/tmp": "rw,nosuid,nodev,mode=1777,size=" + strconv.FormatInt(limits.Workspace, 10)}
	h.LogConfig.Type = "none"
	h.Runtime = runtime
	// The helper sets the program's own limits. Without these, an engine asks for more
	// than it may have itself where it runs in a container.
	files := max(int64(limits.OpenFiles), leastFiles)
	h.Ulimits = []ulimit{{"nofile", files, files}, {"nproc", mostTasks, mostTasks}}
	return s
}

// together gives all processes of the container together the bounds of t.
func (s *spec) together(t sandbox.Together) {
	h := &s.HostConfig
	if t.Memory > 0 {
		h.Memory = t.Memory + helperMemory
		h.MemorySwap = h.Memory
	}
	h.NanoCpus = int64(t.Processors) * oneProcessor
}

// oneProcessor is what the API calls all of a processor's time.
const oneProcessor = 1_000_000_000

// terms returns a digest of the settings that every run asks of the engine, besides the
// run's Policy. Answers are bound to it.
func terms() string {
	s := newSpec(&pinned{image: &image{}}, "", sandbox.Limits{})
	text, _ := json.Marshal(s)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// bind gives the container a folder or file at a path.
func (s *spec) bind(from, at string, writable bool) {
	m := mount{Type: "bind", Source: from, Target: at, ReadOnly: !writable}
	m.BindOptions.Propagation = "rprivate"
	for i := range s.HostConfig.Mounts {
		if have := &s.HostConfig.Mounts[i]; have.Target == at {
			have.ReadOnly = have.ReadOnly && m.ReadOnly
			return
		}
	}
	s.HostConfig.Mounts = append(s.HostConfig.Mounts, m)
}

// errSocket is the reason for not giving a folder to a run.
var errSocket = errors.New("it holds the container engine's socket, by which a program could do anything")

// check returns an error if a mount would give a program access to the engine, or would
// hide a part of the container that we rely on.
func (s *System) check(c *spec) error {
	socket := paths.Spellings([]string{s.o.Socket})
	for _, m := range c.HostConfig.Mounts {
		for _, at := range socket {
			if paths.Inside([]string{m.Source}, at) {
				return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("folder %q", m.Source), Err: errSocket}
			}
		}
		for _, own := range []string{"/proc", "/sys", "/dev", helperPath, socketPath} {
			if m.Target != helperPath && m.Target != socketPath && (paths.Inside([]string{m.Target}, own) || paths.Inside([]string{own}, m.Target)) {
				return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("folder %q cannot be in a container, which has its own", m.Target)}
			}
		}
		// Podman turns the mount into an option, so a comma in a name could add a folder of
		// the attacker's choice.
		for _, path := range []string{m.Source, m.Target} {
			if strings.ContainsAny(path, ":,\"\r\n") {
				return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("folder %q has a colon, a comma, a quote or a line break in its path, which the container engine would misread", path)}
			}
		}
	}
	return nil
}

// connectTime bounds how long the helper may take to connect after its container was
// started.
const connectTime = 30 * time.Second

// helper returns the path of this program, if a container can start it.
func helper() (string, error) {
	exe, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("finding this program, which a newer one may have replaced; restart it: %w", err)
	}
	f, err := elf.Open(exe)
	if err != nil {
		return "", fmt.Errorf("looking at this program: %w", err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", errors.New("this packs-mcp needs the system's C library, which a container may not have; build it with CGO_ENABLED=0")
	}
	return exe, nil
}

// A box is a container with a connected helper.
type box struct {
	system *System
	pinned *pinned
	id     string
	folder *temp.Folder
	kernel kernel // of this machine, by the file that the container has as helperPath
	conn   *net.UnixConn
	pid    int              // of the helper, as this process sees it; 0: not visible
	pidfd  int              // of the same; -1: there is none
	limits map[string]int64 // :: controller → bound of the same, as this process sees it
	memory *groups.Watch    // of the same; nil: not visible
	once   sync.Once
}

// launch makes and starts the container c, and returns when its helper is connected.
func (s *System) launch(ctx context.Context, p *pinned, c *spec) (_ *box, err error) {
	exe, err := helper()
	if err != nil {
		return nil, err
	}
	folder, err := temp.New("")
	if err != nil {
		return nil, err
	}
	b := &box{system: s, pinned: p, folder: folder, pidfd: -1}
	defer func() {
		if err != nil {
			b.discard()
		}
	}()
	b.kernel = kernelAt(exe)
	dir, err := filepath.EvalSymlinks(folder.Path)
	if err != nil {
		return nil, err
	}
	listener, err := listen(dir)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	c.bind(exe, helperPath, false)
	c.bind(filepath.Join(dir, socketName), socketPath, false)
	c.Labels = map[string]string{label: dir}
	if err := s.check(c); err != nil {
		return nil, err
	}
	if b.id, err = s.engine.create(ctx, p.about, c); err != nil {
		return nil, err
	}
	made, err := s.engine.inspect(ctx, p.about, b.id)
	if err != nil {
		return nil, err
	}
	if "sha256:"+strings.TrimPrefix(made.Image, "sha256:") != p.image.ID {
		return nil, fmt.Errorf("the container engine made a container of the image %s, and not of %s", made.Image, p.image.ID)
	}
	if want := s.o.Runtime; want != "" {
		switch is, err := s.engine.runtime(ctx, p.about, b.id, made); {
		case err != nil:
			return nil, err
		case is != want:
			return nil, fmt.Errorf("the container engine took the runtime %q, and not %q; Podman's is an option of its service: podman --runtime %s system service", is, want, want)
		}
	}
	if err := s.engine.start(ctx, p.about, b.id); err != nil {
		return nil, err
	}
	if b.conn, err = b.accept(ctx, listener); err != nil {
		return nil, b.unconnected(err)
	}
	return b, b.identify()
}

// socketName is the name of the socket in a run's folder.
const socketName = "s"

// listen returns the listener for one helper. The path of a socket may be too long for
// the kernel, so it is named by the descriptor of its folder.
func listen(dir string) (*net.UnixListener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	at := "/proc/self/fd/" + strconv.Itoa(int(d.Fd())) + "/" + socketName
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the folder is removed
	return l, os.Chmod(filepath.Join(dir, socketName), 0o600)
}

// accept returns the helper's connection. It returns an error at once when the
// container ends without one.
func (b *box) accept(ctx context.Context, l *net.UnixListener) (*net.UnixConn, error) {
	_ = l.SetDeadline(time.Now().Add(connectTime))
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		_ = b.system.engine.wait(ctx, b.pinned.about, b.id) // an error counts as the end, too
		_ = l.SetDeadline(time.Now())
	})
	return l.AcceptUnix()
}

// unconnected says why no helper connected.
func (b *box) unconnected(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	s, problem := b.system.engine.inspect(ctx, b.pinned.about, b.id)
	if problem != nil {
		return errors.Join(err, problem)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("packs-mcp could not start in it, or not connect")
	}
	return fmt.Errorf("%w; the container is %s, with status %d %s", err, s.State.Status, s.State.ExitCode, s.State.Error)
}

// identify records the helper's process, so that it can be killed without the engine.
func (b *box) identify() error {
	cred, err := peer(b.conn)
	if err != nil || cred.Pid <= 1 {
		return err // of another PID namespace: the engine alone can kill it
	}
	fd, err := unix.PidfdOpen(int(cred.Pid), 0)
	if err != nil {
		return fmt.Errorf("the container's first process ended at once: %w", err)
	}
	b.pid, b.pidfd = int(cred.Pid), fd
	// It waits for a request, so it is alive.
	b.limits, b.memory = limitsOf(b.pid), groups.WatchFolders(groupsOf(b.pid, "memory")...)
	return nil
}

// gone waits until the helper, and with it everything in its container, has ended.
func (b *box) gone(d time.Duration) bool {
	if b.pidfd < 0 {
		return false
	}
	for until := time.Now().Add(d); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(b.pidfd), Events: unix.POLLIN}}, int(max(time.Until(until), 0)/time.Millisecond))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

// outOfMemory ends the container, and reports whether the engine says that memory ran out
// in it. If the engine is away, nobody knows. Not every engine notices it with version 1 of
// control groups; see running.full.
func (b *box) outOfMemory() bool {
	b.kill()
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	if b.system.engine.wait(ctx, b.pinned.about, b.id) != nil {
		return false
	}
	s, err := b.system.engine.inspect(ctx, b.pinned.about, b.id)
	return err == nil && s.State.OOMKilled
}

// kill ends the container at once.
func (b *box) kill() {
	if b.pidfd >= 0 {
		_ = unix.PidfdSendSignal(b.pidfd, unix.SIGKILL, nil, 0)
	}
}

// discard ends the container, and removes it with everything of the run.
func (b *box) discard() {
	b.once.Do(func() {
		if b.conn != nil {
			_ = b.conn.Close()
		}
		b.kill()
		if b.id != "" {
			ctx, cancel := context.WithTimeout(context.Background(), callTime)
			defer cancel()
			if err := b.remove(ctx); err != nil {
				b.system.o.Logger.Warn("a container is left; the next start removes it", "container", b.id, "err", err)
			}
		}
		if b.pidfd >= 0 {
			b.gone(callTime)
			_ = unix.Close(b.pidfd)
		}
		if err := b.folder.Remove(); err != nil {
			b.system.o.Logger.Warn("a run's temporary folder is left", "dir", b.folder.Path, "err", err)
		}
	})
}

// removeTries is how often the removal of a container is tried: Podman refuses it until it
// has noticed that the container ended.
const removeTries = 20

// remove removes the container once it has ended.
func (b *box) remove(ctx context.Context) error {
	e, a := b.system.engine, b.pinned.about
	for try := 1; ; try++ {
		if b.pidfd >= 0 {
			_ = e.wait(ctx, a, b.id)
		}
		err := e.remove(ctx, a, b.id)
		if !isStatus(err, http.StatusInternalServerError) || try == removeTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Sweep removes the containers of killed servers, which ended with these. A running
// container has a server, even if its folder cannot be seen from here.
func (s *System) Sweep() {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	a, err := s.engine.about(ctx)
	if err != nil {
		return // a run that needs a container gets the error
	}
	all, err := s.engine.ended(ctx, a, label)
	for id, folder := range all {
		if temp.InUse(folder) {
			continue
		}
		if e := s.engine.remove(ctx, a, id); e != nil {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		s.o.Logger.Log(ctx, slog.LevelWarn, "what an earlier server left in containers is not all removed", "err", err)
	}
}

// line returns v as one line.
func line(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append(text, '\n'), err
}

// writeLine sends v as one line.
func writeLine(conn *net.UnixConn, v any) error {
	text, err := line(v)
	if err == nil {
		_, err = conn.Write(text)
	}
	return err
}

// maxLine bounds a line of the helper's.
const maxLine = 1 << 20

// readLine reads one line into v, and not a byte more: what follows is for others.
func readLine(read func([]byte) (int, error), v any) error {
	var line bytes.Buffer
	for b := make([]byte, 1); ; {
		n, err := read(b)
		switch {
		case err != nil:
			return err
		case n == 0:
			return errors.New("it ends too early")
		case b[0] == '\n':
			return json.Unmarshal(line.Bytes(), v)
		case line.Len() >= maxLine:
			return errors.New("it is too long")
		}
		line.WriteByte(b[0])
	}
}
