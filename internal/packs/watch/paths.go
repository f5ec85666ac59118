package watch

// This file finds out where the roots and the library's files are, and which
// directories to watch for changes of that.

import (
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// rootsMoved reports whether a root's path now leads to another directory.
func (n *notified) rootsMoved() bool {
	for root, was := range n.roots {
		if is := which(root); is != was && !is.Same(was) {
			at, _ := spot(root)
			n.moved[at] = true
			return true
		}
	}
	return false
}

// which identifies the directory at path; zero: there is none.
func which(path string) packfs.Which {
	d, err := packfs.Open(path)
	if err != nil {
		return packfs.Which{}
	}
	defer d.Close()
	w, err := d.Which()
	if err != nil {
		return packfs.Which{}
	}
	return w
}

// findPaths finds out where the roots and files are, and which directories to watch
// for changes of that.
func (n *notified) findPaths(lib Library, want map[string]use) {
	n.spots, n.rootAt, n.fileAt = make(map[string]string), make(map[string]bool), make(map[string]bool)
	add := func(path string) (at string, whole bool) {
		at, whole = spot(path)
		n.spots[path] = at
		if !opensFiles {
			want[filepath.Dir(at)] |= forPath
		}
		return at, whole
	}
	for _, root := range lib.Roots() {
		at, _ := add(root)
		n.rootAt[at] = true
		is := which(root)
		if was, known := n.roots[root]; known && is != was && !is.Same(was) {
			n.all = true // it may have changed since the last look
		}
		n.roots[root] = is
		remote := is != packfs.Which{} && !n.local(root)
		if _, told := n.remote[root]; remote && !told {
			n.opts.Logger.Info("this folder of packs is on a file system that may not report changes, such as a network file system; it is scanned at intervals", "dir", root, "every", n.opts.Every)
		}
		if remote || n.remote[root] {
			n.remote[root] = remote
		}
	}
	for file := range n.files {
		at, whole := add(file)
		n.fileAt[at] = whole
	}
}

// anyRemote reports whether a root is on a file system without events.
func (n *notified) anyRemote() bool {
	for _, remote := range n.remote {
		if remote {
			return true
		}
	}
	return false
}

// spot returns the path whose creation or removal shows that path was created or
// removed. If path exists, that is the path itself with symlinks above it resolved,
// and whole is true. Otherwise it is the first missing directory on the way to it.
func spot(path string) (at string, whole bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path, false
	}
	for at := abs; ; {
		above := filepath.Dir(at)
		if resolved, err := filepath.EvalSymlinks(above); err == nil {
			return filepath.Join(resolved, filepath.Base(at)), at == abs
		}
		if above == at {
			return at, at == abs
		}
		at = above
	}
}

// isOrBelow reports whether a path, or a directory above it, is in all.
func isOrBelow(path string, all map[string]bool) bool {
	for len(all) > 0 {
		if all[path] {
			return true
		}
		above := filepath.Dir(path)
		if above == path {
			return false
		}
		path = above
	}
	return false
}
