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

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/images"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/supervised"
)

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
		if !t.images.Covers(path) { // the image is added below
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

// check returns an error if a required path does not exist or the working folder
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

// enter sets the working folder and its expected identity.
func (t *view) enter(c *sandbox.Command) (err error) {
	if t.images.Covers(c.Dir) {
		t.job.Dir = c.Dir // already checked in the image, where no link leads to it
		return nil
	}
	if t.job.Dir, err = filepath.EvalSymlinks(c.Dir); err != nil {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: err}
	}
	t.job.DirID = supervised.IDOf(c.DirID)
	return nil
}

// pin records the checked identities of the program's files, the workspace and the
// cache. The helper starts nothing if one of them has changed.
func (t *view) pin(l *level.Launch) {
	c := l.Command
	files := c.Program.Files() // as the run finds them, in the order of Verify
	for i, f := range l.Checked {
		path := files[i]
		t.job.Files = append(t.job.Files, confine.File{
			Path: path, State: supervised.StateOf(f.Stamp), System: inSystem(path) && !t.images.Covers(path),
		})
	}
	if c.WorkspaceID != nil && !t.images.Covers(c.Workspace) {
		t.identify(c.Workspace, supervised.IDOf(c.WorkspaceID))
	}
	if l.Cache != nil {
		t.identify(l.Policy.Cache, supervised.IDOf(l.Cache))
	}
}

// system adds the parts of the system that every program needs.
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
	for _, path := range supervised.Devices() {
		access := uint64(supervised.AccessDevice)
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
	t.allow("/proc", supervised.AccessRead)
	t.allow("/dev/shm", supervised.AccessWrite)
	if t.confined.namespaces {
		t.allow("/", unix.LANDLOCK_ACCESS_FS_READ_DIR)
		t.allow("/tmp", supervised.AccessWrite)
		t.allow("/dev/pts", supervised.AccessDevice|unix.LANDLOCK_ACCESS_FS_READ_DIR)
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
	access := uint64(supervised.AccessRead)
	if writable {
		access = supervised.AccessWrite
	}
	if b.File {
		access &= supervised.AccessFile
	}
	if end == "/etc" && os.Getuid() == 0 {
		t.job.Landlock.Rules = append(t.job.Landlock.Rules, t.confined.etc.rules(end)...)
		return
	}
	t.allow(end, access)
}

// show mounts an image at its place, after the folders that it is in. Without mounts,
// the run may read its From.
func (t *view) show(i images.Image) {
	if !t.confined.namespaces {
		return
	}
	file := isFile(i.From)
	t.job.Binds = append(t.job.Binds, confine.Bind{Path: i.At, From: i.From, File: file, Writable: i.Writable})
	access := uint64(supervised.AccessRead)
	if i.Writable {
		access = supervised.AccessWrite
	}
	if file {
		access &= supervised.AccessFile
	}
	t.allow(i.At, access)
}

// layer makes a folder's contents writable without changing the folder itself.
func (t *view) layer(f level.Folder) {
	t.add(f.Path, true, false)
	i := slices.IndexFunc(t.job.Binds, func(b confine.Bind) bool { return b.Path == f.Path })
	if i < 0 {
		t.missing = f.Path // it is gone, or a link now
		return
	}
	t.job.Binds[i].Layered = true
	t.identify(f.Path, supervised.IDOf(f.Info))
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

// identify sets the expected identity of the folder at path.
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

// isFile reports whether path exists and is not a folder.
func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir()
}
