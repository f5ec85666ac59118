package packfs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Bounds of one digest.
const (
	maxTreeFiles = 200_000
	maxTreeBytes = 4 << 30 // 4 GiB
	maxTreeDepth = 64
)

// A Tree is what a directory held when it was digested.
type Tree struct {
	// Digest is "sha256:" and the SHA-256, in lower-case hexadecimal, of one line
	// for every regular file and symlink below the directory, sorted by their
	// bytes. The line of a file is its path with slashes, NUL, "1" when anybody
	// may execute it, otherwise "0", NUL, the SHA-256 of its bytes in lower-case
	// hexadecimal, newline; that of a symlink is its path, NUL, "link", NUL, its
	// target as it is, newline. Directories, FIFOs, sockets and devices have none.
	Digest string
	Files  []TreeFile // sorted by path
	Bytes  int64      // the sizes of all files

	links map[string]string // :: path of a symlink → its target, with slashes

	keep string // see DigestKeeping
	kept []byte // nil: it was not kept
}

// A TreeFile is one regular file of a Tree.
type TreeFile struct {
	Path   string // with slashes
	Size   int64
	Digest string // "sha256:" and 64 hexadecimal digits
	Exec   bool
}

// File returns the file of the tree at path, which has slashes.
func (t *Tree) File(path string) (TreeFile, bool) {
	i, ok := slices.BinarySearchFunc(t.Files, path, func(f TreeFile, path string) int { return cmp.Compare(f.Path, path) })
	if !ok {
		return TreeFile{}, false
	}
	return t.Files[i], true
}

// Kept returns the very bytes of the file at path that were digested, if it is the
// one that [Dir.DigestKeeping] was to keep, and was kept. They must not be modified.
func (t *Tree) Kept(path string) (data []byte, ok bool) {
	return t.kept, t.kept != nil && path == t.keep
}

// WithoutKept is the Tree for who holds it for longer.
func (t *Tree) WithoutKept() *Tree {
	return &Tree{Digest: t.Digest, Files: t.Files, Bytes: t.Bytes, links: t.links}
}

// alwaysRead is how many bytes of a tree are read whatever a cache remembers:
// no stamp of a file shows what is written to it through a mapping that was
// made, and written to, before. Nearly all packs are smaller, and so many bytes
// take some hundredths of a second.
const alwaysRead = 8 << 20 // 8 MiB

// A DigestCache remembers the digests of files that have not changed, by
// size, times of change and inode. The zero value is empty and ready. Safe for
// concurrent use; one cache may serve any number of directories.
//
// It is asked only about files for which there is no room in the 8 MiB that
// are read of every tree, so not at all in a tree that is no larger. Of those
// files, it does not see a change whose writer keeps the size, and the times
// as well: through a shared mapping that was written to before the digest, by
// setting the system's clock back, or, on a system whose time of change this
// package cannot read (all but Linux, macOS, FreeBSD and NetBSD), by setting the
// file's time.
type DigestCache struct {
	mu    sync.Mutex
	sums  map[identity][sha256.Size]byte // guarded by mu
	now   func() time.Time               // nil: time.Now; tests only
	reads int                            // files that were read, guarded by mu; tests only
}

// identity is what a file cannot keep when its bytes change, unless somebody
// sets the clock back.
type identity struct {
	device, inode uint64
	size          int64
	modified      int64 // nanoseconds
	changed       int64 // nanoseconds of the inode's last change; 0 where there is none
}

// maxCached is how many digests a cache holds before it starts anew: about
// 20 MiB.
const maxCached = 200_000

// settled is how long a file must have been left alone before its digest is
// remembered: a second write within the clock's own step would not show.
const settled = 2 * time.Second

