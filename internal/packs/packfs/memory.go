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

// A Memory is a folder in memory, so that a download can be examined before it is written
// to disk. Its paths begin with At.
//
// One goroutine fills it; after that, several may read it. Names that are added must be
// clean, with slashes, and new.
type Memory struct {
	At    string // absolute, without links
	nodes map[string]*node
}

// A node is a file, link or folder of a Memory, and its own [fs.FileInfo]. It has no
// inode, so it has no [Stamp] and no [Which].
type node struct {
	name   string
	mode   fs.FileMode
	data   []byte
	target string   // target of a link
	below  []string // names in a folder; unsorted
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

// File adds a file and its parent folders. The caller must not change data afterwards.
func (m *Memory) File(name string, exec bool, data []byte) {
	mode := fs.FileMode(0o400)
	if exec {
		mode = 0o500
	}
	m.put(name, &node{mode: mode, data: data})
}

// Link adds a link and its parent folders.
func (m *Memory) Link(name, target string) {
	m.put(name, &node{mode: fs.ModeSymlink | 0o777, target: target})
}

// Folder adds a folder and its parents, if they do not exist.
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

// name returns a path relative to m.
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

// errEscapes is the error of [os.Root] for such a path.
var errEscapes = errors.New("path escapes from parent")

// resolve resolves the links of a clean name below base. Unless last is set, the last
// element may stay a link. A link that leads out of base is an error.
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

// memoryDir is an open folder of a Memory.
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
	n := info.(*node) // a Memory contains nothing else
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
