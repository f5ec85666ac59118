//go:build linux && (amd64 || arm64)

package linux

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/images"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// What Landlock is asked to allow. Nobody may make devices.
const (
	accessRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

	accessWrite = accessRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO

	accessDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// accessFile are the rights that a file has; with others, a rule for one is
	// refused.
	accessFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// devices are those that every program may use. A program has no controlling
// terminal but one that it made itself.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
}

// job writes down what the helper needs to know.
func (s *confiner) job(l *level.Launch) (*confine.Job, error) {
	c, policy := l.Command, l.Policy
	if policy.Network == sandbox.NetworkLoopback && !s.namespaces {
		return nil, &sandbox.ConfineError{Level: s.level, Step: "giving the program a loopback network of its own",
			Err: errors.New("that takes level full")}
	}
	limits := policy.Limits
	j := &confine.Job{
		Path: l.Argv[0], Args: l.Argv[1:], Env: l.Env,
		Namespaces: s.namespaces, HostNet: policy.Network == sandbox.NetworkFull, Loopback: policy.Network == sandbox.NetworkLoopback,
		TmpSize: limits.Workspace, Layer: confine.Room{Bytes: limits.Layer, Names: int64(limits.LayerNames)},
		Limits: confine.Limits{
			CPU: int64((limits.CPU + time.Second - 1) / time.Second), Data: limits.Memory,
			Processes: int64(limits.Processes), Files: int64(limits.OpenFiles), FileSize: limits.FileSize,
		},
		Filter: confine.Filter{Alone: !s.namespaces, NoScope: s.landlock < 6},
	}
	if s.noListener != nil {
		j.Filter.NoListener, j.Filter.Piece = true, pieceOf(limits)
	}
	if os.Getuid() == 0 {
		// The kernel's own limit on processes is not for root.
		j.Group = confine.GroupName + rand.Text()
	}
	switch {
	case policy.Network == sandbox.NetworkNone:
	case !s.opensSockets(l):
		j.Filter.Network = confine.NetworkInternet
	default:
		j.Filter.Network = confine.NetworkLocal
	}
	if j.Filter.Alone && j.Filter.NoScope {
		j.Filter.Keep = []int64{int64(os.Getpid()), int64(unix.Getpgrp()), int64(os.Getppid())}
	}
	t := view{confined: s, job: j, images: l.Images}
	t.system(policy.Network)
	for _, path := range c.Program.Needs {
		t.add(path, false, true)
	}
	for _, l := range slices.Concat(c.Program.Links, policy.Links) {
		t.link(l.Path, l.Target)
	}
	for _, path := range policy.ReadOnly {
		if !l.Images.Covers(path) { // what is there instead is added below
			t.add(path, false, false)
		}
	}
	for _, path := range policy.Writable {
		t.add(path, true, false)
	}
	for _, f := range l.Overlays {
		t.layer(f)
	}
	for _, i := range l.Images {
		t.show(i)
	}
	if !s.namespaces {
		t.add(l.Tmp, true, false)
	}
	if t.missing != "" {
		return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("folder %q", t.missing), Err: fs.ErrNotExist}
	}
	if !t.reaches(c.Dir) {
		return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q is in none of the folders that the run may read", c.Dir)}
	}
	if !s.namespaces {
		j.Env = t.withoutHidden(l.Env)
	}
	if l.Images.Covers(c.Dir) {
		j.Dir = c.Dir // in the image, where it was looked at, no link leads there
	} else {
		var err error
		if j.Dir, err = filepath.EvalSymlinks(c.Dir); err != nil {
			return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: err}
		}
		j.DirID = confineID(c.DirID)
	}
	files := c.Program.Files() // where the run finds them, in the order of Verify
	for i, f := range l.Checked {
		path := files[i]
		resolved, err := filepath.EvalSymlinks(path)
		j.Files = append(j.Files, confine.File{
			Path: path, State: stateOf(f.Stamp), System: err == nil && paths.Inside(paths.SystemDirs(), resolved) && !l.Images.Covers(path),
		})
	}
	if c.WorkspaceID != nil && !l.Images.Covers(c.Workspace) {
		t.identify(c.Workspace, confineID(c.WorkspaceID))
	}
	if l.Cache != nil {
		t.identify(policy.Cache, confineID(l.Cache))
	}
	t.finish()
	return j, nil
}

// pieceOf returns how many bytes of shared memory without a file a mapping may
// have when nobody counts them: so many that all the processes that a run may
// have can have one.
func pieceOf(limits sandbox.Limits) int64 {
	if limits.Memory <= 0 {
		return 0
	}
	return max(limits.Memory/max(int64(limits.Processes), 1), int64(os.Getpagesize()))
}

