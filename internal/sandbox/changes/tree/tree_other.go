//go:build !linux

package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Dir is an open folder. Names given to its methods are single names. Here it is a
// path below an [os.Root], which never leaves the folder that was opened. A link that
// takes a folder's place between a check and its use can only lead elsewhere in that
// folder.
type Dir struct {
	base *os.Root
	at   string   // slash path below base; "." is base itself
	f    *os.File // its own handle
	top  bool     // closes base
}

// Open opens the folder at path, and follows links on the way there.
func Open(path string) (*Dir, error) {
	base, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	f, err := base.Open(".")
	if err != nil {
		_ = base.Close()
		return nil, err
	}
	return &Dir{base: base, at: ".", f: f, top: true}, nil
}

// From returns the folder that f has open, by its name, with a handle of its own.
func From(f *os.File) (*Dir, error) {
	d, err := Open(f.Name())
	if err != nil {
		return nil, err
	}
	a, err1 := f.Stat()
	b, err2 := d.f.Stat()
	if err1 != nil || err2 != nil || !os.SameFile(a, b) {
		_ = d.Close()
		return nil, &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("another folder has its name now")}
	}
	return d, nil
}

// File returns the handle, which the Dir owns.
func (d *Dir) File() *os.File { return d.f }

func (d *Dir) Close() error {
	err := d.f.Close()
	if d.top {
		err = errors.Join(err, d.base.Close())
	}
	return err
}

func (d *Dir) name(name string) string { return path.Join(d.at, name) }