func (c *DigestCache) get(id identity) (sum [sha256.Size]byte, ok bool) {
	if c == nil || id.inode == 0 {
		return sum, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sum, ok = c.sums[id]
	return sum, ok
}

func (c *DigestCache) put(id identity, sum [sha256.Size]byte, read time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if id.inode == 0 || read.Sub(time.Unix(0, max(id.modified, id.changed))) < settled {
		return
	}
	if c.sums == nil || len(c.sums) >= maxCached {
		c.sums = make(map[identity][sha256.Size]byte)
	}
	c.sums[id] = sum
}

func (c *DigestCache) clock() time.Time {
	if c != nil && c.now != nil {
		return c.now()
	}
	return time.Now()
}

// Digest reads every file below the directory and returns what is there; cache
// may be nil. Symlinks are not followed. It fails, rather than leave something
// out, when a file cannot be read or changes meanwhile, when a link's target
// holds a line break (two different trees could have one digest), beyond
// 200,000 files and links, 4 GiB, or 64 levels, and when ctx ends.
func (d *Dir) Digest(ctx context.Context, cache *DigestCache) (*Tree, error) {
	return d.walkTree(ctx, cache, nil)
}

// DigestKeeping is [Dir.Digest] that keeps what it read of the regular file at path,
// for [Tree.Kept], if that has at most max bytes: who needs its content too need not
// read it again, and has that of the digest.
func (d *Dir) DigestKeeping(ctx context.Context, cache *DigestCache, path string, max int64) (*Tree, error) {
	return d.walk(&treeWalk{ctx: ctx, cache: cache, keepMax: max, tree: &Tree{keep: path}}, nil)
}

// A Bound is how large a tree may be. A field that is 0 has the bound of
// [Dir.Digest].
type Bound struct {
	Files int   // regular files, links, directories and what else there is
	Bytes int64 // the sizes of all files
}

// DigestWithin is [Dir.Digest] of a tree that is expected to be small: beyond
// the bound, it fails with a [*TooLargeError] and has read no more than that.
func (d *Dir) DigestWithin(ctx context.Context, cache *DigestCache, within Bound) (*Tree, error) {
	return d.walkBounded(ctx, cache, nil, within)
}

// walkTree is Digest, and [Dir.CopyTo] when there is a directory to copy to.
func (d *Dir) walkTree(ctx context.Context, cache *DigestCache, to *os.Root) (*Tree, error) {
	return d.walkBounded(ctx, cache, to, Bound{})
}

func (d *Dir) walkBounded(ctx context.Context, cache *DigestCache, to *os.Root, within Bound) (*Tree, error) {
	return d.walk(&treeWalk{ctx: ctx, cache: cache, within: within, tree: &Tree{}}, to)
}

func (d *Dir) walk(w *treeWalk, to *os.Root) (*Tree, error) {
	w.within.Files, w.within.Bytes = cmp.Or(w.within.Files, maxTreeFiles), cmp.Or(w.within.Bytes, maxTreeBytes)
	w.sha = sha256.New()
	var err error
	if d.only == "" {
		err = w.dir(d.root, to, "", 0)
	} else {
		err = w.entry(d.root, to, "", d.only, 0)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(w.lines)
	w.sha.Reset()
	for _, l := range w.lines {
		io.WriteString(w.sha, l) // a hash never fails
	}
	w.tree.Digest = text(w.sha.Sum(nil))
	slices.SortFunc(w.tree.Files, func(a, b TreeFile) int { return cmp.Compare(a.Path, b.Path) })
	return w.tree, nil
}

func text(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// leastBuffer and maxBuffer are how many bytes of a file are read at a time, at
// least and at most; most files of most packs have fewer than the first.
const (
	leastBuffer = 8 << 10
	maxBuffer   = 64 << 10
)

type treeWalk struct {
	ctx     context.Context // of the one call of Digest that made this
	cache   *DigestCache
	within  Bound
	keepMax int64 // of the file that tree is to keep
	tree    *Tree
	lines   []string
	entries int
	read    int64     // bytes that were read whatever cache remembers
	sha     hash.Hash // of one file after the other
	buffer  []byte    // as large as the largest file so far, up to maxBuffer
}

// dir walks one directory. What is in it is copied to to, unless that is nil.
func (w *treeWalk) dir(root, to *os.Root, rel string, depth int) error {
	if depth > maxTreeDepth {
		return &PathError{rel, &TooLargeError{Size: int64(depth), Limit: maxTreeDepth, Unit: "levels"}}
	}
	f, err := root.OpenFile(".", os.O_RDONLY|openFlags, 0)
	if err != nil {
		return &PathError{cmp.Or(rel, "."), reason(err)}
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(1000)
		for _, name := range names {
			if err := w.entry(root, to, rel, name, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &PathError{cmp.Or(rel, "."), reason(err)}
		}
	}
}

func (w *treeWalk) entry(root, to *os.Root, rel, name string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	at := join(rel, name)
	if w.entries++; w.entries > w.within.Files {
		return &PathError{at, &TooLargeError{Size: int64(w.entries), Limit: int64(w.within.Files), Unit: "files"}}
	}
	info, err := root.Lstat(name)
	if err != nil {
		return &PathError{at, reason(err)}
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		sub, err := root.OpenRoot(name)
		if err != nil {
			return &PathError{at, reason(err)}
		}
		defer sub.Close()
		if to != nil {
			return w.copyDir(sub, to, at, name, depth+1)
		}
		return w.dir(sub, nil, at, depth+1)
	case mode&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		if err != nil {
			return &PathError{at, reason(err)}
		}
		for i := range len(target) {
			if target[i] == '\n' {
				return &PathError{at, ErrLineBreak}
			}
		}
		if to != nil {
			if err := to.Symlink(target, name); err != nil {
				return &WriteError{at, bare(err)}
			}
		}
		target = filepath.ToSlash(target)
		w.lines = append(w.lines, at+"\x00link\x00"+target+"\n")
		if w.tree.links == nil {
			w.tree.links = make(map[string]string)
		}
		w.tree.links[at] = target
		return nil
	case mode.IsRegular():
		return w.file(root, to, at, name, info)
	}
	return nil
}

func (w *treeWalk) file(root, to *os.Root, at, name string, info fs.FileInfo) error {
	var sum [sha256.Size]byte
	known := false
	switch {
	case to != nil, w.keeps(at, info): // what is copied or kept is read
	case w.read+info.Size() <= alwaysRead:
		w.read += info.Size()
	default:
		sum, known = w.cache.get(identify(info))
	}
	if !known {
		var err error
		if sum, info, err = w.hash(root, to, at, name); err != nil {
			if w.ctx.Err() != nil {
				return w.ctx.Err()
			}
			if we, ok := errors.AsType[*WriteError](err); ok {
				we.Path = at
				return we
			}
			return &PathError{at, err}
		}
	}
	w.tree.Bytes += info.Size()
	if w.tree.Bytes > w.within.Bytes {
		return &PathError{at, &TooLargeError{Size: w.tree.Bytes, Limit: w.within.Bytes}}
	}
	file := TreeFile{Path: at, Size: info.Size(), Digest: text(sum[:]), Exec: info.Mode()&0o111 != 0}
	bit := "0"
	if file.Exec {
		bit = "1"
	}
	w.tree.Files = append(w.tree.Files, file)
	w.lines = append(w.lines, at+"\x00"+bit+"\x00"+hex.EncodeToString(sum[:])+"\n")
	return nil
}

// keeps reports whether the file at a path of the tree is the one to be kept.
func (w *treeWalk) keeps(at string, info fs.FileInfo) bool {
	return at == w.tree.keep && info.Size() <= w.keepMax
}

// hash reads the file, into a copy unless to is nil, and returns the state in
// which it was read.
func (w *treeWalk) hash(root, to *os.Root, at, name string) (sum [sha256.Size]byte, info fs.FileInfo, err error) {
	f, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return sum, nil, reason(err)
	}
	defer f.Close()
	info, err = f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return sum, nil, err
	}
	if left := w.within.Bytes - w.tree.Bytes; info.Size() > left {
		return sum, nil, &TooLargeError{Size: w.tree.Bytes + info.Size(), Limit: w.within.Bytes}
	}
	now := w.cache.clock()
	w.sha.Reset()
	sink, done := io.Writer(w.sha), func() error { return nil }
	if to != nil {
		// The very bytes that are written are those that are hashed.
		if sink, done, err = copyFile(w.sha, to, name, info); err != nil {
			return sum, nil, err
		}
	}
	var kept *bytes.Buffer
	if w.keeps(at, info) {
		kept = bytes.NewBuffer(make([]byte, 0, info.Size()))
		sink = io.MultiWriter(sink, kept)
	}
	n, err := w.copy(sink, f, info.Size()+1)
	if ended := done(); err == nil {
		err = ended
	}
	if err != nil {
		return sum, nil, err
	}
	after, err := f.Stat()
	if err != nil {
		return sum, nil, reason(err)
	}
	if n != info.Size() || identify(after) != identify(info) {
		return sum, nil, ErrChanged
	}
	if kept != nil {
		w.tree.kept = kept.Bytes()
	}
	w.sha.Sum(sum[:0])
	w.cache.put(identify(info), sum, now)
	return sum, info, nil
}

// copy writes at most limit bytes, and looks now and then whether to stop.
func (w *treeWalk) copy(to io.Writer, r io.Reader, limit int64) (n int64, err error) {
	if room := min(limit, maxBuffer); int64(len(w.buffer)) < room {
		w.buffer = make([]byte, max(room, leastBuffer))
	}
	for n < limit {
		if err := w.ctx.Err(); err != nil {
			return n, err
		}
		got, err := r.Read(w.buffer[:min(int64(len(w.buffer)), limit-n)])
		if _, err := to.Write(w.buffer[:got]); err != nil {
			return n, err
		}
		n += int64(got)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, reason(err)
		}
	}
	return n, nil
}