// opensSockets reports whether a run may use unix sockets that have names. It
// must not reach those of other programs. Landlock sees to that from ABI 9 on;
// before, it may when other programs have none in what the run sees. A program's
// own installation counts, and so does whatever the user's projects are.
func (s *confiner) opensSockets(l *level.Launch) bool {
	if !s.namespaces || s.landlock < 6 && l.Policy.Network == sandbox.NetworkFull { // abstract names are the network's
		return false
	}
	if s.landlock >= 9 {
		return true
	}
	for _, path := range slices.Concat(l.Command.Program.Needs, l.Policy.ReadOnly, l.Policy.Writable, l.Policy.LayerFolders()) {
		if !l.Images.Covers(path) && !slices.Contains(l.Policy.Private, path) && !inSystem(path) && !isFile(path) {
			return false
		}
	}
	return true
}

// inSystem reports whether a path leads to a folder of the system's.
func inSystem(path string) bool {
	resolved, err := filepath.EvalSymlinks(path)
	return err == nil && paths.Inside(paths.SystemDirs(), resolved)
}

// A view collects what a run can reach.
type view struct {
	confined *confiner
	job      *confine.Job
	images   images.List
	missing  string // the first path that must be there and is not
}

// system adds what every program needs of the system.
func (t *view) system(network sandbox.Network) {
	for _, dir := range paths.SystemDirs() {
		t.add(dir, false, true)
	}
	if target, err := os.Readlink("/run/current-system"); err == nil { // NixOS
		t.link("/run/current-system", target)
	}
	t.add("/sys/devices/system/cpu", false, true)
	if network == sandbox.NetworkFull {
		// It is often a link to a file that a service keeps elsewhere.
		t.add("/etc/resolv.conf", false, true)
	}
	j := t.job
	for _, path := range devices() {
		access := uint64(accessDevice)
		if path == "/dev/zero" && t.confined.noListener != nil {
			// A shared mapping of what was opened to write is memory that the filter
			// does not see. No mount keeps a device from being opened so.
			if t.confined.landlock == 0 {
				continue
			}
			access = unix.LANDLOCK_ACCESS_FS_READ_FILE
		}
		j.Binds = append(j.Binds, confine.Bind{Path: path, File: true, Device: true, Optional: true})
		t.allow(path, access)
	}
	for _, l := range [][2]string{{"fd", "/proc/self/fd"}, {"stdin", "fd/0"}, {"stdout", "fd/1"}, {"stderr", "fd/2"}} {
		t.link("/dev/"+l[0], l[1])
	}
	t.link("/dev/ptmx", "pts/ptmx")
	t.link("/var/tmp", "/tmp")
	t.link("/var/run", "/run")
	t.allow("/proc", accessRead)
	t.allow("/dev/shm", accessWrite)
	if t.confined.namespaces {
		t.allow("/", unix.LANDLOCK_ACCESS_FS_READ_DIR)
		t.allow("/tmp", accessWrite)
		t.allow("/dev/pts", accessDevice|unix.LANDLOCK_ACCESS_FS_READ_DIR)
	}
}

// add makes what is at path, and where it leads to, reachable at the same
// paths.
func (t *view) add(path string, writable, optional bool) {
	stops, links := paths.Trail(path)
	if len(stops) == 0 {
		if !optional && t.missing == "" {
			t.missing = path
		}
		return
	}
	for _, l := range links {
		t.link(l.Path, l.Target)
	}
	end := stops[len(stops)-1]
	if t.images.Covers(end) {
		return // only the image is to be there
	}
	info, err := os.Lstat(end)
	if err != nil {
		return
	}
	b := confine.Bind{Path: end, Writable: writable, File: !info.IsDir(), Optional: optional}
	if i := slices.IndexFunc(t.job.Binds, func(have confine.Bind) bool { return have.Path == end }); i >= 0 {
		t.job.Binds[i].Writable = t.job.Binds[i].Writable || writable
		t.job.Binds[i].Optional = t.job.Binds[i].Optional && optional
	} else {
		t.job.Binds = append(t.job.Binds, b)
	}
	access := uint64(accessRead)
	if writable {
		access = accessWrite
	}
	if b.File {
		access &= accessFile
	}
	if end == "/etc" && os.Getuid() == 0 {
		t.job.Landlock.Rules = append(t.job.Landlock.Rules, t.confined.etc.rules(end)...)
		return
	}
	t.allow(end, access)
}

// show puts an image in its place, after everything that it is in. Without
// mounts, its From is among what the run may read.
func (t *view) show(i images.Image) {
	if !t.confined.namespaces {
		return
	}
	file := isFile(i.From)
	t.job.Binds = append(t.job.Binds, confine.Bind{Path: i.At, From: i.From, File: file, Writable: i.Writable})
	access := uint64(accessRead)
	if i.Writable {
		access = accessWrite
	}
	if file {
		access &= accessFile
	}
	t.allow(i.At, access)
}

