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
	"strings"
	"sync"
	"time"
)

// Bounds of one digest.
const (
	maxTreeFiles = 200_000
	maxTreeBytes = 4 << 30 // 4 GiB, unless [Dir.LimitTree] changes it
	maxTreeDepth = 64
)

// A Tree is the contents of a directory when it was digested.
type Tree struct {
	// Digest is "sha256:" and the SHA-256, in lower-case hexadecimal, of one line
	// for every regular file and symlink below the directory, sorted bytewise.
	// A file's line is its path with slashes, NUL, "1" if anyone may execute it or
	// else "0", NUL, the SHA-256 of its bytes in lower-case hexadecimal, newline. A
	// symlink's line is its path, NUL, "link", NUL, its target with slashes,
	// newline. Windows does not record who may execute a file, so there it is "0".
	// Directories, FIFOs, sockets and devices have no line.
	// A denied entry's line is its path, NUL, "denied", NUL, the reason ("name",
	// "link", "size" or "access"), NUL, its size, NUL, its modification time in
	// nanoseconds, newline.
	Digest string
	Files  []TreeFile // sorted by path
	Denied []Denied   // sorted by path; in no other list
	Bytes  int64      // the sizes of Files

	links map[string]string // :: path of a symlink → its target, with slashes

	keep string // see DigestKeeping
	kept []byte // nil if it was not kept
}

// A TreeFile is one regular file of a Tree.
type TreeFile struct {
	Path   string // with slashes
	Size   int64
	Digest string // "sha256:" and 64 hexadecimal digits
	Exec   bool
}

// NewTree describes a directory that the caller wrote: its digest, its files sorted by
// path, and its links (path → target).
func NewTree(digest string, files []TreeFile, links map[string]string) *Tree {
	t := &Tree{Digest: digest, Files: files, links: links}
	for _, f := range files {
		t.Bytes += f.Size
	}
	return t
}

// File returns the file of the tree at path, which has slashes.
func (t *Tree) File(path string) (TreeFile, bool) {
	i, ok := slices.BinarySearchFunc(t.Files, path, func(f TreeFile, path string) int { return cmp.Compare(f.Path, path) })
	if !ok {
		return TreeFile{}, false
	}
	return t.Files[i], true
}

// Links returns the symlinks of the tree: path → target, with slashes. The caller must not
// modify the map.
func (t *Tree) Links() map[string]string { return t.links }

// Kept returns the digested bytes of the file at path if [Dir.DigestKeeping] kept it. The
// caller must not modify them.
func (t *Tree) Kept(path string) (data []byte, ok bool) {
	return t.kept, t.kept != nil && path == t.keep
}

// WithoutKept returns the Tree without the bytes that [Tree.Kept] returns, so that keeping
// the Tree does not keep them in memory.
func (t *Tree) WithoutKept() *Tree {
	return &Tree{Digest: t.Digest, Files: t.Files, Denied: t.Denied, Bytes: t.Bytes, links: t.links}
}

// alwaysRead is how many bytes of a tree are read even if a cache knows them, since no
// stamp shows writes through a mapping that was dirty before. Nearly all packs are
// smaller, and reading this much takes a few hundredths of a second.
const alwaysRead = 8 << 20 // 8 MiB

// A DigestCache remembers the digests of unchanged files, by size, times of change and
// inode. The zero value is empty and ready to use. It is safe for concurrent use, and can
// serve any number of directories.
//
// It is used only for files beyond the first 8 MiB of a tree, which are always read, so
// never for a smaller tree. For those files it misses a change that keeps the size and the
// times: through a shared mapping that was written to before the digest, by setting the
// system's clock back, or, on a system whose inode change time this package cannot read
// (all but Linux, macOS, FreeBSD and NetBSD), by setting the file's modification time.
type DigestCache struct {
	mu    sync.Mutex
	sums  map[identity][sha256.Size]byte // guarded by mu
	now   func() time.Time               // nil: time.Now; tests only
	reads int                            // files that were read, guarded by mu; tests only

	buffers sync.Pool // of *[]byte, reused by walks
}

// identity changes when a file's bytes change, unless someone sets the clock back.
type identity struct {
	device, inode uint64
	size          int64
	modified      int64 // nanoseconds
	changed       int64 // inode change time in nanoseconds; 0 if there is none
}

// maxCached is how many digests a cache holds before it is cleared: about 20 MiB.
const maxCached = 200_000

// settled is how long a file must be unchanged before its digest is remembered, since a
// second write within one tick of the clock would not show.
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

