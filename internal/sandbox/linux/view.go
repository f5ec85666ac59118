//go:build linux && (amd64 || arm64)

package linux

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/seccomp"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/images"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// Access rights that Landlock is asked to allow. None of them makes devices.
const (
	accessRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

	accessWrite = accessRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO

	accessDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// accessFile are the rights that apply to files. The kernel refuses a rule for a
	// file that has others.
	accessFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// devices returns the devices that every program may use. /dev/tty is safe: a program
// has no controlling terminal unless it made one itself.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
}

// A view collects what a run can reach.
type view struct {
	confined *confiner
	job      *confine.Job
	images   images.List
	missing  string // the first required path that does not exist
}

// fill adds everything that l lets its program reach.
func (t *view) fill(l *level.Launch) {
	t.system(l.Policy.Network)
	for _, path := range l.Command.Program.Needs {
		t.add(path, false, true)
	}
	for _, link := range slices.Concat(l.Command.Program.Links, l.Policy.Links) {
		t.link(link.Path, link.Target)
	}
	for _, path := range l.Policy.ReadOnly {
		if !t.images.Covers(path) { // what is there instead is added below
			t.add(path, false, false)
		}
	}
	for _, path := range l.Policy.Writable {
		t.add(path, true, false)
	}
	for _, f := range l.Overlays {
		t.layer(f)
	}
	for _, i := range t.images {
		t.show(i)
	}
	if !t.confined.namespaces {
		t.add(l.Tmp, true, false)
	}
}

// check returns an error if a required path does not exist, or if the working folder
// cannot be reached.
func (t *view) check(dir string) error {
	if t.missing != "" {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("folder %q", t.missing), Err: fs.ErrNotExist}
	}
	if !t.reaches(dir) {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q is in none of the folders that the run may read", dir)}
	}
	return nil
}

// enter sets the working folder, and which folder it must be.
func (t *view) enter(c *sandbox.Command) (err error) {
	if t.images.Covers(c.Dir) {
		t.job.Dir = c.Dir // it was checked in the image, where no link leads to it
		return nil
	}
	if t.job.Dir, err = filepath.EvalSymlinks(c.Dir); err != nil {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: err}
	}
	t.job.DirID = confineID(c.DirID)
	return nil
}

// pin records the identity of the program's files, the workspace and the cache as they
// were checked. The helper starts nothing if one of them has changed.
func (t *view) pin(l *level.Launch) {
	c := l.Command
	files := c.Program.Files() // where the run finds them, in the order of Verify
	for i, f := range l.Checked {
		path := files[i]
		t.job.Files = append(t.job.Files, confine.File{
			Path: path, State: stateOf(f.Stamp), System: inSystem(path) && !t.images.Covers(path),
		})
	}
	if c.WorkspaceID != nil && !t.images.Covers(c.Workspace) {
		t.identify(c.Workspace, confineID(c.WorkspaceID))
	}
	if l.Cache != nil {
		t.identify(l.Policy.Cache, confineID(l.Cache))
	}
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
			// A writable shared mapping of it is memory that the filter does not see. A
			// read-only mount does not keep a device from being opened for writing.
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

// add makes path, and what its links lead to, reachable at the same paths.
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
		return // only the image may be there
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

// layer makes a folder's contents writable without changing the folder itself.
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

// reaches reports whether dir is in something that was added.
func (t *view) reaches(dir string) bool {
	if t.images.Covers(dir) {
		return t.confined.namespaces
	}
	resolved, err := filepath.EvalSymlinks(dir)
	return err == nil && (resolved == "/" || slices.ContainsFunc(t.job.Binds, func(b confine.Bind) bool {
		return paths.Inside([]string{b.Path}, resolved)
	}))
}

// withoutHidden returns env with the unreachable folders removed from PATH. Without
// namespaces, a program can still see what is in them but start none of it, and a
// shell takes the first program that it sees.
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

// identify sets the identity that the folder at path must have.
func (t *view) identify(path string, id confine.ID) {
	path = paths.WithoutLinks(path)
	for i := range t.job.Binds {
		if t.job.Binds[i].Path == path {
			t.job.Binds[i].ID = id
		}
	}
	for i := range t.job.Landlock.Rules {
		// A folder in an overlay has other device and inode numbers.
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

// order sorts binds and links, and drops what the level does not use.
func (t *view) order() {
	j := t.job
	slices.SortStableFunc(j.Binds, func(a, b confine.Bind) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(j.Links, func(a, b confine.Link) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Target, b.Target))
	})
	j.Links = slices.Compact(j.Links)
	// A link inside something that is bound exists already. A link on the way to
	// something that is bound is not a link on this machine.
	j.Links = slices.DeleteFunc(j.Links, func(l confine.Link) bool {
		return slices.ContainsFunc(j.Binds, func(b confine.Bind) bool {
			return !b.File && paths.Inside([]string{b.Path}, l.Path) || paths.Inside([]string{l.Path}, b.Path)
		})
	})
	if !t.confined.namespaces {
		j.Binds, j.Links = nil, nil
	}
}

// restrict sets what Landlock refuses, as far as this kernel supports it.
func (t *view) restrict() {
	j := t.job
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
		if j.Filter.Network == seccomp.NetworkNone {
			r.Net |= later.net
		}
	}
}

// stateOf returns the state that the kernel reports for a file with that stamp; zero
// when the stamp could be another file's.
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

// isFile reports whether path exists and is not a folder.
func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir()
}
