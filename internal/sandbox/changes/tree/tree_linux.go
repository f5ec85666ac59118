package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Dir is an open folder. Names given to its methods are single names.
type Dir struct{ f *os.File }

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// Open opens the folder at path, and follows links on the way there.
func Open(path string) (*Dir, error) {
	f, err := os.OpenFile(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{f}, nil
}

// From returns the folder that f has open, with a handle of its own.
func From(f *os.File) (*Dir, error) { return (&Dir{f}).Sub(".") }

// File returns the handle, which the Dir owns.
func (d *Dir) File() *os.File { return d.f }

func (d *Dir) Close() error { return d.f.Close() }

func (d *Dir) fd() int { return int(d.f.Fd()) }

// again repeats do while signals interrupt it.
func again(op, name string, do func() error) error {
	for {
		err := do()
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
}

func (d *Dir) openat(name string, flags int, mode uint32) (f *os.File, err error) {
	err = again("open", name, func() error {
		fd, err := unix.Openat(d.fd(), name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
		if err == nil {
			f = os.NewFile(uintptr(fd), name)
		}
		return err
	})
	return f, err
}

// Names returns all names in the folder, sorted by their bytes.
func (d *Dir) Names() ([]string, error) {
	f, err := d.openat(".", openDir, 0) // with its own position
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func meta(st *unix.Stat_t) Meta {
	m := Meta{
		Perm: st.Mode & 0o7777, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
		Dev: uint64(st.Dev), Ino: st.Ino, Nlink: uint64(st.Nlink), UID: st.Uid, GID: st.Gid,
		Rdev: uint64(st.Rdev), Blocks: st.Blocks * 512,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m.Type = fs.ModeDir
	case unix.S_IFLNK:
		m.Type = fs.ModeSymlink
	case unix.S_IFCHR:
		m.Type = fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		m.Type = fs.ModeDevice
	case unix.S_IFIFO:
		m.Type = fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m.Type = fs.ModeSocket
	default:
		m.Type = fs.ModeIrregular
	}
	return m
}

// Stat describes the folder itself.
func (d *Dir) Stat() (Meta, error) { return StatFile(d.f) }

// StatFile describes an open file.
func StatFile(f *os.File) (Meta, error) {
	var st unix.Stat_t
	err := again("stat", f.Name(), func() error { return unix.Fstat(int(f.Fd()), &st) })
	return meta(&st), err
}

// Lstat describes the file with the name.
func (d *Dir) Lstat(name string) (Meta, error) {
	var st unix.Stat_t
	err := again("lstat", name, func() error { return unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return meta(&st), err
}

// Sub opens the folder name.
func (d *Dir) Sub(name string) (*Dir, error) {
	f, err := d.openat(name, openDir, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{f}, nil
}

// Walk opens the folder at path, which has slashes and is below d; "" and "."
// are d itself. No part of it may be a link.
func (d *Dir) Walk(path string) (*Dir, error) {
	if path == "" {
		path = "."
	}
	if !Valid(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	how := unix.OpenHow{
		Flags:   openDir,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd := -1
	for tries := 0; ; tries++ {
		var err error
		fd, err = unix.Openat2(d.fd(), path, &how)
		switch {
		case err == nil:
			return &Dir{os.NewFile(uintptr(fd), path)}, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN) && tries < 100: // a name was moved meanwhile
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // an old kernel, or a container's filter
			return d.walkEach(path)
		default:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// walkEach opens one folder after the other.
func (d *Dir) walkEach(path string) (*Dir, error) {
	at, err := d.Sub(".")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(path, "/") {
		next, err := at.Sub(name)
		_ = at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// Read opens the regular file name for reading. Its error matches [ErrNotFile]
// for anything else.
func (d *Dir) Read(name string) (*os.File, error) {
	f, err := d.openat(name, unix.O_RDONLY, 0)
	if err != nil {
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
			return nil, fmt.Errorf("%w: %w", ErrNotFile, err)
		}
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.Join(ErrNotFile, err)
	}
	return f, nil
}

// Create makes the file name with mode 0600. The name must be free.
func (d *Dir) Create(name string) (*os.File, error) {
	return d.openat(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
}

// Mkdir makes the folder name with mode 0700.
func (d *Dir) Mkdir(name string) error {
	return again("mkdir", name, func() error { return unix.Mkdirat(d.fd(), name, 0o700) })
}

func (d *Dir) Symlink(target, name string) error {
	return again("symlink", name, func() error { return unix.Symlinkat(target, d.fd(), name) })
}

func (d *Dir) Readlink(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n := 0
	err := again("readlink", name, func() (err error) {
		n, err = unix.Readlinkat(d.fd(), name, buf)
		return err
	})
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Remove removes a name that is not a folder.
func (d *Dir) Remove(name string) error {
	return again("remove", name, func() error { return unix.Unlinkat(d.fd(), name, 0) })
}

// Rmdir removes an empty folder.
func (d *Dir) Rmdir(name string) error {
	return again("rmdir", name, func() error { return unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR) })
}

// Move renames a file and never replaces another.
func (d *Dir) Move(name string, to *Dir, as string) error {
	err := again("rename", name, func() error {
		return unix.Renameat2(d.fd(), name, to.fd(), as, unix.RENAME_NOREPLACE)
	})
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// The file system lacks the flag. Linking does not replace a name either, but
	// folders cannot be linked.
	if err := again("link", name, func() error { return unix.Linkat(d.fd(), name, to.fd(), as, 0) }); err == nil {
		return d.Remove(name)
	} else if errors.Is(err, unix.EEXIST) {
		return err
	}
	if _, err := to.Lstat(as); err == nil {
		return &fs.PathError{Op: "rename", Path: as, Err: unix.EEXIST}
	}
	return again("rename", name, func() error { return unix.Renameat(d.fd(), name, to.fd(), as) })
}

// Swap exchanges two names in one step. Its error matches [ErrNoSwap] if that is not
// supported.
func (d *Dir) Swap(name string, other *Dir, otherName string) error {
	err := again("exchange", name, func() error {
		return unix.Renameat2(d.fd(), name, other.fd(), otherName, unix.RENAME_EXCHANGE)
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %w", ErrNoSwap, err)
	}
	return err
}

// Chmod changes the mode of the file with the name, which must not be a link.
func (d *Dir) Chmod(name string, perm uint32) error {
	return again("chmod", name, func() error { return unix.Fchmodat(d.fd(), name, perm, 0) })
}

// SetMtime sets the modification time of the file with the name, even of a link.
func (d *Dir) SetMtime(name string, mtime int64) error {
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(mtime)}
	return again("utimes", name, func() error { return unix.UtimesNanoAt(d.fd(), name, ts, unix.AT_SYMLINK_NOFOLLOW) })
}

// Sync makes the folder's names survive a power failure.
func (d *Dir) Sync() error {
	err := d.f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EROFS) { // not supported by this file system
		return nil
	}
	return err
}

// KeepOwner gives f the owner and group of m, as far as the system allows.
func KeepOwner(f *os.File, m *Meta) {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Uid == m.UID && st.Gid == m.GID {
		return
	}
	if unix.Fchown(int(f.Fd()), int(m.UID), int(m.GID)) != nil {
		_ = unix.Fchown(int(f.Fd()), -1, int(m.GID))
	}
}

// Moment returns a time of change that is later than those of all changes to
// the folder's file system so far, and not later than those of any to come. It
// leaves no name behind.
func (d *Dir) Moment() (int64, error) {
	f, err := d.openat(".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	if err != nil {
		const name = ".packs-mcp-moment"
		_ = d.Remove(name)
		if f, err = d.Create(name); err != nil {
			return 0, err
		}
		defer d.Remove(name)
	}
	defer f.Close()
	return Moment(f)
}

// Moment does the same as [Dir.Moment] for the file system of f, by changing the time
// of change of f, which the caller owns.
func Moment(f *os.File) (int64, error) {
	// If times of change are those of the kernel's last tick, there may be changes with
	// that time already, so wait for the next tick. Newer kernels give a finer time at
	// once to a file whose time was read.
	err := f.Chmod(0o600)
	if err != nil {
		return 0, err
	}
	first, err := StatFile(f)
	for deadline := time.Now().Add(20 * time.Millisecond); err == nil; {
		if err = f.Chmod(0o600); err != nil {
			break
		}
		var now Meta
		now, err = StatFile(f)
		if now.Ctime > first.Ctime || time.Now().After(deadline) {
			return now.Ctime, err
		}
		time.Sleep(200 * time.Microsecond)
	}
	return 0, err
}

// ReadAttrs returns the user attributes and access control lists of an open file or
// folder; nil if there are none.
func ReadAttrs(f *os.File) (Attrs, error) {
	fd := int(f.Fd())
	var names []byte
	for size := 1 << 10; ; {
		names = make([]byte, size)
		n, err := unix.Flistxattr(fd, names)
		switch {
		case err == nil:
			names = names[:n]
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ERANGE) && size < 1<<20:
			size *= 4
			continue
		case errors.Is(err, unix.ENOTSUP):
			return nil, nil
		default:
			return nil, &fs.PathError{Op: "listxattr", Path: f.Name(), Err: err}
		}
		break
	}
	var attrs Attrs
	for name := range strings.SplitSeq(string(names), "\x00") {
		if !keptAttr(name) {
			continue
		}
		value := make([]byte, 64<<10) // the kernel's limit
		n := 0
		err := again("getxattr", f.Name(), func() (err error) {
			n, err = unix.Fgetxattr(fd, name, value)
			return err
		})
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if attrs == nil {
			attrs = Attrs{}
		}
		attrs[name] = slices.Clone(value[:n])
	}
	return attrs, nil
}

func keptAttr(name string) bool {
	return strings.HasPrefix(name, "user.") || name == "system.posix_acl_access" || name == "system.posix_acl_default"
}

// WriteAttrs gives an open file or folder exactly these attributes, except an
// overlay's own, which are neither written nor removed. lost reports whether the file
// system rejects some of them.
func WriteAttrs(f *os.File, want Attrs) (lost bool, err error) {
	have, err := ReadAttrs(f)
	if err != nil {
		return false, err
	}
	for name := range have {
		if _, ok := want[name]; ok || strings.HasPrefix(name, overlayAttr) {
			continue
		}
		err := again("removexattr", f.Name(), func() error { return unix.Fremovexattr(int(f.Fd()), name) })
		if err != nil && !errors.Is(err, unix.ENODATA) {
			return lost, err
		}
	}
	for name, value := range want {
		if v, ok := have[name]; ok && string(v) == string(value) || strings.HasPrefix(name, overlayAttr) {
			continue
		}
		err := again("setxattr", f.Name(), func() error { return unix.Fsetxattr(int(f.Fd()), name, value, 0) })
		if errors.Is(err, unix.ENOTSUP) {
			lost = true
		} else if err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// SetPerm sets permissions and the sticky bit of an open file or folder. A folder's
// set-group-ID bit, which makes files inherit its group, stays.
func SetPerm(f *os.File, perm uint32) error {
	m, err := StatFile(f)
	if err != nil {
		return err
	}
	perm &= 0o1777
	if m.IsDir() {
		perm |= m.Perm & SetGID
	}
	return again("chmod", f.Name(), func() error { return unix.Fchmod(int(f.Fd()), perm) })
}

// Inherit gives the named file what it would have got if it had been made in folder:
// if folder has the set-group-ID bit, its group and, for a folder, that bit.
func (d *Dir) Inherit(name string, folder *Dir) error {
	parent, err := folder.Stat()
	if err != nil || parent.Perm&SetGID == 0 {
		return err
	}
	m, err := d.Lstat(name)
	if err != nil {
		return err
	}
	if m.GID != parent.GID {
		err := again("chown", name, func() error {
			return unix.Fchownat(d.fd(), name, -1, int(parent.GID), unix.AT_SYMLINK_NOFOLLOW)
		})
		if errors.Is(err, unix.EPERM) { // we are not in that group
			return nil
		}
		if err != nil {
			return err
		}
	}
	if m.IsDir() {
		return d.Chmod(name, m.Perm|SetGID)
	}
	return nil
}

// Clone makes the empty file to share the blocks of from. Its error matches
// [ErrNoClone] if that is not supported.
func Clone(to, from *os.File) error {
	err := again("clone", from.Name(), func() error { return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) })
	for _, no := range []error{unix.ENOTSUP, unix.ENOTTY, unix.EINVAL, unix.EXDEV, unix.ENOSYS, unix.EPERM} {
		if errors.Is(err, no) {
			return fmt.Errorf("%w: %w", ErrNoClone, err)
		}
	}
	return err
}

// nextData returns the next part of a file that is not a hole, up to size.
func nextData(f *os.File, at, size int64) (start, end int64) {
	start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size
	}
	if err != nil || start < at {
		return at, size
	}
	end, err = unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
	if err != nil || end <= start {
		end = size
	}
	return min(start, size), min(end, size)
}

// MetaOf returns the Meta of info, which must come from [os.Stat].
func MetaOf(info fs.FileInfo) Meta {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Meta{}
	}
	return Meta{Dev: uint64(st.Dev), Ino: st.Ino}
}