// layer makes what is at a folder changeable, without the folder being changed.
func (t *view) layer(f level.Folder) {
	t.add(f.Path, true, false)
	i := slices.IndexFunc(t.job.Binds, func(b confine.Bind) bool { return b.Path == f.Path })
	if i < 0 {
		t.missing = f.Path // a link by now, or gone
		return
	}
	t.job.Binds[i].Layered = true
	t.identify(f.Path, confineID(f.Info))
}

func (t *view) link(path, target string) {
	t.job.Links = append(t.job.Links, confine.Link{Path: path, Target: target})
}

func (t *view) allow(path string, access uint64) {
	t.job.Landlock.Rules = append(t.job.Landlock.Rules, confine.Rule{Path: path, Access: access})
}

// reaches reports whether something that was added holds dir.
func (t *view) reaches(dir string) bool {
	if t.images.Covers(dir) {
		return t.confined.namespaces
	}
	resolved, err := filepath.EvalSymlinks(dir)
	return err == nil && (resolved == "/" || slices.ContainsFunc(t.job.Binds, func(b confine.Bind) bool {
		return paths.Inside([]string{b.Path}, resolved)
	}))
}

// withoutHidden leaves those folders off PATH that cannot be reached. They can
// be looked into without namespaces, though nothing in them can be started, and
// a shell takes the first program that it sees.
func (t *view) withoutHidden(env []string) []string {
	env = slices.Clone(env)
	for i, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !t.reaches(dir) })
			env[i] = "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))
		}
	}
	return env
}

// identify says which folder must be at a path.
func (t *view) identify(path string, id confine.ID) {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	for i := range t.job.Binds {
		if t.job.Binds[i].Path == path {
			t.job.Binds[i].ID = id
		}
	}
	for i := range t.job.Landlock.Rules {
		// What a layer shows of a folder is another one, by its numbers.
		if t.job.Landlock.Rules[i].Path == path && !t.layered(path) {
			t.job.Landlock.Rules[i].ID = id
		}
	}
}

// layered reports whether path is in a layered folder.
func (t *view) layered(path string) bool {
	return slices.ContainsFunc(t.job.Binds, func(b confine.Bind) bool {
		return b.Layered && paths.Inside([]string{b.Path}, path)
	})
}

// finish puts everything in order, and leaves out what the kernel does not know
// or the level does not use.
func (t *view) finish() {
	j := t.job
	slices.SortStableFunc(j.Binds, func(a, b confine.Bind) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(j.Links, func(a, b confine.Link) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Target, b.Target))
	})
	j.Links = slices.Compact(j.Links)
	// A link inside of something that is bound is there already; one on the way
	// to something that is bound is no link on this machine.
	j.Links = slices.DeleteFunc(j.Links, func(l confine.Link) bool {
		return slices.ContainsFunc(j.Binds, func(b confine.Bind) bool {
			return !b.File && paths.Inside([]string{b.Path}, l.Path) || paths.Inside([]string{l.Path}, b.Path)
		})
	})
	if !t.confined.namespaces {
		j.Binds, j.Links = nil, nil
	}
	abi := t.confined.landlock
	if abi == 0 {
		j.Landlock = confine.Ruleset{}
		return
	}
	const first = 1<<13 - 1 // EXECUTE to MAKE_SYM, of ABI 1
	r := &j.Landlock
	r.FS = first
	for _, later := range []struct {
		abi    int
		fs     uint64
		net    uint64
		scoped uint64
	}{
		{abi: 2, fs: unix.LANDLOCK_ACCESS_FS_REFER},
		{abi: 3, fs: unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{abi: 4, net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		{abi: 5, fs: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{abi: 6, scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
		{abi: 9, fs: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
		{abi: 10, net: unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP},
	} {
		if abi < later.abi {
			break
		}
		r.FS |= later.fs
		r.Scoped |= later.scoped
		if j.Filter.Network == confine.NetworkNone {
			r.Net |= later.net
		}
	}
}

// stateOf is what the kernel says of a file with that stamp; nothing when the
// stamp could be another file's.
func stateOf(s paths.Stamp) confine.State {
	if !s.Exact {
		return confine.State{}
	}
	return confine.State{
		ID: idOfNumbers(s.Dev, s.Ino), Size: uint64(s.Size),
		Seconds: uint64(s.Changed.Unix()), Nanoseconds: uint64(s.Changed.Nanosecond()),
	}
}

func idOfNumbers(dev, ino uint64) confine.ID {
	return confine.ID{Dev: uint64(unix.Major(dev))<<32 | uint64(unix.Minor(dev)), Ino: ino}
}

func confineID(info os.FileInfo) confine.ID {
	if info == nil {
		return confine.ID{}
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return confine.ID{}
	}
	return idOfNumbers(uint64(st.Dev), st.Ino)
}

// isFile reports whether there is something at path that is no folder.
func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir()
}