// Digest reads every file below the directory and returns the Tree. cache may be nil. It
// does not follow symlinks.
//
// It denies files and directories that cannot be read, files larger than the limit of 4
// GiB (see [Dir.LimitTree]), names that are not UTF-8 or contain control characters, and
// links whose target contains a line break, since two different trees could then have
// one digest. Denied entries are part of the digest. In a directory that [OpenFile]
// opened, a denied entry is an error instead.
//
// It leaves nothing out silently: it fails if a file changes meanwhile, if there are more
// than 200,000 files and links, if all other files together exceed the limit, beyond 64
// levels, and if ctx ends.
func (d *Dir) Digest(ctx context.Context, cache *DigestCache) (*Tree, error) {
	return d.walkTree(ctx, cache, nil)
}

// DigestKeeping is [Dir.Digest], and keeps the content of the regular file at path for
// [Tree.Kept], if it has at most max bytes. The caller then need not read it again, and
// gets exactly the digested bytes.
func (d *Dir) DigestKeeping(ctx context.Context, cache *DigestCache, path string, max int64) (*Tree, error) {
	return d.walk(&treeWalk{ctx: ctx, cache: cache, keepMax: max, tree: &Tree{keep: path}}, nil)
}

// A Bound limits the size of a tree. A zero field means the limit of [Dir.Digest].
type Bound struct {
	Files int   // regular files, links, directories and all others
	Bytes int64 // all files together
}

// DigestWithin is [Dir.Digest] for a tree that should be small: beyond the bound it fails
// with a [*TooLargeError], without reading more than that. It also fails where Digest
// would deny an entry.
func (d *Dir) DigestWithin(ctx context.Context, cache *DigestCache, within Bound) (*Tree, error) {
	return d.walk(&treeWalk{ctx: ctx, cache: cache, within: within, strict: true, tree: &Tree{}}, nil)
}

// DigestCopy is [Dir.Digest] for a copy that [Dir.CopyTo] made. denied is the original
// tree's [Tree.DeniedText]. The digest equals that of the original if the copy contains
// everything that was not denied. DigestCopy denies nothing itself, and fails if denied is
// invalid.
func (d *Dir) DigestCopy(ctx context.Context, cache *DigestCache, denied []byte) (*Tree, error) {
	lines, err := deniedLines(denied)
	if err != nil {
		return nil, err
	}
	return d.walk(&treeWalk{ctx: ctx, cache: cache, strict: true, lines: lines, tree: &Tree{}}, nil)
}

// Survey is [Dir.Digest] without reading files: the Tree and its files have no digests. It
// denies what Digest would deny, except files that can be opened but not read.
func (d *Dir) Survey(ctx context.Context) (*Tree, error) {
	tree, err := d.walk(&treeWalk{ctx: ctx, survey: true, tree: &Tree{}}, nil)
	if err != nil {
		return nil, err
	}
	tree.Digest = ""
	return tree, nil
}

// LimitTree sets the limit of a digested tree in bytes; 0 means 4 GiB. Call it before
// others use d.
func (d *Dir) LimitTree(max int64) { d.maxTree = max }

// walkTree implements Digest, and [Dir.CopyTo] if to is not nil.
func (d *Dir) walkTree(ctx context.Context, cache *DigestCache, to *os.Root) (*Tree, error) {
	return d.walk(&treeWalk{ctx: ctx, cache: cache, tree: &Tree{}}, to)
}