// Names returns all names in the folder, sorted by their bytes.
func (d *Dir) Names() ([]string, error) {
	f, err := d.base.Open(d.at)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func meta(info fs.FileInfo) Meta {
	mode := info.Mode()
	m := Meta{
		Type: mode.Type(), Perm: uint32(mode.Perm()), Size: info.Size(), Mtime: info.ModTime().UnixNano(),
		Nlink: 1, Blocks: info.Size(),
	}
	if mode&fs.ModeSetuid != 0 {
		m.Perm |= SetUID
	}
	if mode&fs.ModeSetgid != 0 {
		m.Perm |= SetGID
	}
	if mode&fs.ModeSticky != 0 {
		m.Perm |= 0o1000
	}
	system(&m, info)
	return m
}

// Stat describes the folder itself.
func (d *Dir) Stat() (Meta, error) { return StatFile(d.f) }

// StatFile describes an open file.
func StatFile(f *os.File) (Meta, error) {
	info, err := f.Stat()
	if err != nil {
		return Meta{}, err
	}
	return meta(info), nil
}

// Lstat describes the file with the name.
func (d *Dir) Lstat(name string) (Meta, error) {
	info, err := d.base.Lstat(d.name(name))
	if err != nil {
		return Meta{}, err
	}
	return meta(info), nil
}

// Sub opens the folder name.
func (d *Dir) Sub(name string) (*Dir, error) {
	at := d.name(name)
	before, err := d.base.Lstat(at)
	if err != nil {
		return nil, err
	}
	f, err := d.base.Open(at)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !before.IsDir() || !os.SameFile(before, info) {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	return &Dir{base: d.base, at: at, f: f}, nil
}

// Walk opens the folder at path, which has slashes and is below d; "" and "."
// are d itself. No part of it may be a link.
func (d *Dir) Walk(path string) (*Dir, error) {
	at, err := d.Sub(".")
	if err != nil || path == "" || path == "." {
		return at, err
	}
	if !Valid(path) {
		_ = at.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
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
	before, err := d.base.Lstat(d.name(name))
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotFile}
	}
	f, err := d.base.OpenFile(d.name(name), os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !os.SameFile(before, info) {
		_ = f.Close()
		return nil, errors.Join(ErrNotFile, err)
	}
	return f, nil
}

// Create makes the file name with mode 0600. The name must be free.
func (d *Dir) Create(name string) (*os.File, error) {
	return d.base.OpenFile(d.name(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// Mkdir makes the folder name with mode 0700.
func (d *Dir) Mkdir(name string) error { return d.base.Mkdir(d.name(name), 0o700) }

func (d *Dir) Symlink(target, name string) error    { return d.base.Symlink(target, d.name(name)) }
func (d *Dir) Readlink(name string) (string, error) { return d.base.Readlink(d.name(name)) }

// Remove removes a name that is not a folder.
func (d *Dir) Remove(name string) error {
	if info, err := d.base.Lstat(d.name(name)); err == nil && info.IsDir() {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.EISDIR}
	}
	return d.base.Remove(d.name(name))
}

// Rmdir removes an empty folder.
func (d *Dir) Rmdir(name string) error {
	if info, err := d.base.Lstat(d.name(name)); err == nil && !info.IsDir() {
		return &fs.PathError{Op: "rmdir", Path: name, Err: syscall.ENOTDIR}
	}
	return d.base.Remove(d.name(name))
}

// Move renames a file and never replaces another; for folders, and where hard links
// do not work, it checks first. Both folders must have been opened from the same one.
func (d *Dir) Move(name string, to *Dir, as string) error {
	from, target := d.name(name), to.name(as)
	if d.base != to.base {
		return &fs.PathError{Op: "rename", Path: name, Err: syscall.EXDEV}
	}
	info, err := d.base.Lstat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		err := d.base.Link(from, target)
		if err == nil {
			return d.base.Remove(from)
		}
		if errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if _, err := d.base.Lstat(target); err == nil {
		return &fs.PathError{Op: "rename", Path: as, Err: fs.ErrExist}
	}
	return d.base.Rename(from, target)
}

// Swap is not supported here.
func (d *Dir) Swap(string, *Dir, string) error { return ErrNoSwap }

// Chmod changes the mode of the file with the name, which must not be a link.
func (d *Dir) Chmod(name string, perm uint32) error {
	return d.base.Chmod(d.name(name), fs.FileMode(perm&0o777))
}

// SetMtime sets the modification time of the file with the name; that of a link
// stays.
func (d *Dir) SetMtime(name string, mtime int64) error {
	if info, err := d.base.Lstat(d.name(name)); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	return d.base.Chtimes(d.name(name), time.Time{}, time.Unix(0, mtime))
}

// Sync makes the folder's names survive a power failure, where a folder can be
// synced.
func (d *Dir) Sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return d.f.Sync()
}

// KeepOwner does nothing here: a program without privileges cannot give files
// away.
func KeepOwner(*os.File, *Meta) {}

// Moment returns the time of change of a file made now, or 0 where the system
// has none. It leaves no name behind.
func (d *Dir) Moment() (int64, error) {
	const name = ".packs-mcp-moment"
	_ = d.Remove(name)
	f, err := d.Create(name)
	if err != nil {
		return 0, err
	}
	defer d.Remove(name)
	defer f.Close()
	return Moment(f)
}

// Moment returns the time of change of f, after it was changed.
func Moment(f *os.File) (int64, error) {
	if err := f.Chmod(0o600); err != nil {
		return 0, err
	}
	m, err := StatFile(f)
	return m.Ctime, err
}

// ReadAttrs returns nothing: attributes are kept on Linux only.
func ReadAttrs(*os.File) (Attrs, error) { return nil, nil }

// WriteAttrs writes nothing. lost reports whether want has any.
func WriteAttrs(_ *os.File, want Attrs) (lost bool, err error) { return len(want) > 0, nil }

// SetPerm sets permissions and the sticky bit of an open file or folder.
func SetPerm(f *os.File, perm uint32) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	mode := fs.FileMode(perm & 0o777)
	if perm&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return f.Chmod(mode)
}

// Inherit does nothing here: files inherit a folder's group anyway, or there are no
// groups.
func (d *Dir) Inherit(string, *Dir) error { return nil }

// Clone is not supported here.
func Clone(_, _ *os.File) error { return ErrNoClone }

// nextData returns all of the file: holes are kept on Linux only.
func nextData(_ *os.File, at, size int64) (start, end int64) { return at, size }

// MetaOf returns the Meta of info, which must come from [os.Stat].
func MetaOf(info fs.FileInfo) Meta { return meta(info) }
