package packfs

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Memory is a folder that is not on the disk: what came from elsewhere can be looked
// at before it is written. Its paths are those that its files would have below At.
//
// It is filled by one goroutine, and may then be read by several. The names that are
// put in must be clean, with slashes, and not already there.
type Memory struct {
	At    string // absolute, and not led to by a link
	nodes map[string]*node
}

// A node is a file, link or folder of a Memory. It is its own [fs.FileInfo]. The system
// knows no file like it, so no [Stamp] and no [Which] is made of it.
type node struct {
	name   string
	mode   fs.FileMode
	data   []byte
	target string   // of a link
	below  []string // names in a folder; not sorted
}

func (n *node) Name() string       { return n.name }
func (n *node) Size() int64        { return int64(len(n.data)) }
func (n *node) Mode() fs.FileMode  { return n.mode }
func (n *node) ModTime() time.Time { return time.Unix(0, 0) }
func (n *node) IsDir() bool        { return n.mode.IsDir() }
func (n *node) Sys() any           { return nil }

// NewMemory returns an empty folder for the path at.
func NewMemory(at string) *Memory {
	return &Memory{At: at, nodes: map[string]*node{".": {name: filepath.Base(at), mode: fs.ModeDir | 0o700}}}
}

// File puts a file in, and the folders above it. data must not change any more.
func (m *Memory) File(name string, exec bool, data []byte) {
	mode := fs.FileMode(0o400)
	if exec {
		mode = 0o500
	}
	m.put(name, &node{mode: mode, data: data})
}

// Link puts a link in, and the folders above it.
func (m *Memory) Link(name, target string) {
	m.put(name, &node{mode: fs.ModeSymlink | 0o777, target: target})
}

// Folder puts a folder in, and those above it, unless it is there.
func (m *Memory) Folder(name string) {
	if m.nodes[name] == nil {
		m.put(name, &node{mode: fs.ModeDir | 0o700})
	}
}

func (m *Memory) put(name string, n *node) {
	dir := path.Dir(name)
	m.Folder(dir)
	n.name = path.Base(name)
	m.nodes[name], m.nodes[dir].below = n, append(m.nodes[dir].below, n.name)
}

// name returns a path as m has it.
func (m *Memory) name(at string) (string, error) {
	if at == m.At {
		return ".", nil
	}
	rel, ok := strings.CutPrefix(at, m.At+string(filepath.Separator))
	if !ok {
		return "", &fs.PathError{Op: "open", Path: at, Err: fs.ErrNotExist}
	}
	return filepath.ToSlash(rel), nil
}

// Resolve is [filepath.EvalSymlinks] for a path in m.
func (m *Memory) Resolve(at string) (string, error) {
	name, err := m.name(at)
	if err == nil {
		name, err = m.resolve(".", name, true)
	}
	return filepath.Join(m.At, filepath.FromSlash(name)), err
}

// Lstat is [os.Lstat] for a path in m.
func (m *Memory) Lstat(at string) (fs.FileInfo, error) { return m.stat(at, false) }

// Stat is [os.Stat] for a path in m.
func (m *Memory) Stat(at string) (fs.FileInfo, error) { return m.stat(at, true) }

func (m *Memory) stat(at string, follow bool) (fs.FileInfo, error) {
	name, err := m.name(at)
	if err != nil {
		return nil, err
	}
	return memoryDir{m, "."}.info(name, follow)
}

// Open is [Open] for a path in m.
func (m *Memory) Open(dir string) (*Dir, error) {
	name, err := m.name(dir)
	if err != nil {
		return nil, &PathError{dir, reason(err)}
	}
	at, err := memoryDir{m, "."}.sub(name)
	if err != nil {
		return nil, &PathError{dir, reason(err)}
	}
	return &Dir{root: at}, nil
}

// OpenFile is [OpenFile] for a path in m.
func (m *Memory) OpenFile(file string) (*Dir, error) {
	d, err := m.Open(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	d.only = filepath.Base(file)
	return d, nil
}

// errEscapes is what [os.Root] says of such a path.
var errEscapes = errors.New("path escapes from parent")

// resolve returns the place of a clean name below base without links. Without last, the
// last part of it may be a link. A link that leads out of base is an error.
func (m *Memory) resolve(base, name string, last bool) (string, error) {
	failed := func(err error) (string, error) {
		return "", &fs.PathError{Op: "openat", Path: name, Err: err}
	}
	at, todo := base, strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case ".", "":
			continue
		case "..":
			if at == base {
				return failed(errEscapes)
			}
			at = path.Dir(at)
			continue
		}
		switch n := m.nodes[at]; {
		case n == nil:
			return failed(syscall.ENOENT)
		case !n.IsDir():
			return failed(syscall.ENOTDIR)
		}
		next := path.Join(at, part)
		n := m.nodes[next]
		switch {
		case n == nil:
			return failed(syscall.ENOENT)
		case n.mode&fs.ModeSymlink == 0 || len(todo) == 0 && !last:
			at = next
			continue
		}
		if links++; links > 40 {
			return failed(syscall.ELOOP)
		}
		if path.IsAbs(n.target) {
			return failed(errEscapes)
		}
		todo = append(strings.Split(n.target, "/"), todo...)
	}
	return at, nil
}

// memoryDir is one folder of a Memory, opened.
type memoryDir struct {
	m  *Memory
	at string
}

func (d memoryDir) info(name string, follow bool) (fs.FileInfo, error) {
	at, err := d.m.resolve(d.at, filepath.ToSlash(name), follow)
	if err != nil {
		return nil, err
	}
	return d.m.nodes[at], nil
}

func (d memoryDir) Stat(name string) (fs.FileInfo, error)  { return d.info(name, true) }
func (d memoryDir) Lstat(name string) (fs.FileInfo, error) { return d.info(name, false) }

func (d memoryDir) open(name string) (file, error) {
	info, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	n := info.(*node) // whatever else a Memory had, it would not be read from it
	return &memoryFile{bytes.NewReader(n.data), n}, nil
}

func (d memoryDir) sub(name string) (handle, error) {
	at, err := d.m.resolve(d.at, filepath.ToSlash(name), true)
	if err == nil && !d.m.nodes[at].IsDir() {
		err = &fs.PathError{Op: "openat", Path: name, Err: syscall.ENOTDIR}
	}
	return memoryDir{d.m, at}, err
}

func (d memoryDir) names(limit int, keep func(string, fs.FileMode) bool) (entries []fs.DirEntry, truncated bool, err error) {
	for _, name := range slices.Sorted(slices.Values(d.m.nodes[d.at].below)) {
		if limit--; limit < 0 {
			return entries, true, nil
		}
		n := d.m.nodes[path.Join(d.at, name)]
		if keep == nil || keep(name, n.mode.Type()) {
			entries = append(entries, fs.FileInfoToDirEntry(n))
		}
	}
	return entries, false, nil
}

func (memoryDir) Close() error { return nil }

// memoryFile is an open file of a Memory.
type memoryFile struct {
	*bytes.Reader
	node *node
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *memoryFile) Close() error               { return nil }