func (d *Dir) walk(w *treeWalk, to *os.Root) (*Tree, error) {
	w.within.Files, w.within.Bytes = cmp.Or(w.within.Files, maxTreeFiles), cmp.Or(w.within.Bytes, d.maxTree, maxTreeBytes)
	w.sha = sha256.New()
	if w.cache != nil {
		if b, ok := w.cache.buffers.Get().(*[]byte); ok {
			w.buffer = *b
		}
		defer func() {
			b := w.buffer // do not keep the rest of w
			w.cache.buffers.Put(&b)
		}()
	}
	root, err := d.disk()
	if err != nil {
		return nil, err
	}
	if d.only == "" {
		err = w.dir(root, to, "", 0)
	} else {
		// If the only file is denied, nothing is left.
		if err = w.entry(root, to, "", d.only, 0); err == nil && len(w.tree.Denied) > 0 {
			err = &PathError{d.only, w.tree.Denied[0].Reason}
		}
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
	slices.SortFunc(w.tree.Denied, func(a, b Denied) int { return cmp.Compare(a.Path, b.Path) })
	return w.tree, nil
}

func text(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// leastBuffer and maxBuffer bound how many bytes of a file are read at a time. Most files
// are smaller than leastBuffer.
const (
	leastBuffer = 8 << 10
	maxBuffer   = 64 << 10
)

type treeWalk struct {
	ctx     context.Context // of the call of Digest
	cache   *DigestCache
	within  Bound
	keepMax int64 // largest size of the file that tree keeps
	strict  bool  // an entry that cannot be digested is an error, not denied
	survey  bool  // read no file
	tree    *Tree
	lines   []string
	entries int
	read    int64     // bytes read so far, whatever cache knows
	sha     hash.Hash // reused for each file
	buffer  []byte    // grows with the largest file, up to maxBuffer
}

// dir walks one directory, and copies it into to unless that is nil.
func (w *treeWalk) dir(root, to *os.Root, rel string, depth int) error {
	if depth > maxTreeDepth {
		return &PathError{rel, &TooLargeError{Size: int64(depth), Limit: maxTreeDepth, Unit: "levels", Tree: true}}
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
		return &PathError{".", &TooLargeError{Size: int64(w.entries), Limit: int64(w.within.Files), Unit: "files", Tree: !w.strict}}
	}
	info, err := root.Lstat(name)
	if err != nil {
		if w.denies(at, err, nil) {
			return nil
		}
		return &PathError{at, reason(err)}
	}
	if !w.strict && isOdd(name) {
		w.deny(at, deniedName, ErrOddName, info)
		return nil
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		sub, err := root.OpenRoot(name)
		if err != nil {
			if w.denies(at, err, info) {
				return nil
			}
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
			if w.denies(at, err, info) {
				return nil
			}
			return &PathError{at, reason(err)}
		}
		if strings.Contains(target, "\n") {
			if w.strict {
				return &PathError{at, ErrLineBreak}
			}
			w.deny(at, deniedLink, ErrLineBreak, info)
			return nil
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
	default:
		w.tree.Denied = append(w.tree.Denied, Denied{Path: at, Reason: ErrNotRegular})
	}
	return nil
}

func (w *treeWalk) file(root, to *os.Root, at, name string, info fs.FileInfo) error {
	if !w.strict && info.Size() > w.within.Bytes {
		w.deny(at, deniedSize, &TooLargeError{Size: info.Size(), Limit: w.within.Bytes, Tree: !w.strict}, info)
		return nil
	}
	var sum [sha256.Size]byte
	known := false
	switch {
	case w.survey:
		if err := readable(root, name); err != nil {
			if w.denies(at, err, info) {
				return nil
			}
			return &PathError{at, reason(err)}
		}
		known = true
	case to != nil, w.keeps(at, info): // these must be read
	case w.read+info.Size() <= alwaysRead:
		w.read += info.Size()
	default:
		sum, known = w.cache.get(identify(info))
	}
	if !known {
		hashed, after, err := w.hash(root, to, at, name)
		if err != nil {
			if w.ctx.Err() != nil {
				return w.ctx.Err()
			}
			if we, ok := errors.AsType[*WriteError](err); ok {
				we.Path = at
				return we
			}
			if w.denies(at, err, info) {
				return w.discard(to, at, name)
			}
			return &PathError{at, err}
		}
		sum, info = hashed, after
	}
	w.tree.Bytes += info.Size()
	if w.tree.Bytes > w.within.Bytes {
		return &PathError{".", &TooLargeError{Size: w.tree.Bytes, Limit: w.within.Bytes, Tree: !w.strict}}
	}
	file := TreeFile{Path: at, Size: info.Size(), Digest: text(sum[:]), Exec: info.Mode()&0o111 != 0}
	bit := "0"
	if file.Exec {
		bit = "1"
	}
	if w.survey {
		file.Digest = ""
	}
	w.tree.Files = append(w.tree.Files, file)
	w.lines = append(w.lines, at+"\x00"+bit+"\x00"+hex.EncodeToString(sum[:])+"\n")
	return nil
}

// discard removes the partial copy of a file that could not be read completely.
func (w *treeWalk) discard(to *os.Root, at, name string) error {
	if to == nil {
		return nil
	}
	if err := to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &WriteError{at, bare(err)}
	}
	return nil
}

// keeps reports whether to keep the file at a path of the tree.
func (w *treeWalk) keeps(at string, info fs.FileInfo) bool {
	return at == w.tree.keep && info.Size() <= w.keepMax
}

// hash hashes a file, and copies it unless to is nil. It returns the file's state when
// it was read.
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
		return sum, nil, &TooLargeError{Size: w.tree.Bytes + info.Size(), Limit: w.within.Bytes, Tree: !w.strict}
	}
	now := w.cache.clock()
	w.sha.Reset()
	sink, done := io.Writer(w.sha), func() error { return nil }
	if to != nil {
		// Hash exactly the bytes that are written.
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

// copy copies at most limit bytes, and checks regularly whether to stop.
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
